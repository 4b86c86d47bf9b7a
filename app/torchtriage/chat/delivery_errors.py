"""Errors of messages that could not be delivered, temporarily or permanently."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from torchtriage.errors import TriageError

_MAX_WAIT = 3600  # maximum seconds to wait, whatever Retry-After says


class Undelivered(TriageError):
    """A message was not accepted. `passing`: a retry may succeed, after `wait` seconds if the other side gave a
    time."""

    status = 502
    code = "undelivered"

    def __init__(self, message: str, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(message, passing=passing)
        self.passing = passing
        self.wait = wait


def refuse_code(who: str, code: object, reason: object, passing: Collection[int], wait: float) -> None:
    """Raises Undelivered if an error code in the body is not 0. Some chats answer with HTTP status 200 even for errors.

    If the code is in `passing` or missing, a retry after `wait` seconds may succeed.
    """
    if code != 0:
        later = code is None or code in passing
        raise Undelivered(f"{who} refused it: {code} {str(reason or 'no JSON')[:200]}", later, wait if later else None)


def retry_after(text: str) -> float | None:
    """Returns the seconds that a Retry-After header asks for, from a number or a date. Returns None if it is
    neither."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _MAX_WAIT) if seconds == seconds else None  # NaN is not a number of seconds
