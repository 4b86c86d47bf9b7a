"""Drafts of entries in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete, func, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.back_test import BackTest
from torchtriage.domain.draft import Draft, DraftState, StoredDraft
from torchtriage.domain.entry import Text
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.errors import BadInput, NotFound
from torchtriage.storage.database import lock
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import DraftRow, IncidentRow


class EntryTaken(BadInput):
    """Another draft has this entry's id."""

    status = 409
    code = "entry_taken"


class EditedMeanwhile(BadInput):
    """Somebody else changed the draft after it was read."""

    status = 409
    code = "edited_meanwhile"


class InUse(BadInput):
    """A draft that is tracked or in use cannot be changed."""

    status = 409
    code = "draft_in_use"


def listed(session: Session) -> list[StoredDraft]:
    """Returns all drafts, latest change first."""
    query = select(DraftRow).order_by(DraftRow.changed_at.desc(), DraftRow.number.desc())
    return [_stored(row) for row in session.execute(query).scalars()]


def read(session: Session, draft_id: str) -> StoredDraft:
    """Returns a draft. Raises NotFound."""
    return _stored(_row(session, draft_id))


def of_incident(session: Session, incident_id: str) -> StoredDraft | None:
    """Returns the latest draft made from an incident, or None."""
    query = select(DraftRow).where(DraftRow.incident_number == number_of(incident_id))
    row = session.execute(query.order_by(DraftRow.number.desc()).limit(1)).scalar_one_or_none()
    return _stored(row) if row else None


def add(session: Session, draft: Draft, expect: Text | None, incident_id: str | None, by: str, at: datetime) -> str:
    """Stores a new draft and returns its id. Raises EntryTaken."""
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
    """Stores the new text of a draft and returns the old draft. Raises NotFound, EntryTaken, InUse, and EditedMeanwhile
    if `revision` is not the current one."""
    row = held(session, draft_id, revision)
    if row.state != DraftState.DRAFT:
        raise InUse("the draft is tracked or in use; stop that first", draft=draft_id)
    _refuse_taken(session, draft.entry, row.number)
    before = _stored(row)
    row.entry, row.document, row.expect = draft.entry, fields_form(draft), _form(expect)
    _changed(row, by, at)
    return before


def remove(session: Session, draft_id: str, revision: int) -> StoredDraft:
    """Deletes a draft and returns it. Raises NotFound, EditedMeanwhile and InUse."""
    before = _stored(held(session, draft_id, revision))
    if before.state is not DraftState.DRAFT:
        raise InUse("the draft is tracked or in use; stop that first", draft=draft_id)
    session.execute(delete(DraftRow).where(DraftRow.number == number_of(draft_id)))
    return before


def move(session: Session, draft_id: str, revision: int, state: DraftState, by: str, at: datetime) -> StoredDraft:
    """Puts a draft into another state and returns the old draft. A tracked draft counts incidents received from now on.

    Raises NotFound and EditedMeanwhile.
    """
    row = held(session, draft_id, revision)
    before = _stored(row)
    row.state = state
    applied = state is DraftState.APPLIED
    row.approved_by, row.approved_at = (by, at) if applied else (None, None)
    if state is DraftState.TRACKING:
        row.tracked_to = session.execute(select(func.max(IncidentRow.number))).scalar_one() or 0
        row.tracking = None
    row.revision += 1  # changed_by stays, because the text does not change
    return before


def applied(session: Session) -> list[StoredDraft]:
    """Returns the drafts that are in use, sorted by entry id."""
    query = select(DraftRow).where(DraftRow.state == DraftState.APPLIED).order_by(DraftRow.entry)
    return [_stored(row) for row in session.execute(query).scalars()]


def tracked(session: Session) -> list[tuple[StoredDraft, int, BackTest]]:
    """Returns the tracked drafts, each with the number of the last incident checked and the counts."""
    query = select(DraftRow).where(DraftRow.state == DraftState.TRACKING).order_by(DraftRow.number)
    return [(_stored(row), row.tracked_to or 0, _tracking(row)) for row in session.execute(query).scalars()]


def tracking(session: Session, draft_id: str) -> BackTest:
    """Returns the counts of the draft's latest tracking. Raises NotFound."""
    return _tracking(_row(session, draft_id))


def count(session: Session, draft_id: str, since: int, until: int, counted: BackTest) -> bool:
    """Stores the counts up to the incident `until`. Returns False if another server did so, or if the draft is not
    tracked any more."""
    mine = (DraftRow.number == number_of(draft_id), DraftRow.tracked_to == since, DraftRow.state == DraftState.TRACKING)
    changes = {"tracked_to": until, "tracking": fields_form(counted)}
    done = session.execute(update(DraftRow).where(*mine).values(changes))
    return bool(cast(CursorResult[Any], done).rowcount)


def held(session: Session, draft_id: str, revision: int) -> DraftRow:
    """Returns the row of a draft, locked until the transaction ends. Only for modules of the storage.

    Raises NotFound and EditedMeanwhile.
    """
    lock(session, "drafts")
    row = _row(session, draft_id)
    if row.revision != revision:
        raise EditedMeanwhile(
            f"{row.changed_by} has changed this draft meanwhile", draft=draft_id, revision=row.revision
        )
    return row


def _tracking(row: DraftRow) -> BackTest:
    return from_json_form(BackTest, row.tracking) if row.tracking else BackTest()


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
        state=DraftState(row.state),
        approved_by=row.approved_by,
        approved_at=row.approved_at,
    )
