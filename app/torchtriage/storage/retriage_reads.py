"""What a retriage reads of incidents: their logs, and the keys of their verdicts. Each function is one step of the
caller's transaction."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Table, Text, bindparam, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from torchtriage.domain.incident import Job, State, StoredFile, StoredLog, VerdictKey
from torchtriage.storage.tables import FileRow, IncidentRow

_ENDED = [State.TRIAGED, State.FAILED]
_INCIDENTS, _OF_LOGS = cast(Table, IncidentRow.__table__), cast(Table, FileRow.__table__)
_KEPT = select(
    _INCIDENTS.c.number,
    _INCIDENTS.c.state,
    _INCIDENTS.c.job,
    _INCIDENTS.c.log_sha256,
    _INCIDENTS.c.outcome,
    _INCIDENTS.c.entry,
    _INCIDENTS.c.fingerprint,
    _INCIDENTS.c.case,
).where(_INCIDENTS.c.state.in_(_ENDED))
_OTHER = (
    _KEPT.where(
        _INCIDENTS.c.number > bindparam("after"),
        _INCIDENTS.c.knowledge.is_distinct_from(bindparam("of_knowledge")),
    )
    .order_by(_INCIDENTS.c.number)
    .limit(bindparam("most"))
)
_TRIAGED = (
    _KEPT.where(_INCIDENTS.c.number > bindparam("after"), _INCIDENTS.c.state == State.TRIAGED)
    .order_by(_INCIDENTS.c.number)
    .limit(bindparam("most"))
)
_SOME = _KEPT.where(_INCIDENTS.c.number.in_(bindparam("numbers", expanding=True))).order_by(_INCIDENTS.c.number)
_OLDER = select(_INCIDENTS.c.number, sql_cast(_INCIDENTS.c.verdict, Text)).where(
    _INCIDENTS.c.number.in_(bindparam("numbers", expanding=True))
)
_FILES = (
    select(_OF_LOGS.c.incident_number, _OF_LOGS.c.name, _OF_LOGS.c.sha256, _OF_LOGS.c.bytes, _OF_LOGS.c.lines)
    .where(_OF_LOGS.c.incident_number.in_(bindparam("numbers", expanding=True)))
    .order_by(_OF_LOGS.c.incident_number, _OF_LOGS.c.position)
)


@dataclass(frozen=True, slots=True)
class TriagedIncident:
    """An incident with a final state; `key` is None if its triage failed."""

    id: str
    job: Job
    log: StoredLog
    key: VerdictKey | None


def of_other_knowledge(session: Session, knowledge: str, after: int, most: int) -> list[TriagedIncident]:
    """Returns at most `most` incidents with a number above `after` that failed or have a verdict of other knowledge, in
    order."""
    return _kept(session, _OTHER, {"after": after, "of_knowledge": knowledge, "most": most})


def count_of_other_knowledge(session: Session, knowledge: str) -> int:
    """Returns the number of incidents that failed or have a verdict of other knowledge."""
    other = _INCIDENTS.c.knowledge.is_distinct_from(knowledge)
    counted = select(func.count()).select_from(_INCIDENTS).where(_INCIDENTS.c.state.in_(_ENDED), other)
    return session.execute(counted).scalar_one()


def triaged_after(session: Session, after: int, most: int) -> list[TriagedIncident]:
    """Returns at most `most` incidents with a number above `after` that have a verdict, in order."""
    return _kept(session, _TRIAGED, {"after": after, "most": most})


def ended_until(session: Session) -> int:
    """Returns the number up to which all incidents have a final state."""
    waiting = select(func.min(_INCIDENTS.c.number)).where(_INCIDENTS.c.state.not_in(_ENDED))
    first = session.execute(waiting).scalar_one()
    return first - 1 if first is not None else session.execute(select(func.max(_INCIDENTS.c.number))).scalar_one() or 0


def of_entry(session: Session, entry: str, case: str, most: int) -> list[str]:
    """Returns the ids of incidents with this entry as cause and, if `case` is given, with this case as answer; latest
    first."""
    query = select(_INCIDENTS.c.number).where(_INCIDENTS.c.entry == entry).order_by(_INCIDENTS.c.number.desc())
    if case:
        # is_not(None) is needed for the partial index
        query = query.where(_INCIDENTS.c.case == case, _INCIDENTS.c.case.is_not(None))
    return [str(number) for number in session.execute(query.limit(most)).scalars()]


def count_triaged(session: Session) -> int:
    """Returns the number of incidents with a verdict."""
    counted = select(func.count()).select_from(_INCIDENTS).where(_INCIDENTS.c.state == State.TRIAGED)
    return session.execute(counted).scalar_one()


def some(session: Session, numbers: list[int]) -> list[TriagedIncident]:
    """Returns those of these incidents that have a final state, sorted by number."""
    return _kept(session, _SOME, {"numbers": numbers})


def _kept(session: Session, query: object, asked: dict[str, object]) -> list[TriagedIncident]:
    connection = session.connection()
    rows = connection.execute(query, asked).all()  # type: ignore[call-overload]
    files: dict[int, list[StoredFile]] = defaultdict(list)
    for number, *file in connection.execute(_FILES, {"numbers": [row.number for row in rows]}):
        files[number].append(StoredFile(*file))
    older = [row.number for row in rows if row.case is None and row.state == State.TRIAGED]
    cases = {}
    if older:
        cases = {number: _stored_case(verdict) for number, verdict in connection.execute(_OLDER, {"numbers": older})}
    return [
        TriagedIncident(
            str(row.number),
            Job(**row.job),
            StoredLog(row.log_sha256, tuple(files[row.number])),
            _key(row, cases.get(row.number, row.case)) if row.state == State.TRIAGED else None,
        )
        for row in rows
    ]


def _key(row: Any, case: str | None) -> VerdictKey:
    # The part after a blank was added by a split.
    fingerprint = row.fingerprint and row.fingerprint.partition(" ")[0]
    return VerdictKey(row.outcome, row.entry, fingerprint, case)


def _stored_case(verdict: str) -> str | None:
    """Returns the answer's case from a verdict that was stored before incidents had a column for it. None if the
    verdict has no answer, as in release 0.1.0, or cannot be read."""
    try:
        answer = json.loads(verdict)["answer"]
        return answer and (answer["case"] or "")
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
