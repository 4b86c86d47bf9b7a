"""A language model's answers about incidents. Each function is one step of the caller's transaction."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from torchtriage.domain.explanation import Explanation
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import ExplanationRow, IncidentRow


def keep(session: Session, incident_id: str, made: Explanation) -> None:
    """Stores the answer about an incident; it replaces an earlier one. Does nothing if the incident was deleted."""
    number = number_of(incident_id)
    if session.get(IncidentRow, number) is None:
        return
    row = {"document": fields_form(made)}
    adding = insert(session, ExplanationRow).values(incident_number=number, **row)
    session.execute(adding.on_conflict_do_update(index_elements=["incident_number"], set_=row))


def of(session: Session, incident_id: str) -> Explanation | None:
    """Returns the answer about an incident, or None."""
    wanted = select(ExplanationRow.document).where(ExplanationRow.incident_number == number_of(incident_id))
    document = session.execute(wanted).scalar_one_or_none()
    return from_json_form(Explanation, document) if document else None
