"""The rows of incident lists. Each function is one step of the caller's transaction.

Reads only those parts of a stored verdict that a row shows, because building all objects takes ten times as long.
Python extracts them, because Postgres refuses to read JSON with half a surrogate pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from torchtriage.domain.group import GroupMark, GroupStatus
from torchtriage.domain.incident import IncidentFilter, Job, State
from torchtriage.domain.incident_summary import AnswerSummary, IncidentSummary, RootSummary, SenderReport
from torchtriage.domain.json_form import from_json_form
from torchtriage.domain.retry import retry_word
from torchtriage.errors import DamagedJson
from torchtriage.storage import incident_list
from torchtriage.storage.incidents import DAMAGED
from torchtriage.storage.pagination import Page, number_of
from torchtriage.storage.tables import GroupRow, IncidentRow

_COLUMNS = (
    IncidentRow.number,
    IncidentRow.state,
    IncidentRow.received_at,
    IncidentRow.job,
    IncidentRow.outcome,
    IncidentRow.gpu_hours,
    IncidentRow.failure,
    IncidentRow.verdict,
    GroupRow.number.label("group_number"),
    GroupRow.status,
    GroupRow.count.label("group_count"),
    GroupRow.owner,
)


def listed(session: Session, wanted: IncidentFilter, limit: int, cursor: str | None) -> Page[IncidentSummary]:
    """Returns a page of matching incidents, newest first. Raises BadCursor."""
    page = incident_list.listed(session, wanted, limit, cursor)
    numbers = [found.number for found in page.items]
    known = _known(session, numbers)
    return Page(tuple(known[number] for number in numbers), page.next, page.previous)


def newest_by_sender(session: Session, most: int) -> dict[str, SenderReport]:
    """Returns, among the latest `most` incidents, the newest of each scheduler and of each label `source`."""
    row = IncidentRow
    scheduler, source = row.job["scheduler"].as_string(), row.job["labels"]["source"].as_string()
    columns = (row.number, row.received_at, func.coalesce(source, scheduler).label("sender"))
    latest = select(*columns).order_by(row.received_at.desc(), row.number.desc()).limit(most).subquery()
    found: dict[str, SenderReport] = {}
    query = select(latest).where(latest.c.sender.is_not(None)).order_by(latest.c.received_at, latest.c.number)
    for number, at, sender in session.execute(query):
        found[sender] = SenderReport(str(number), at)
    return found


def many(session: Session, incident_ids: Sequence[str]) -> list[IncidentSummary]:
    """Returns those of the incidents that exist, in the order of the ids."""
    numbers = [number_of(incident_id) for incident_id in incident_ids]
    known = _known(session, numbers)
    return [known[number] for number in dict.fromkeys(numbers) if number in known]


def _known(session: Session, numbers: Sequence[int]) -> dict[int, IncidentSummary]:
    query = select(*_COLUMNS).join(GroupRow, IncidentRow.group_number == GroupRow.number, isouter=True)
    rows = session.connection().execute(query.where(IncidentRow.number.in_(numbers))).all()
    return {row.number: _summary(row) for row in rows}


def _summary(row: Row[Any]) -> IncidentSummary:
    common = {
        "id": str(row.number),
        "received_at": row.received_at,
        "gpu_hours_lost": row.gpu_hours,
        "group": GroupMark(str(row.group_number), GroupStatus(row.status), row.group_count) if row.status else None,
        "group_owner": row.owner,
    }
    verdict = row.verdict or {}
    root, answer, action = (verdict.get(part) for part in ("root_cause", "answer", "action"))
    try:
        return IncidentSummary(
            state=State(row.state),
            job=from_json_form(Job, row.job),
            outcome=row.outcome,
            root=from_json_form(RootSummary, root) if root is not None else None,
            answer=from_json_form(AnswerSummary, answer) if answer is not None else None,
            retry=retry_word(action["retry"], action["advice"]) if action else None,
            failure=row.failure,
            **common,
        )
    except DamagedJson as error:  # one damaged verdict must not hide the other rows; its log is still available
        return IncidentSummary(state=State.FAILED, job=Job(), failure=DAMAGED.format(error.message), **common)
