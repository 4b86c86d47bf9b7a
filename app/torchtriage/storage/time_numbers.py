"""Points in time as whole numbers, which cursors are made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from torchtriage.storage.pagination import BadCursor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """-> since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_at(number: int) -> datetime:
    """-> the point in time that so many microseconds after 1970 is. Raises BadCursor where there is none."""
    try:
        return _EPOCH + timedelta(microseconds=number)
    except OverflowError:
        raise BadCursor("the cursor is not one that this service gave out") from None
