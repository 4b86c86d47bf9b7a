"""Saved views of the list of incidents: everyone sees them; every change is written into the trail."""

from __future__ import annotations

from datetime import UTC, datetime

from app.domain.access import Change
from app.domain.view import View
from app.errors import BadInput
from app.services.service import Service
from app.services.written import written
from app.storage import trail, views

LONGEST_NAME, LONGEST_QUERY = 80, 4000  # characters


def list_views(service: Service) -> list[View]:
    """-> all of them, by name."""
    with service.database.reading() as session:
        return views.listed(session)


def save_view(service: Service, name: str, query: str, by: str) -> View:
    """Keeps a view, in place of one of the same name. Raises BadInput where it has no name or is too long."""
    name, query = " ".join(written(name).split()), written(query)
    if not name or len(name) > LONGEST_NAME or len(query) > LONGEST_QUERY:
        raise BadInput(f"a view has a name of 1 to {LONGEST_NAME} characters")
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        before = views.called(session, name)
        view = views.put(session, name, query, by, now)
        detail = {"before": _told(before), "after": _told(view)}
        trail.add(session, Change(now, by, "save", f"view {view.id}", detail))
        return view


def remove_view(service: Service, view_id: str, by: str) -> View:
    """-> the view as it was; saving it again undoes this. Raises NotFound."""
    with service.database.transaction() as session:
        view = views.remove(session, view_id)
        trail.add(session, Change(datetime.now(UTC), by, "remove", f"view {view.id}", {"before": _told(view)}))
        return view


def _told(view: View | None) -> dict[str, str] | None:
    return {"name": view.name, "query": view.query} if view else None
