"""Generated texts about groups in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from torchtriage.domain.suggestion import Suggestion
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import GroupRow, SuggestionRow


def keep(session: Session, group_id: str, made: Suggestion) -> None:
    """Keeps what was made for a group, if it is still there, in place of what was."""
    number = number_of(group_id)
    if session.get(GroupRow, number) is None:
        return
    row = {"text": made.text, "model": made.model, "made_at": made.made_at}
    adding = insert(session, SuggestionRow).values(group_number=number, **row)
    session.execute(adding.on_conflict_do_update(index_elements=["group_number"], set_=row))


def of(session: Session, group_id: str) -> Suggestion | None:
    """-> what was made for a group, or None."""
    row = session.execute(
        select(SuggestionRow).where(SuggestionRow.group_number == number_of(group_id))
    ).scalar_one_or_none()
    return Suggestion(row.text, row.model, row.made_at) if row else None
