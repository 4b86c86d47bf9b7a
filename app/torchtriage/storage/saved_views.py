"""Saved views in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from torchtriage.domain.saved_view import View
from torchtriage.errors import NotFound
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import ViewRow


def listed(session: Session) -> list[View]:
    """Returns all views, sorted by name."""
    return [_view(row) for row in session.execute(select(ViewRow).order_by(ViewRow.name)).scalars()]


def called(session: Session, name: str) -> View | None:
    """Returns the view with this name, or None."""
    row = session.execute(select(ViewRow).where(ViewRow.name == name)).scalar_one_or_none()
    return _view(row) if row else None


def put(session: Session, name: str, query: str, by: str, at: datetime) -> View:
    """Stores a view and returns it; it replaces one with the same name."""
    values = {"query": query, "by": by, "at": at}
    putting = insert(session, ViewRow).values(name=name, **values)
    putting = putting.on_conflict_do_update(index_elements=["name"], set_=values)
    session.execute(putting)
    kept = select(ViewRow).where(ViewRow.name == name).execution_options(populate_existing=True)
    return _view(session.execute(kept).scalar_one())


def remove(session: Session, view_id: str) -> View:
    """Deletes a view and returns it. Raises NotFound."""
    row = session.get(ViewRow, number_of(view_id))
    if row is None:
        raise NotFound("no such view", view=view_id[:100])
    view = _view(row)
    session.execute(delete(ViewRow).where(ViewRow.number == row.number))
    return view


def _view(row: ViewRow) -> View:
    return View(str(row.number), row.name, row.query, row.by, row.at)
