"""Provisional reports of runs, which later reports of the same run replace. Each function is one step of the caller's
transaction."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import Table, delete, insert, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.incident import Job, State
from torchtriage.storage import full_text_search
from torchtriage.storage.new_incidents import MAX_JOB_ID_LENGTH, Received, file_rows, incident_row, job_text
from torchtriage.storage.tables import FileRow, IncidentRow

_NEWEST = 20  # incidents of a job that are checked
_SAME = ("user", "node_rank", "job_id")  # equal for reports of the same run, besides the columns of the index
_FILES = cast(Table, FileRow.__table__)


def replace(session: Session, received: Received) -> str | None:
    """Replaces job and log of the run's provisional incident, and puts it in state received. Returns its id, or None if
    there is none. The old verdict is removed; until the new one, the incident stays in its group and in the counts."""
    number = _provisional(session, received.job)
    new = incident_row(received)
    if number is None or _is_there(session, new["request"], number):
        return None
    del new["received_at"]  # the first report's time stays
    none = dict.fromkeys(("next_try", "triaged_at", "failure", "verdict"))
    session.execute(update(IncidentRow).where(IncidentRow.number == number).values(new | none))
    session.execute(delete(FileRow).where(FileRow.incident_number == number))
    session.execute(insert(_FILES), file_rows(number, received.log))
    full_text_search.replace(session, {number: job_text(received.job)})
    return str(number)


def _is_there(session: Session, request: str, number: int) -> bool:
    """Returns whether the same request was sent before and is a separate incident."""
    other = select(IncidentRow.number).where(IncidentRow.request == request, IncidentRow.number != number)
    return session.execute(other).scalar() is not None


def _provisional(session: Session, job: Job) -> int | None:
    """Locks and returns the newest incident of the job's run, if it is provisional."""
    if not job.job_id:
        return None
    row = IncidentRow
    same: list[Any] = [row.job_id == job.job_id[:MAX_JOB_ID_LENGTH], row.attempt.is_not_distinct_from(job.attempt)]
    same += [row.cluster.is_not_distinct_from(job.cluster), row.state != State.FAILED]
    query = select(row.number, row.job).where(*same).order_by(row.number.desc()).limit(_NEWEST).with_for_update()
    for number, known in session.execute(query):
        if all(known.get(name) == getattr(job, name) for name in _SAME):
            return int(number) if known.get("provisional") else None
    return None
