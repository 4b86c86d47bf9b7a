"""The progress of back-tests. Each function is one step of the caller's transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete, select, update
from sqlalchemy.orm import Session

from torchtriage.storage.database import lock
from torchtriage.storage.pagination import number_of
from torchtriage.storage.retriage_job import StoredProgress
from torchtriage.storage.tables import BackTestRow


def read(session: Session, draft_id: str) -> StoredProgress | None:
    """Returns the latest back-test of a draft, or None."""
    row = session.get(BackTestRow, number_of(draft_id))
    return StoredProgress(row.run, row.stage, row.seen_at, row.progress) if row else None


def hold(session: Session, stage: str, since: datetime) -> str | None:
    """Prevents other back-tests from starting until the transaction ends. Returns the draft that has a back-test in
    this stage with a write since then, or None."""
    lock(session, "back-tests")
    alive = select(BackTestRow.draft_number).where(BackTestRow.stage == stage, BackTestRow.seen_at > since)
    number = session.execute(alive.limit(1)).scalar_one_or_none()
    return str(number) if number is not None else None


def begin(session: Session, draft_id: str, noted: StoredProgress) -> None:
    """Replaces the draft's latest back-test. Call `hold` first."""
    number = number_of(draft_id)
    session.execute(delete(BackTestRow).where(BackTestRow.draft_number == number))
    session.add(
        BackTestRow(
            draft_number=number, run=noted.run, stage=noted.stage, seen_at=noted.seen_at, progress=noted.progress
        )
    )
    session.flush()


def note(session: Session, noted: StoredProgress) -> bool:
    """Stores the progress of this run. Returns False if the run was cancelled or replaced by another."""
    changes = {"stage": noted.stage, "seen_at": noted.seen_at, "progress": noted.progress}
    done = session.execute(update(BackTestRow).where(BackTestRow.run == noted.run).values(changes))
    return bool(cast(CursorResult[Any], done).rowcount)


def cancel(session: Session, draft_id: str, stage: str, cancelled: str) -> None:
    """Cancels the back-test of a draft if it is in this stage. Its worker notices at its next write of the progress."""
    mine = (BackTestRow.draft_number == number_of(draft_id), BackTestRow.stage == stage)
    session.execute(update(BackTestRow).where(*mine).values(run="", stage=cancelled))
