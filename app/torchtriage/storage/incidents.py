"""Incidents in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session, joinedload, selectinload

from torchtriage.domain.group import GroupMark, GroupStatus
from torchtriage.domain.incident import (
    Feedback,
    FeedbackVerdict,
    Incident,
    IncidentFilter,
    Job,
    State,
    StoredFile,
    StoredLog,
)
from torchtriage.domain.json_form import from_json_form
from torchtriage.domain.timestamps import iso
from torchtriage.errors import DamagedJson, NotFound
from torchtriage.storage import daily_counts, full_text_search, group_merging, incident_list
from torchtriage.storage.database import lock
from torchtriage.storage.pagination import Page, number_of
from torchtriage.storage.tables import FileRow, IncidentRow
from torchtriage.storage.verdict_json import from_stored

DAMAGED = "its stored verdict is damaged ({}); the log is kept: delete the incident and send the log again"
OPEN = [State.RECEIVED, State.TRIAGING]
# Parts of an incident from other tables.
_PARTS = (
    selectinload(IncidentRow.feedback),
    joinedload(IncidentRow.group),
)


def read(session: Session, incident_id: str) -> Incident:
    """Returns the incident. Raises NotFound."""
    found = _incidents(session, [number_of(incident_id)])
    if not found:
        raise _unknown(incident_id)
    return next(iter(found.values()))


def many(session: Session, incident_ids: list[str]) -> list[Incident]:
    """Returns those of the incidents that exist, sorted by id."""
    return list(_incidents(session, [number_of(incident_id) for incident_id in incident_ids]).values())


def listed(session: Session, wanted: IncidentFilter, limit: int, cursor: str | None) -> Page[Incident]:
    """Returns a page of matching incidents, newest first. Raises BadCursor."""
    page = incident_list.listed(session, wanted, limit, cursor)
    known = _incidents(session, [found.number for found in page.items])
    return Page(tuple(known[found.number] for found in page.items), page.next, page.previous)


def ended(session: Session, incident_ids: list[str]) -> list[str]:
    """Returns those ids that need no more waiting: triaged, failed or deleted."""
    numbers = [number_of(incident_id) for incident_id in incident_ids]
    query = select(IncidentRow.number).where(IncidentRow.number.in_(numbers), IncidentRow.state.in_(OPEN))
    left = {str(number) for number in session.execute(query).scalars()}
    return [incident_id for incident_id in incident_ids if incident_id not in left]


def queued(session: Session) -> tuple[int, datetime | None]:
    """Returns the number of incidents without a final state, and when the oldest of them was received."""
    query = select(func.count(), func.min(IncidentRow.received_at)).where(IncidentRow.state.in_(OPEN))
    depth, oldest = session.execute(query).one()
    return depth, oldest


def received_before(session: Session, moment: datetime, limit: int) -> list[str]:
    """Returns the ids of at most `limit` incidents older than `moment`, oldest first."""
    query = select(IncidentRow.number).where(IncidentRow.received_at < moment)
    query = query.order_by(IncidentRow.received_at, IncidentRow.number).limit(limit)
    return [str(number) for number in session.execute(query).scalars()]


def count(session: Session, before: datetime | None = None) -> int:
    """Returns the number of incidents, or of those received before a time."""
    query = select(func.count()).select_from(IncidentRow)
    return session.execute(query if before is None else query.where(IncidentRow.received_at < before)).scalar_one()


def digests_after(session: Session, last: str, limit: int) -> list[str]:
    """Returns the digests of at most `limit` stored files that follow `last` in sorted order."""
    query = select(FileRow.sha256).distinct().where(FileRow.sha256 > last).order_by(FileRow.sha256).limit(limit)
    return list(session.execute(query).scalars())


def having(session: Session, digest: str) -> list[str]:
    """Returns the ids of incidents whose log contains this file, oldest first."""
    query = select(FileRow.incident_number).distinct().where(FileRow.sha256 == digest)
    return [str(number) for number in session.execute(query.order_by(FileRow.incident_number)).scalars()]


class Removed(NamedTuple):
    """What remains of a deleted incident: the digests of its files, and its details for the audit log."""

    digests: tuple[str, ...]
    audit_detail: dict[str, Any]


def remove(session: Session, incident_id: str) -> Removed:
    """Deletes an incident and returns what remains. Raises NotFound."""
    group = session.execute(select(IncidentRow.group_number).where(is_id(incident_id))).scalar_one_or_none()
    if group is not None:
        group_merging.lock_before_leaving(session, group)
    row = session.execute(select(IncidentRow).where(is_id(incident_id)).with_for_update()).scalar_one_or_none()
    if row is None:
        raise _unknown(incident_id)
    files = session.execute(select(FileRow.sha256).where(FileRow.incident_number == row.number)).scalars().all()
    full_text_search.remove(session, row.number)
    session.execute(delete(FileRow).where(FileRow.incident_number == row.number))
    session.execute(delete(IncidentRow).where(IncidentRow.number == row.number))
    if row.group_number is not None:
        group_merging.leave(session, row.group_number)
    daily_counts.update(session, daily_counts.of(row), None)
    return Removed(tuple(dict.fromkeys(files)), _audit_detail(row))


def lock_files(session: Session, digests: Iterable[str], *, shared: bool = False) -> None:
    """Locks these files until the transaction ends: nobody else deletes them and, unless `shared`, nobody accepts them.

    Locks by folder, because a log can have more files than a database can lock names.
    """
    lock(session, *(f"files {folder}" for folder in sorted({digest[:2] for digest in digests})), shared=shared)


def unused(session: Session, digests: Iterable[str]) -> list[str]:
    """Returns those of `digests` that no incident's log contains."""
    wanted = list(digests)
    used = set(session.execute(select(FileRow.sha256).where(FileRow.sha256.in_(wanted))).scalars())
    return [digest for digest in wanted if digest not in used]


def is_id(incident_id: str) -> ColumnElement[bool]:
    return IncidentRow.number == number_of(incident_id)


def _unknown(incident_id: str) -> NotFound:
    return NotFound("no such incident", incident=incident_id[:100])


def change(session: Session, conditions: list[ColumnElement[bool]], changes: dict[str, Any]) -> bool:
    changing = update(IncidentRow).where(*conditions).values(changes).returning(IncidentRow.number)
    options = {"synchronize_session": False}
    return bool(session.execute(changing, execution_options=options).scalars().all())


def _incidents(session: Session, numbers: Collection[int]) -> dict[int, Incident]:
    """Returns those of the incidents that exist, sorted by number."""
    query = select(IncidentRow).where(IncidentRow.number.in_(numbers)).order_by(IncidentRow.number).options(*_PARTS)
    rows = session.execute(query).scalars().all()
    files = _files(session, [row.number for row in rows])
    return {row.number: _incident(row, tuple(files[row.number])) for row in rows}


def _files(session: Session, numbers: Collection[int]) -> dict[int, list[StoredFile]]:
    """Returns the files of each incident in order. Reads plain rows without the ORM, because a log can have
    thousands."""
    columns = FileRow.incident_number, FileRow.name, FileRow.sha256, FileRow.bytes, FileRow.lines
    query = select(*columns).where(FileRow.incident_number.in_(numbers))
    found: dict[int, list[StoredFile]] = {number: [] for number in numbers}
    for number, name, sha256, size, lines in session.execute(query.order_by(FileRow.incident_number, FileRow.position)):
        found[number].append(StoredFile(name, sha256, size, lines))
    return found


def _audit_detail(row: IncidentRow) -> dict[str, Any]:
    named = ("state", "outcome", "entry", "cluster", "user", "job_id", "attempt", "log_sha256")
    values = {name: getattr(row, name) for name in named}
    group = str(row.group_number) if row.group_number else None
    return {"received_at": iso(row.received_at), **values, "job_name": row.job.get("job_name"), "group": group}


def _incident(row: IncidentRow, files: tuple[StoredFile, ...]) -> Incident:
    group = row.group
    known = Incident(
        id=str(row.number),
        state=State(row.state),
        received_at=row.received_at,
        job=Job(),
        log=StoredLog(row.log_sha256, files),
        group=GroupMark(str(group.number), GroupStatus(group.status), group.count) if group else None,
        triaged_at=row.triaged_at,
        failure=row.failure,
        gpu_hours_lost=row.gpu_hours,
        feedback=tuple(Feedback(cast(FeedbackVerdict, f.verdict), f.by, f.at, f.entry, f.note) for f in row.feedback),
    )
    try:
        job = from_json_form(Job, row.job)
        return replace(known, job=job, verdict=from_stored(row.verdict) if row.verdict is not None else None)
    except DamagedJson as error:  # one damaged verdict must not hide the other incidents; its log is still available
        return replace(known, state=State.FAILED, failure=DAMAGED.format(error.message))
