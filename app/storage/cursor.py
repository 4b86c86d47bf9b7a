"""Pages of lists. Where one ended: whole numbers in, an opaque word for the caller out, and back."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.errors import BadInput

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A piece of a list; `next` is the cursor of the piece after it, None at the end."""

    items: tuple[Item, ...]
    next: str | None = None


class BadCursor(BadInput):
    code = "bad_cursor"


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
        raise BadCursor("the cursor is not one that this service gave out", cursor=cursor[:100]) from None


def number_of(identifier: str) -> int:
    """-> the row number that a public id stands for; 0, which no row has, where it can't be one."""
    fits = identifier.isascii() and identifier.isdecimal() and len(identifier) <= 18 and identifier[0] != "0"
    return int(identifier) if fits else 0
