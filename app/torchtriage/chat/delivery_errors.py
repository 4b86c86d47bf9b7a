"""Messages that were not accepted: for now, or for good."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from torchtriage.errors import TriageError

_LONGEST_WAIT = 3600  # seconds, whatever Retry-After says


class Undelivered(TriageError):
    """Something was not taken. `passing`: it can be later, after `wait` seconds where the other side said so."""

    status = 502
    code = "undelivered"

    def __init__(self, message: str, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(message, passing=passing)
        self.passing = passing
        self.wait = wait


def refuse_code(who: str, code: object, said: object, passing: Collection[int], wait: float) -> None:
    """Raises Undelivered for a code that is not 0: some chats answer 200 whatever happened, and say it in the body.

    Codes in `passing`, and an answer without one, can go away; the next try is after `wait` seconds then.
    """
    if code != 0:
        later = code is None or code in passing
        raise Undelivered(f"{who} refused it: {code} {str(said or 'no JSON')[:200]}", later, wait if later else None)


def retry_after(text: str) -> float | None:
    """-> the seconds that a Retry-After asks for, as a number or as a point in time."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_WAIT) if seconds == seconds else None  # NaN is no number of seconds
