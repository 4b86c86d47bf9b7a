"""Values by which the latest incidents can be filtered. Each function is one step of the caller's transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from torchtriage.domain.incident import IncidentFilter
from torchtriage.storage import incident_list
from torchtriage.storage.tables import IncidentRow

_COLUMNS = ("entry", "outcome", "host", "user", "cluster", "state", "advice", "job")


def latest(session: Session, wanted: IncidentFilter, most: int) -> list[dict[str, set[str]]]:
    """Returns, for each of the latest `most` incidents that fit `wanted`, its values by filter."""
    numbers = [one.number for one in incident_list.listed(session, wanted, most, None).items]
    query = select(*(getattr(IncidentRow, name) for name in _COLUMNS)).where(IncidentRow.number.in_(numbers))
    return [_values(row) for row in session.connection().execute(query)]


def _values(row: Row[Any]) -> dict[str, set[str]]:
    labels = row.job.get("labels") or {}
    found = {name: {getattr(row, name)} for name in ("entry", "outcome", "host", "user", "cluster", "state")}
    found |= {"retry": {row.advice} - {"none"}, "label": {f"{key}:{value}" for key, value in labels.items()}}
    found |= {name: {row.job.get(name)} for name in ("queue", "image")}
    return {name: {value for value in values if value} for name, values in found.items()}
