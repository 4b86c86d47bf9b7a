"""New incidents. What is written for each log that is accepted is written here, by statements made once and without the
ORM, which takes longer than all else that is done to accept a log; many logs share each statement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, bindparam, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from torchtriage.domain.incident import Job, State, StoredFile, StoredLog
from torchtriage.storage import full_text_search
from torchtriage.storage.tables import FileRow, IncidentRow

LONGEST_JOB_ID = 64  # characters: an index holds it beside others
_INCIDENTS = cast(Table, IncidentRow.__table__)
_ADD = {
    dialect: insert(_INCIDENTS)
    .on_conflict_do_nothing(index_elements=["request"])
    .returning(_INCIDENTS.c.request, _INCIDENTS.c.number)
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
_KNOWN = select(_INCIDENTS.c.request, _INCIDENTS.c.number).where(
    _INCIDENTS.c.request.in_(bindparam("requests", expanding=True))
)
_ADD_FILES = insert(cast(Table, FileRow.__table__))


@dataclass(frozen=True, slots=True)
class Received:
    """A log that is kept, and what its sender said about it."""

    job: Job
    log: StoredLog
    at: datetime


def add(session: Session, received: Sequence[Received]) -> list[tuple[str, bool]]:
    """Keeps new incidents in state received -> (id, True) of each, in their order.

    The same log of the same job and attempt is the incident that exists -> (its id, False).
    """
    if not received:
        return []
    requests = [_request(one.job, one.log) for one in received]
    first = dict(reversed(list(zip(requests, received, strict=True))))
    connection = session.connection()
    # In an order that all keep to: where two transactions add the same ones, neither waits for the other in a circle.
    rows = [incident_row(first[request]) for request in sorted(first)]
    added: dict[str, int] = dict(iter(connection.execute(_ADD[connection.dialect.name], rows)))
    numbers = dict(added)
    if known := [request for request in first if request not in added]:
        numbers |= dict(iter(connection.execute(_KNOWN, {"requests": known})))
    if added:
        connection.execute(
            _ADD_FILES, [row for request in added for row in file_rows(added[request], first[request].log)]
        )
        full_text_search.put_all(session, {number: job_text(first[request].job) for request, number in added.items()})
    return [
        (str(numbers[request]), request in added and first[request] is one)
        for request, one in zip(requests, received, strict=True)
    ]


def job_text(job: Job) -> str:
    """-> what of a job is searched."""
    told = (*(value for name, value in job.to_json().items() if name != "reports"), *job.labels.values())
    return "\n".join(str(value) for value in told if not isinstance(value, bool))


def incident_row(received: Received) -> dict[str, Any]:
    """-> the columns of an incident that waits for its triage."""
    job = received.job
    return {
        "request": _request(job, received.log),
        "received_at": received.at,
        "state": State.RECEIVED,
        "tries": 0,
        "job": job.to_json(),
        "job_id": job.job_id[:LONGEST_JOB_ID] if job.job_id else None,
        "attempt": job.attempt,
        "cluster": job.cluster,
        "user": job.user,
        "log_sha256": received.log.sha256,
    }


def log_of(files: Sequence[StoredFile]) -> StoredLog:
    """-> these files as one log. With several, its digest is that of their digests and names."""
    if len(files) == 1:
        return StoredLog(files[0].sha256, tuple(files))
    listed = sorted(f"{file.sha256} {file.name}\n" for file in files)
    return StoredLog(hashlib.sha256("".join(listed).encode()).hexdigest(), tuple(files))


def file_rows(number: int, log: StoredLog) -> list[dict[str, Any]]:
    """-> the columns of each file of an incident's log."""
    return [
        {
            "incident_number": number,
            "position": position,
            "name": file.name,
            "sha256": file.sha256,
            "bytes": file.bytes,
            "lines": file.lines,
        }
        for position, file in enumerate(log.files)
    ]


def _request(job: Job, log: StoredLog) -> str:
    """-> what a repeat of a request has in common with it. Two clusters can have given out the same job id. The
    last report of a run is another one than a provisional report with the same log."""
    parts = [job.cluster or "", job.job_id or "", str(job.attempt or 0), log.sha256]
    parts += ["provisional"] if job.provisional else []
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
