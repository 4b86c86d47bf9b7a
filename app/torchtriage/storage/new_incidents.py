"""Adds new incidents. The statements for each accepted log are built once, do not use the ORM, and serve many logs at a
time: the ORM would take longer than everything else."""

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

MAX_JOB_ID_LENGTH = 64  # characters, because it is part of an index
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
    """A stored log, and what its sender says about the job."""

    job: Job
    log: StoredLog
    at: datetime


def add(session: Session, received: Sequence[Received]) -> list[tuple[str, bool]]:
    """Adds incidents in state received. Returns (id, True) for each, in order.

    If an incident with the same log, job and attempt exists, returns (its id, False) instead.
    """
    if not received:
        return []
    requests = [_request(one.job, one.log) for one in received]
    first = dict(reversed(list(zip(requests, received, strict=True))))
    connection = session.connection()
    # Sorted, so that two transactions that add the same logs never wait for each other.
    rows = [incident_row(first[request]) for request in sorted(first)]
    added: dict[str, int] = dict(iter(connection.execute(_ADD[connection.dialect.name], rows)))
    numbers = dict(added)
    if known := [request for request in first if request not in added]:
        numbers |= dict(iter(connection.execute(_KNOWN, {"requests": known})))
    if added:
        connection.execute(
            _ADD_FILES, [row for request in added for row in file_rows(added[request], first[request].log)]
        )
        full_text_search.index_all(session, {number: job_text(first[request].job) for request, number in added.items()})
    return [
        (str(numbers[request]), request in added and first[request] is one)
        for request, one in zip(requests, received, strict=True)
    ]


def job_text(job: Job) -> str:
    """Returns the text of a job for full-text search."""
    values = (*(value for name, value in job.to_json().items() if name != "reports"), *job.labels.values())
    return "\n".join(str(value) for value in values if not isinstance(value, bool))


def incident_row(received: Received) -> dict[str, Any]:
    """Returns the columns of an incident that waits for triage."""
    job = received.job
    return {
        "request": _request(job, received.log),
        "received_at": received.at,
        "state": State.RECEIVED,
        "tries": 0,
        "job": job.to_json(),
        "job_id": job.job_id[:MAX_JOB_ID_LENGTH] if job.job_id else None,
        "attempt": job.attempt,
        "cluster": job.cluster,
        "user": job.user,
        "log_sha256": received.log.sha256,
    }


def log_of(files: Sequence[StoredFile]) -> StoredLog:
    """Returns these files as one log. The digest of several files is computed from their digests and names."""
    if len(files) == 1:
        return StoredLog(files[0].sha256, tuple(files))
    listed = sorted(f"{file.sha256} {file.name}\n" for file in files)
    return StoredLog(hashlib.sha256("".join(listed).encode()).hexdigest(), tuple(files))


def file_rows(number: int, log: StoredLog) -> list[dict[str, Any]]:
    """Returns the columns of each file of an incident's log."""
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
    """Returns the key by which a repeated request is recognized. It includes the cluster, because two clusters can use
    the same job id. A provisional report and a final one with the same log have different keys."""
    parts = [job.cluster or "", job.job_id or "", str(job.attempt or 0), log.sha256]
    parts += ["provisional"] if job.provisional else []
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
