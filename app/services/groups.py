"""Reads, lists, changes, merges and splits groups; every change is written into the trail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from app.domain.access import Change
from app.domain.group import Group, GroupChange, GroupFilter
from app.services.service import Service
from app.storage import grouping, groups, trail
from app.storage.cursor import Page


def read_group(service: Service, group_id: str) -> Group:
    """Raises NotFound."""
    with service.database.reading() as session:
        return groups.read(session, group_id)


def list_groups(service: Service, wanted: GroupFilter, limit: int = 50, cursor: str | None = None) -> Page[Group]:
    """-> the latest seen first. Raises BadCursor."""
    with service.database.reading() as session:
        return groups.listed(session, wanted, limit, cursor)


def change_group(service: Service, group_id: str, change: GroupChange, by: str) -> Group:
    """-> the group as it is now. Raises NotFound."""
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        changed = groups.change(session, group_id, change, now)
        said = {name: value for name, value in asdict(change).items() if value is not None}
        _write_down(session, by, "change", group_id, said)
        return changed


def merge_groups(service: Service, group_id: str, others: Sequence[str], by: str) -> Group:
    """Makes other groups part of one, for what is there and what comes -> that one. Raises NotFound, CannotRegroup."""
    with service.database.transaction() as session:
        grouping.merge(session, group_id, others)
        _write_down(session, by, "merge", group_id, {"groups": list(others)})
        return groups.read(session, group_id)


def unmerge_groups(service: Service, group_id: str, others: Sequence[str], by: str) -> Group:
    """Undoes merges into a group -> that group. Raises NotFound, CannotRegroup."""
    with service.database.transaction() as session:
        grouping.unmerge(session, group_id, others)
        _write_down(session, by, "unmerge", group_id, {"groups": list(others)})
        return groups.read(session, group_id)


def split_group(service: Service, group_id: str, field: str, value: str, by: str) -> Group:
    """Gives incidents of a group whose `field` (cluster, user or host) has this value a group of their own -> that one.

    Raises NotFound, CannotRegroup.
    """
    with service.database.transaction() as session:
        number = grouping.split(session, group_id, field, value)
        _write_down(session, by, "split", group_id, {field: value, "into": str(number)})
        return groups.read(session, str(number))


def _write_down(session: Session, by: str, action: str, group_id: str, detail: dict[str, Any]) -> None:
    trail.add(session, Change(datetime.now(UTC), by, action, f"group {group_id}", detail))
