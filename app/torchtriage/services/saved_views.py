"""Saved views of the incident list. Everyone sees them; every change is recorded in the audit log."""

from __future__ import annotations

from datetime import UTC, datetime

from torchtriage.domain.access import AuditLine
from torchtriage.domain.saved_view import View
from torchtriage.errors import BadInput
from torchtriage.services.service import Service
from torchtriage.services.user_text import cleaned
from torchtriage.storage import audit_log, saved_views

MAX_NAME_LENGTH, MAX_QUERY_LENGTH = 80, 4000  # characters


def list_views(service: Service) -> list[View]:
    """Returns all views, sorted by name."""
    with service.database.reading() as session:
        return saved_views.listed(session)


def save_view(service: Service, name: str, query: str, by: str) -> View:
    """Stores a view; it replaces one with the same name. Raises BadInput if the name is missing or too long."""
    name, query = " ".join(cleaned(name).split()), cleaned(query)
    if not name or len(name) > MAX_NAME_LENGTH or len(query) > MAX_QUERY_LENGTH:
        raise BadInput(f"a view name has 1 to {MAX_NAME_LENGTH} characters")
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        before = saved_views.called(session, name)
        view = saved_views.put(session, name, query, by, now)
        detail = {"before": _audit_details(before), "after": _audit_details(view)}
        audit_log.add(session, AuditLine(now, by, "save", f"view {view.id}", detail))
        return view


def remove_view(service: Service, view_id: str, by: str) -> View:
    """Deletes a view and returns it. Saving it again undoes this. Raises NotFound."""
    with service.database.transaction() as session:
        view = saved_views.remove(session, view_id)
        audit_log.add(
            session,
            AuditLine(datetime.now(UTC), by, "remove", f"view {view.id}", {"before": _audit_details(view)}),
        )
        return view


def _audit_details(view: View | None) -> dict[str, str] | None:
    return {"name": view.name, "query": view.query} if view else None
