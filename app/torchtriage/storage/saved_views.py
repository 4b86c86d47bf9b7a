"""Saved views in the database. Each function is one step of a transaction that its caller opened."""

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
    """-> all views, by name."""
    return [_view(row) for row in session.execute(select(ViewRow).order_by(ViewRow.name)).scalars()]


def called(session: Session, name: str) -> View | None:
    """-> the view of this name, if there is one."""
    row = session.execute(select(ViewRow).where(ViewRow.name == name)).scalar_one_or_none()
    return _view(row) if row else None


def put(session: Session, name: str, query: str, by: str, at: datetime) -> View:
    """Keeps a view under its name, instead of one that has it -> the view."""
    values = {"query": query, "by": by, "at": at}
    putting = insert(session, ViewRow).values(name=name, **values)
    putting = putting.on_conflict_do_update(index_elements=["name"], set_=values)
    session.execute(putting)
    kept = select(ViewRow).where(ViewRow.name == name).execution_options(populate_existing=True)
    return _view(session.execute(kept).scalar_one())


def remove(session: Session, view_id: str) -> View:
    """-> the view as it was. Raises NotFound."""
    row = session.get(ViewRow, number_of(view_id))
    if row is None:
        raise NotFound("no such view", view=view_id[:100])
    view = _view(row)
    session.execute(delete(ViewRow).where(ViewRow.number == row.number))
    return view


def _view(row: ViewRow) -> View:
    return View(str(row.number), row.name, row.query, row.by, row.at)
