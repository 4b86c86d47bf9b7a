"""Pages of lists, and the cursors that lead from one page to the next. To callers a cursor is an opaque text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from torchtriage.errors import BadInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A part of a list. `next` and `previous` are the cursors of the adjacent pages, None at an end."""

    items: tuple[Item, ...]
    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where to continue in a list: after the item with the sort key `key`, or before it if `back`."""

    key: tuple[int, ...]
    back: bool = False

    @property
    def around(self) -> tuple[int, ...]:
        """The place from which the other direction begins with the item itself."""
        return (*self.key[:-1], self.key[-1] + (1 if self.back else -1 if self.key[-1] else 0))


class BadCursor(BadInput):
    code = "bad_cursor"


def place(cursor: str | None, length: int) -> Place | None:
    """Returns the place of a cursor, with a sort key of `length` numbers. Raises BadCursor."""
    if cursor is None:
        return None
    back, *key = decode(cursor, length + 1)
    return Place(tuple(key), bool(back))


def piece(
    found: Sequence[Item],
    limit: int,
    at: Place | None,
    key: Callable[[Item], tuple[int, ...]],
    end: tuple[int, ...] | None = None,
) -> Page[Item]:
    """Returns a page of the items `found` from a place on. `found` has one item more than `limit` if there are more;
    with `back`, nearest first. `end` is the place at which the search stopped early, before the page was full and
    before the list ended."""
    items, more = list(found[:limit]), len(found) > limit
    near = key(items[0]) if items else end or (at.around if at is not None else None)
    far = key(items[-1]) if more else end
    if at is not None and at.back:
        items.reverse()
        before, after = far, near
    else:
        before, after = near if at is not None else None, far
    return Page(
        tuple(items),
        next=encode(0, *after) if after else None,
        previous=encode(1, *before) if before else None,
    )


def encode(*numbers: int) -> str:
    """Returns the cursor for `numbers`."""
    return base64.urlsafe_b64encode(".".join(map(str, numbers)).encode()).decode().rstrip("=")


def decode(cursor: str, length: int) -> tuple[int, ...]:
    """Returns the `length` numbers of a cursor made by `encode`. Raises BadCursor for any other text."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        parts = text.split(".")
        # A longer number cannot be a row number or a time.
        if len(parts) != length or not all(part.isdecimal() and len(part) <= 16 for part in parts):
            raise ValueError
        return tuple(map(int, parts))
    except (ValueError, binascii.Error):
        raise BadCursor("invalid cursor; start at the first page", cursor=cursor[:100]) from None


def number_of(identifier: str) -> int:
    """Returns the row number of a public id, or 0, which no row has, if it cannot be an id."""
    fits = identifier.isascii() and identifier.isdecimal() and len(identifier) <= 18 and identifier[0] != "0"
    return int(identifier) if fits else 0


def microseconds(moment: datetime) -> int:
    """Returns microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_at(number: int) -> datetime:
    """Returns the time of this many microseconds since 1970. Raises BadCursor if there is no such time."""
    try:
        return _EPOCH + timedelta(microseconds=number)
    except OverflowError:
        raise BadCursor("invalid cursor; start at the first page") from None
