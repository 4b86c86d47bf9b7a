"""How far the retriage of a database is. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete, update
from sqlalchemy.orm import Session

from torchtriage.storage.database import lock
from torchtriage.storage.tables import RetriageRow

_NUMBER = 1


@dataclass(frozen=True, slots=True)
class Noted:
    """What is kept of a retriage: whose it is, how far, and when that was last said."""

    run: str
    stage: str
    seen_at: datetime
    told: dict[str, Any]


def read(session: Session) -> Noted | None:
    """-> the retriage that was begun last, unless it was discarded."""
    row = session.get(RetriageRow, _NUMBER)
    return Noted(row.run, row.stage, row.seen_at, row.told) if row else None


def hold(session: Session) -> Noted | None:
    """The same, and nobody else begins or ends one until the transaction does."""
    lock(session, "retriage")
    return read(session)


def begin(session: Session, noted: Noted) -> None:
    """Puts it in the place of the one before. Needs `hold`."""
    discard(session)
    session.add(RetriageRow(number=_NUMBER, run=noted.run, stage=noted.stage, seen_at=noted.seen_at, told=noted.told))
    session.flush()


def note(session: Session, noted: Noted) -> bool:
    """Keeps how far this run is -> False where another has taken its place."""
    changes = {"stage": noted.stage, "seen_at": noted.seen_at, "told": noted.told}
    done = session.execute(update(RetriageRow).where(RetriageRow.run == noted.run).values(changes))
    return bool(cast(CursorResult[Any], done).rowcount)


def discard(session: Session) -> None:
    """Forgets it. Needs `hold`."""
    session.execute(delete(RetriageRow))
