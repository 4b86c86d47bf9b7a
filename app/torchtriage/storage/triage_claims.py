"""The incidents that need triage, and their claims. Each function is one step of the caller's transaction.

A try that never ended proves little about its log: services are killed, machines lose power. But one log can also bring
everything down, for example if a whole container runs out of memory. So each lost try is counted, and after a few the
pauses between tries grow. Such a log then blocks nobody, and its tries last for hours, so only a log that is itself the
cause uses all of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast as cast_to

from sqlalchemy import (
    BindParameter,
    Table,
    Text,
    bindparam,
    cast,
    column,
    exists,
    func,
    null,
    or_,
    select,
    table,
    update,
)
from sqlalchemy.orm import Session

from torchtriage.domain.incident import Job, State, StoredFile, StoredLog
from torchtriage.storage.database import lock
from torchtriage.storage.incidents import OPEN, change, is_id
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import FileRow, IncidentRow

MAX_TRIES = 10
NO_LOG = "the stored log is "  # failures because of a damaged or missing log begin like this
_IMMEDIATE_TRIES = 3  # tries without a pause, as around a bad deployment
_PAUSE = timedelta(minutes=1)  # before the next try; doubled for each further one
_JITTER = 1.5  # random factor, so that two lost together are not always tried together
_MAX_PAUSE = timedelta(hours=2)  # maximum pause; a later time was set before the clock was set back
_INCIDENTS, _OF_LOGS = cast_to(Table, IncidentRow.__table__), cast_to(Table, FileRow.__table__)
# Statements for every triage, built once.
_THESE: BindParameter[int] = bindparam("numbers", expanding=True)
_CLAIMED = (
    select(_INCIDENTS.c.number, _INCIDENTS.c.tries, _INCIDENTS.c.next_try, _INCIDENTS.c.job, _INCIDENTS.c.log_sha256)
    .where(_INCIDENTS.c.number.in_(_THESE), _INCIDENTS.c.state.in_(bindparam("states", expanding=True)))
    .order_by(_INCIDENTS.c.number)  # always locked in the same order
    .with_for_update()
)
_CLAIM = (
    update(_INCIDENTS)
    .where(_INCIDENTS.c.number.in_(_THESE))
    .values(state=State.TRIAGING, tries=_INCIDENTS.c.tries + 1, next_try=null())
)
_PUT_OFF = update(_INCIDENTS).where(_INCIDENTS.c.number == bindparam("of"))
_FILES = (
    select(_OF_LOGS.c.incident_number, _OF_LOGS.c.name, _OF_LOGS.c.sha256, _OF_LOGS.c.bytes, _OF_LOGS.c.lines)
    .where(_OF_LOGS.c.incident_number.in_(_THESE))
    .order_by(_OF_LOGS.c.incident_number, _OF_LOGS.c.position)
)
_FILES_AT_ONCE = 1000  # maximum names in one statement
_WITHOUT_LOG = (
    select(_INCIDENTS.c.number)
    .where(
        _INCIDENTS.c.number.in_(
            select(_OF_LOGS.c.incident_number).where(_OF_LOGS.c.sha256.in_(bindparam("digests", expanding=True)))
        ),
        _INCIDENTS.c.state == State.FAILED,
        _INCIDENTS.c.failure.startswith(NO_LOG),
    )
    .order_by(_INCIDENTS.c.number)
    .with_for_update(skip_locked=True)  # whoever has the lock does the same
)
_JOBS = table("procrastinate_jobs", column("queueing_lock"), column("status"))  # a finished job is deleted


def waiting(session: Session, now: datetime) -> list[tuple[str, int]]:
    """Returns (id, bytes of the log) of the incidents that need triage; on Postgres, only those without a queued job.

    The ones with the fewest lost tries come first, so that one that brings the service down delays no other.
    """
    total = select(func.sum(FileRow.bytes)).where(FileRow.incident_number == IncidentRow.number).scalar_subquery()
    later = IncidentRow.next_try
    due = or_(later.is_(None), later <= now, later > now + _MAX_PAUSE)
    query = select(IncidentRow.number, total).where(IncidentRow.state.in_(OPEN), due)
    query = query.order_by(IncidentRow.tries, IncidentRow.number)
    if session.get_bind().dialect.name == "postgresql":
        lock(session, "put what waits into the queue")
        # A running job counts only while it has the incident: a report may have arrived after its last look.
        counts = or_(cast(_JOBS.c.status, Text) == "todo", IncidentRow.state == State.TRIAGING)
        query = query.where(~exists().where(_JOBS.c.queueing_lock == cast(IncidentRow.number, Text), counts))
    return [(str(number), int(size)) for number, size in session.execute(query)]


@dataclass(frozen=True, slots=True)
class Claimed:
    """An incident whose triage begins: the number of this try (from 1), and what the triage needs."""

    tries: int
    job: Job
    log: StoredLog


def claim(session: Session, incident_ids: Sequence[str], now: datetime) -> dict[str, Claimed]:
    """received → triaging. Returns the claimed incidents by id, without those that were deleted, are final, or must
    wait.

    The queue ensures that one process at a time has an incident. So an incident already in triaging has lost its
    process.
    """
    connection = session.connection()
    wanted = {number_of(incident_id): incident_id for incident_id in incident_ids}
    rows = connection.execute(_CLAIMED, {"numbers": list(wanted), "states": OPEN}).all()
    ready = [row for row in rows if row.next_try is None or not now < row.next_try <= now + _MAX_PAUSE]
    if not ready:
        return {}
    connection.execute(_CLAIM, {"numbers": [row.number for row in ready]})
    if lost := [row for row in ready if row.tries + 1 >= _IMMEDIATE_TRIES]:
        connection.execute(_PUT_OFF, [{"of": row.number, "next_try": _after_loss(row.tries + 1, now)} for row in lost])
    files: dict[int, list[StoredFile]] = {row.number: [] for row in ready}
    for number, *file in connection.execute(_FILES, {"numbers": list(files)}):
        files[number].append(StoredFile(*file))
    return {
        wanted[row.number]: Claimed(row.tries + 1, Job(**row.job), StoredLog(row.log_sha256, tuple(files[row.number])))
        for row in ready
    }


def hand_back(session: Session, incident_id: str) -> None:
    """triaging → received. This try does not count."""
    claimed = [is_id(incident_id), IncidentRow.state == State.TRIAGING]
    change(session, claimed, {"state": State.RECEIVED, "tries": IncidentRow.tries - 1, "next_try": None})


def retry_failed(session: Session, digests: Sequence[str]) -> bool:
    """failed → received, for incidents that failed because one of these files was missing or damaged. Returns whether
    there were any."""
    numbers: set[int] = set()
    for at in range(0, len(digests), _FILES_AT_ONCE):
        some = digests[at : at + _FILES_AT_ONCE]
        numbers.update(session.connection().execute(_WITHOUT_LOG, {"digests": some}).scalars())
    again = {"state": State.RECEIVED, "failure": None, "triaged_at": None, "tries": 0, "next_try": None}
    return bool(numbers) and change(session, [IncidentRow.number.in_(numbers)], again)


def _after_loss(tries: int, now: datetime) -> datetime | None:
    """Returns the time of the next try if this one is lost, too. None means at once."""
    if not _IMMEDIATE_TRIES <= tries < MAX_TRIES:
        return None
    pauses: float = 2 ** (tries - _IMMEDIATE_TRIES) * random.uniform(1, _JITTER)
    return now + _PAUSE * pauses
