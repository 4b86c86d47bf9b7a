"""Feedback in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from torchtriage.domain.incident import Feedback, FeedbackVerdict
from torchtriage.errors import NotFound
from torchtriage.storage.incidents import is_id
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import FeedbackRow, IncidentRow

LOOKED_AT = 1000  # maximum incidents of a group whose feedback is read


def add(session: Session, incident_id: str, given: Feedback) -> None:
    """Stores feedback about an incident. Raises NotFound."""
    row = session.execute(select(IncidentRow.number, IncidentRow.entry).where(is_id(incident_id))).one_or_none()
    if row is None:
        raise NotFound("no such incident", incident=incident_id[:100])
    session.add(
        FeedbackRow(
            incident_number=row.number,
            about=row.entry,
            verdict=given.verdict,
            entry=given.entry,
            note=given.note,
            by=given.by,
            at=given.at,
        )
    )
    session.flush()


def remove(session: Session, incident_id: str, by: str, at: datetime) -> Feedback:
    """Deletes the feedback that a person gave about an incident at that time, and returns it. Raises NotFound."""
    row = session.execute(
        select(FeedbackRow)
        .join(IncidentRow, IncidentRow.number == FeedbackRow.incident_number)
        .where(is_id(incident_id), FeedbackRow.by == by, FeedbackRow.at == at)
        .limit(1)
    ).scalar_one_or_none()
    if row is None:
        raise NotFound("you gave no such feedback", incident=incident_id[:100])
    removed = _feedback(row)
    session.delete(row)
    session.flush()
    return removed


def of_entry(session: Session, entry: str) -> tuple[int, int]:
    """Returns how often verdicts with this entry were judged right, and how often wrong."""
    right = func.sum(case((FeedbackRow.verdict == "right", 1), else_=0))
    query = select(func.coalesce(right, 0), func.count()).where(FeedbackRow.about == entry)
    agreed, all_of_them = session.execute(query).one()
    return int(agreed), int(all_of_them - agreed)


def notes_of_entry(session: Session, entry: str, most: int) -> list[tuple[str, Feedback]]:
    """Returns people's notes on verdicts with this entry, each with the incident's id, newest first."""
    return _notes(session, select(FeedbackRow).where(FeedbackRow.about == entry), most)


def notes_of_group(session: Session, group: str, but: str, most: int) -> list[tuple[str, Feedback]]:
    """Returns people's notes on the group's latest LOOKED_AT incidents except `but`, each with the incident's id,
    newest first."""
    return _notes(session, _of_group(group, IncidentRow.number != number_of(but)), most)


def of_group(session: Session, group: str) -> list[tuple[str, Feedback]]:
    """Returns all feedback about the group's latest LOOKED_AT incidents, each with the incident's id, newest first."""
    return _feedback_of(session, _of_group(group).order_by(FeedbackRow.number.desc()))


def _of_group(group: str, *conditions: ColumnElement[bool]) -> Select[FeedbackRow]:
    number = IncidentRow.number
    latest = select(number).where(IncidentRow.group_number == number_of(group), *conditions)
    found = latest.order_by(IncidentRow.received_at.desc(), number.desc()).limit(LOOKED_AT).subquery()
    return select(FeedbackRow).join(found, found.c.number == FeedbackRow.incident_number)


def _notes(session: Session, query: Select[FeedbackRow], most: int) -> list[tuple[str, Feedback]]:
    return _feedback_of(
        session, query.where(FeedbackRow.note.is_not(None)).order_by(FeedbackRow.number.desc()).limit(most)
    )


def _feedback_of(session: Session, query: Select[FeedbackRow]) -> list[tuple[str, Feedback]]:
    rows = session.execute(query).scalars()
    return [(str(row.incident_number), _feedback(row)) for row in rows]


def _feedback(row: FeedbackRow) -> Feedback:
    return Feedback(cast(FeedbackVerdict, row.verdict), row.by, row.at, row.entry, row.note)
