"""Reads, lists, changes, merges and splits groups; every change is written into the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rapidfuzz import fuzz
from sqlalchemy.orm import Session

from torchtriage.domain.access import Change
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
_LOOKED_AT, _LIKE, _SIMILAR = 300, 60, 8  # groups, per cent of likeness, groups


def read_group(service: Service, group_id: str) -> Group:
    """Raises NotFound."""
    with service.database.reading() as session:
        return groups.read(session, group_id)


def merged_groups(service: Service, group: Group) -> list[Group]:
    """-> the groups that were merged into one, as they were decided about."""
    with service.database.reading() as session:
        return [groups.read(session, other) for other in group.merged]


def unsettled(service: Service) -> int:
    """-> of how many fingerprints it is not known yet where their logs belong with today's knowledge."""
    if service.settled.is_set():
        return 0
    with service.database.reading() as session:
        return fingerprint_upgrade.left(session, service.knowledge_version)


def notes_beside(service: Service, incident: Incident, most: int) -> list[tuple[str, Feedback]]:
    """-> what people wrote to other incidents of this one's group, each with its incident's id, the newest first."""
    if incident.group is None or incident.group.count < 2:
        return []
    with service.database.reading() as session:
        return feedback.notes_of_group(session, incident.group.id, incident.id, most)


def list_groups(service: Service, wanted: GroupFilter, limit: int = 50, cursor: str | None = None) -> Page[Group]:
    """-> the latest seen first. Raises BadCursor."""
    with service.database.reading() as session:
        return groups.listed(session, wanted, limit, cursor)


def count_by_status(service: Service, outcome: str) -> dict[GroupStatus, tuple[int, int]]:
    """-> of each status how many groups of this outcome have it, and how many incidents are in them."""
    with service.database.reading() as session:
        return groups.by_status(session, outcome)


def trends(service: Service, group_ids: Sequence[str], days: int) -> dict[str, list[int]]:
    """-> for each group how many incidents came on each of the last so many days (UTC), today the last."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=days - 1)
    with service.database.reading() as session:
        found = groups.trends(session, list(group_ids), since)
    every = [(since + timedelta(days=at)).date().isoformat() for at in range(days)]
    return {group_id: [found.get(group_id, {}).get(day, 0) for day in every] for group_id in group_ids}


def latest_summaries(service: Service, group_ids: Sequence[str]) -> dict[str, IncidentSummary]:
    """-> the row of the latest incident of each group that has one."""
    with service.database.reading() as session:
        numbers = groups.latest(session, list(group_ids))
        known = {row.id: row for row in incident_summaries.many(session, list(numbers.values()))}
    return {group_id: known[number] for group_id, number in numbers.items() if number in known}


def latest_incidents(service: Service, group_ids: Sequence[str]) -> dict[str, Incident]:
    """-> the latest incident of each group that has one."""
    with service.database.reading() as session:
        numbers = groups.latest(session, list(group_ids))
        known = {incident.id: incident for incident in incidents.many(session, list(numbers.values()))}
    return {group_id: known[number] for group_id, number in numbers.items() if number in known}


def similar_groups(service: Service, group: Group) -> list[Group]:
    """-> groups that may be the same as this one, of the same entry or of none either, the likest first."""
    with service.database.reading() as session:
        known = groups.like(session, group, _LOOKED_AT)
    likeness = {other.id: fuzz.ratio(group.signature or "", other.signature or "") for other in known}
    likest = sorted(known, key=lambda other: (-likeness[other.id], -other.count))
    return [other for other in likest if likeness[other.id] >= _LIKE][:_SIMILAR]


def change_groups(service: Service, group_ids: Sequence[str], status: GroupStatus, by: str) -> dict[str, GroupStatus]:
    """Sets the status of several groups -> what it was, of those whose status is another now. Raises NotFound."""
    before = {}
    for group_id in group_ids:  # each by itself: holding several at once, two people could wait for each other
        known = read_group(service, group_id).status
        if known is not status:
            change_group(service, group_id, GroupChange(status), by)
            before[group_id] = known
    return before


def change_group(service: Service, group_id: str, change: GroupChange, by: str) -> Group:
    """-> the group as it is now; where it was like that before, nothing is told or written down. Raises NotFound."""
    now = datetime.now(UTC)
    clean = replace(change, owner=cleaned(change.owner), note=cleaned(change.note))
    with service.database.transaction() as session:
        before, after = groups.change(session, group_id, clean, now)
        group_id = after.id
        told = [_decided(group) for group in (before, after)]
        differing = [name for name in told[0] if told[0][name] != told[1][name]]
        if differing:
            was, now_is = ({name: one[name] for name in differing} for one in told)
            _write_down(session, by, "change", group_id, {"before": was, "after": now_is})
            put_change(session, service, before, after, f"change {now.isoformat()}")
        return after


def merge_groups(service: Service, group_id: str, others: Sequence[str], by: str) -> Group:
    """Makes other groups part of one, for what is there and what comes -> that one. Raises NotFound, CannotRegroup."""
    with service.database.transaction() as session:
        group_merging.merge(session, group_id, others)
        merged = groups.read(session, group_id)
        _write_down(session, by, "merge", merged.id, {"groups": list(others)})
        return merged


def unmerge_groups(service: Service, group_id: str, others: Sequence[str], by: str) -> Group:
    """Undoes merges into a group -> that group. Raises NotFound, CannotRegroup."""
    with service.database.transaction() as session:
        group_merging.unmerge(session, group_id, others)
        _write_down(session, by, "unmerge", group_id, {"groups": list(others)})
        return groups.read(session, group_id)


def split_group(service: Service, group_id: str, field: str, value: str, by: str) -> Group:
    """Gives incidents of a group whose `field` (cluster, user, host or fingerprint) has this value a group of their own
    -> that one.

    Raises NotFound, CannotRegroup.
    """
    with service.database.transaction() as session:
        if field == BY_FINGERPRINT:
            number = group_merging.split_off(session, group_id, value)
        else:
            number = group_merging.split(session, group_id, field, value)
        _write_down(session, by, "split", group_id, {field: value, "into": str(number)})
        return groups.read(session, str(number))


def _decided(group: Group) -> dict[str, Any]:
    """-> what people decide about a group."""
    known = {"status": group.status.value, "owner": group.owner, "note": group.note}
    return known | {"muted_until": iso(group.muted_until)}


def _write_down(session: Session, by: str, action: str, group_id: str, detail: dict[str, Any]) -> None:
    audit_log.add(session, Change(datetime.now(UTC), by, action, f"group {group_id}", detail))
