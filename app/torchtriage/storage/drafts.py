"""Drafts of entries in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from torchtriage.domain.draft import Draft, StoredDraft
from torchtriage.domain.entry import Text
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.errors import BadInput, NotFound
from torchtriage.storage.database import lock
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import DraftRow


class EntryTaken(BadInput):
    """Another draft has this entry's id."""

    status = 409
    code = "entry_taken"


class EditedMeanwhile(BadInput):
    """Somebody else changed the draft after it was read."""

    status = 409
    code = "edited_meanwhile"


def listed(session: Session) -> list[StoredDraft]:
    """-> all drafts, the one that was changed last first."""
    query = select(DraftRow).order_by(DraftRow.changed_at.desc(), DraftRow.number.desc())
    return [_stored(row) for row in session.execute(query).scalars()]


def read(session: Session, draft_id: str) -> StoredDraft:
    """Raises NotFound."""
    return _stored(_row(session, draft_id))


def of_incident(session: Session, incident_id: str) -> StoredDraft | None:
    """-> the draft that was made from an incident last, if there is one."""
    query = select(DraftRow).where(DraftRow.incident_number == number_of(incident_id))
    row = session.execute(query.order_by(DraftRow.number.desc()).limit(1)).scalar_one_or_none()
    return _stored(row) if row else None


def add(session: Session, draft: Draft, expect: Text | None, incident_id: str | None, by: str, at: datetime) -> str:
    """Keeps a new draft -> its id. Raises EntryTaken."""
    _refuse_taken(session, draft.entry, None)
    row = DraftRow(entry=draft.entry, revision=1, document=fields_form(draft), expect=_form(expect), created_by=by,
                   created_at=at, changed_by=by, changed_at=at,
                   incident_number=number_of(incident_id) if incident_id else None)  # fmt: skip
    session.add(row)
    session.flush()
    return str(row.number)


def change(
    session: Session, draft_id: str, revision: int, draft: Draft, expect: Text | None, by: str, at: datetime
) -> StoredDraft:
    """Keeps a draft as it is now -> as it was. Raises NotFound, EntryTaken, and EditedMeanwhile where `revision` is no
    longer the one that is kept."""
    row = held(session, draft_id, revision)
    _refuse_taken(session, draft.entry, row.number)
    before = _stored(row)
    row.entry, row.document, row.expect = draft.entry, fields_form(draft), _form(expect)
    _changed(row, by, at)
    return before


def remove(session: Session, draft_id: str, revision: int) -> StoredDraft:
    """-> the draft as it was. Raises NotFound, EditedMeanwhile."""
    before = _stored(held(session, draft_id, revision))
    session.execute(delete(DraftRow).where(DraftRow.number == number_of(draft_id)))
    return before


def held(session: Session, draft_id: str, revision: int) -> DraftRow:
    """-> the row of a draft, which nobody else changes until the transaction ends. For this layer only.

    Raises NotFound, EditedMeanwhile.
    """
    lock(session, "drafts")
    row = _row(session, draft_id)
    if row.revision != revision:
        raise EditedMeanwhile(
            f"{row.changed_by} has changed this draft meanwhile", draft=draft_id, revision=row.revision
        )
    return row


def _changed(row: DraftRow, by: str, at: datetime) -> None:
    row.revision += 1
    row.changed_by, row.changed_at = by, at


def _refuse_taken(session: Session, entry: str, number: int | None) -> None:
    lock(session, "drafts")
    other = session.execute(select(DraftRow.number).where(DraftRow.entry == entry)).scalar_one_or_none()
    if other is not None and other != number:
        raise EntryTaken(f"draft {other} has this id already", draft=str(other))


def _row(session: Session, draft_id: str) -> DraftRow:
    row = session.get(DraftRow, number_of(draft_id), populate_existing=True)
    if row is None:
        raise NotFound("no such draft", draft=draft_id[:100])
    return row


def _form(expect: Text | None) -> dict[str, Any] | None:
    return fields_form(expect) if expect else None


def _stored(row: DraftRow) -> StoredDraft:
    return StoredDraft(
        id=str(row.number),
        revision=row.revision,
        draft=from_json_form(Draft, row.document),
        created_by=row.created_by,
        created_at=row.created_at,
        changed_by=row.changed_by,
        changed_at=row.changed_at,
        incident=str(row.incident_number) if row.incident_number is not None else None,
        expect=from_json_form(Text, row.expect) if row.expect else None,
    )
