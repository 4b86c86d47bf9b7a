"""The progress of a database's retriage. Each function is one step of the caller's transaction."""

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
class StoredProgress:
    """The stored progress of a job: the id of its run, its stage, the time of the last write, and its content."""

    run: str
    stage: str
    seen_at: datetime
    progress: dict[str, Any]


def read(session: Session) -> StoredProgress | None:
    """Returns the latest retriage, or None if it was discarded."""
    row = session.get(RetriageRow, _NUMBER)
    return StoredProgress(row.run, row.stage, row.seen_at, row.progress) if row else None


def hold(session: Session) -> StoredProgress | None:
    """Returns the same, and prevents others from starting or discarding a retriage until the transaction ends."""
    lock(session, "retriage")
    return read(session)


def begin(session: Session, noted: StoredProgress) -> None:
    """Replaces the previous retriage. Call `hold` first."""
    discard(session)
    session.add(
        RetriageRow(number=_NUMBER, run=noted.run, stage=noted.stage, seen_at=noted.seen_at, progress=noted.progress)
    )
    session.flush()


def note(session: Session, noted: StoredProgress) -> bool:
    """Stores the progress of this run. Returns False if another run has replaced it."""
    changes = {"stage": noted.stage, "seen_at": noted.seen_at, "progress": noted.progress}
    done = session.execute(update(RetriageRow).where(RetriageRow.run == noted.run).values(changes))
    return bool(cast(CursorResult[Any], done).rowcount)


def discard(session: Session) -> None:
    """Deletes the retriage. Call `hold` first."""
    session.execute(delete(RetriageRow))
