"""Pages of lists. Where one began or ended: whole numbers in, an opaque word for the caller out, and back."""

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
    """A piece of a list; `next` is the cursor of the piece after it, `previous` of the one before; None at an end."""

    items: tuple[Item, ...]
    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a list to go on: after the item whose order is `key`, or `back` from it."""

    key: tuple[int, ...]
    back: bool = False

    @property
    def around(self) -> tuple[int, ...]:
        """The place from which the other direction leads to the item itself."""
        return (*self.key[:-1], self.key[-1] + (1 if self.back else -1 if self.key[-1] else 0))


class BadCursor(BadInput):
    code = "bad_cursor"


def place(cursor: str | None, length: int) -> Place | None:
    """-> the place that a cursor of `piece` stands for, in an order of `length` numbers. Raises BadCursor."""
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
    """-> a page of what was `found` from a place on: one more than `limit` where there is more, going back the nearest
    first. `end` is where the search for more ended, where it did so before it had found a page and reached the list's
    end."""
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
    """-> the cursor that stands for `numbers`."""
    return base64.urlsafe_b64encode(".".join(map(str, numbers)).encode()).decode().rstrip("=")


def decode(cursor: str, length: int) -> tuple[int, ...]:
    """-> the numbers of a cursor that `encode` made of `length` of them; raises BadCursor for anything else."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        parts = text.split(".")
        # Longer ones are no row's number and no time.
        if len(parts) != length or not all(part.isdecimal() and len(part) <= 16 for part in parts):
            raise ValueError
        return tuple(map(int, parts))
    except (ValueError, binascii.Error):
        raise BadCursor("invalid cursor; start at the first page", cursor=cursor[:100]) from None


def number_of(identifier: str) -> int:
    """-> the row number that a public id stands for; 0, which no row has, where it can't be one."""
    fits = identifier.isascii() and identifier.isdecimal() and len(identifier) <= 18 and identifier[0] != "0"
    return int(identifier) if fits else 0


def microseconds(moment: datetime) -> int:
    """-> since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_at(number: int) -> datetime:
    """-> the point in time that so many microseconds after 1970 is. Raises BadCursor where there is none."""
    try:
        return _EPOCH + timedelta(microseconds=number)
    except OverflowError:
        raise BadCursor("invalid cursor; start at the first page") from None
