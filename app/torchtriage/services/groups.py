"""Reads, lists, changes, merges and splits groups. Every change is recorded in the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rapidfuzz import fuzz
from sqlalchemy.orm import Session

from torchtriage.domain.access import AuditLine
from torchtriage.domain.group import Group, GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import Feedback, Incident
from torchtriage.domain.incident_summary import IncidentSummary
from torchtriage.domain.timestamps import iso
from torchtriage.services.alerting import put_change
from torchtriage.services.service import Service
from torchtriage.services.user_text import cleaned
from torchtriage.storage import (
    audit_log,
    feedback,
    fingerprint_upgrade,
    group_merging,
    groups,
    incident_summaries,
    incidents,
)
from torchtriage.storage.pagination import Page

BY_FINGERPRINT = "fingerprint"
_LOOKED_AT, _LIKE, _SIMILAR = 300, 60, 8  # groups compared, minimum similarity in percent, groups shown


def read_group(service: Service, group_id: str) -> Group:
    """Returns a group. Raises NotFound."""
    with service.database.reading() as session:
        return groups.read(session, group_id)


def merged_groups(service: Service, group: Group) -> list[Group]:
    """Returns the groups that were merged into this one."""
    with service.database.reading() as session:
        return [groups.read(session, other) for other in group.merged]


def unsettled(service: Service) -> int:
    """Returns the number of fingerprints not yet checked with the current knowledge."""
    if service.settled.is_set():
        return 0
    with service.database.reading() as session:
        return fingerprint_upgrade.left(session, service.knowledge_version)


def notes_beside(service: Service, incident: Incident, most: int) -> list[tuple[str, Feedback]]:
    """Returns people's notes on other incidents of this group, each with the incident's id, newest first."""
    if incident.group is None or incident.group.count < 2:
        return []
    with service.database.reading() as session:
        return feedback.notes_of_group(session, incident.group.id, incident.id, most)


def list_groups(service: Service, wanted: GroupFilter, limit: int = 50, cursor: str | None = None) -> Page[Group]:
    """Returns a page of groups, latest seen first. Raises BadCursor."""
    with service.database.reading() as session:
        return groups.listed(session, wanted, limit, cursor)


def count_by_status(service: Service, outcome: str) -> dict[GroupStatus, tuple[int, int]]:
    """Returns, for each status, how many groups of this outcome have it and how many incidents they contain."""
    with service.database.reading() as session:
        return groups.by_status(session, outcome)


def trends(service: Service, group_ids: Sequence[str], days: int) -> dict[str, list[int]]:
    """Returns, for each group, the number of incidents on each of the last `days` days (UTC), today last."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=days - 1)
    with service.database.reading() as session:
        found = groups.trends(session, list(group_ids), since)
    every = [(since + timedelta(days=at)).date().isoformat() for at in range(days)]
    return {group_id: [found.get(group_id, {}).get(day, 0) for day in every] for group_id in group_ids}


def latest_summaries(service: Service, group_ids: Sequence[str]) -> dict[str, IncidentSummary]:
    """Returns the list row of each group's latest incident. Groups without incidents are omitted."""
    with service.database.reading() as session:
        numbers = groups.latest(session, list(group_ids))
        known = {row.id: row for row in incident_summaries.many(session, list(numbers.values()))}
    return {group_id: known[number] for group_id, number in numbers.items() if number in known}


def latest_incidents(service: Service, group_ids: Sequence[str]) -> dict[str, Incident]:
    """Returns the latest incident of each group. Groups without incidents are omitted."""
    with service.database.reading() as session:
        numbers = groups.latest(session, list(group_ids))
        known = {incident.id: incident for incident in incidents.many(session, list(numbers.values()))}
    return {group_id: known[number] for group_id, number in numbers.items() if number in known}


def similar_groups(service: Service, group: Group) -> list[Group]:
    """Returns groups that may have the same cause, with the same entry or also without one; most similar first."""
    with service.database.reading() as session:
        known = groups.like(session, group, _LOOKED_AT)
    likeness = {other.id: fuzz.ratio(group.signature or "", other.signature or "") for other in known}
    likest = sorted(known, key=lambda other: (-likeness[other.id], -other.count))
    return [other for other in likest if likeness[other.id] >= _LIKE][:_SIMILAR]


def change_groups(service: Service, group_ids: Sequence[str], status: GroupStatus, by: str) -> dict[str, GroupStatus]:
    """Sets the status of several groups. Returns the former status of those that changed. Raises NotFound."""
    before = {}
    # One transaction per group: if two people locked several groups at once, each could wait for the other.
    for group_id in group_ids:
        known = read_group(service, group_id).status
        if known is not status:
            change_group(service, group_id, GroupChange(status), by)
            before[group_id] = known
    return before


def change_group(service: Service, group_id: str, change: GroupChange, by: str) -> Group:
    """Changes a group and returns it. If nothing differs, nobody is notified and nothing is recorded.
    Raises NotFound."""
    now = datetime.now(UTC)
    clean = replace(change, owner=cleaned(change.owner), note=cleaned(change.note))
    with service.database.transaction() as session:
        before, after = groups.change(session, group_id, clean, now)
        group_id = after.id
        states = [_decided(group) for group in (before, after)]
        differing = [name for name in states[0] if states[0][name] != states[1][name]]
        if differing:
            was, now_is = ({name: one[name] for name in differing} for one in states)
            _write_down(session, by, "change", group_id, {"before": was, "after": now_is})
            put_change(session, service, before, after, f"change {now.isoformat()}")
        return after


def merge_groups(service: Service, group_id: str, others: Sequence[str], by: str) -> Group:
    """Merges other groups and their later incidents into one, and returns it. Raises NotFound and CannotRegroup."""
    with service.database.transaction() as session:
        group_merging.merge(session, group_id, others)
        merged = groups.read(session, group_id)
        _write_down(session, by, "merge", merged.id, {"groups": list(others)})
        return merged


def unmerge_groups(service: Service, group_id: str, others: Sequence[str], by: str) -> Group:
    """Undoes merges into a group, and returns the group. Raises NotFound and CannotRegroup."""
    with service.database.transaction() as session:
        group_merging.unmerge(session, group_id, others)
        _write_down(session, by, "unmerge", group_id, {"groups": list(others)})
        return groups.read(session, group_id)


def split_group(service: Service, group_id: str, field: str, value: str, by: str) -> Group:
    """Moves the incidents of a group whose `field` (cluster, user, host or fingerprint) has this value to a new group,
    and returns that group.

    Raises NotFound and CannotRegroup.
    """
    with service.database.transaction() as session:
        if field == BY_FINGERPRINT:
            number = group_merging.split_off(session, group_id, value)
        else:
            number = group_merging.split(session, group_id, field, value)
        _write_down(session, by, "split", group_id, {field: value, "into": str(number)})
        return groups.read(session, str(number))


def _decided(group: Group) -> dict[str, Any]:
    """Returns the properties of a group that people set."""
    known = {"status": group.status.value, "owner": group.owner, "note": group.note}
    return known | {"muted_until": iso(group.muted_until)}


def _write_down(session: Session, by: str, action: str, group_id: str, detail: dict[str, Any]) -> None:
    audit_log.add(session, AuditLine(datetime.now(UTC), by, action, f"group {group_id}", detail))
