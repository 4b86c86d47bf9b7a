"""Groups of incidents: those with one fingerprint, or with several that somebody merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from torchtriage.domain.json_form import fields_form


class GroupStatus(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    IGNORED = "ignored"


class GroupOrder(StrEnum):
    """The first group in a list: the one seen last, the one with the most incidents, or the most expensive one."""

    SEEN = "last_seen"
    COUNT = "count"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class GroupMark:
    """What an incident shows about its group."""

    id: str
    status: GroupStatus
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """Incidents that count as one. `title` and `signature` are those of the latest incident.

    `regressed_at` is the time of an incident that reopened the group after it was resolved. A group that was merged
    into another has no incidents, and `merged_into` is that other group; `merged` are the groups merged into this one.
    `came_from` is an earlier group, which may be gone, whose incidents newer knowledge split into several groups,
    including this one. A group is `provisional` while it may still turn out to be an older group with a new
    fingerprint.
    """

    id: str
    status: GroupStatus
    count: int
    signature: str | None
    title: str | None
    entry: str | None
    outcome: str
    first_seen: datetime
    last_seen: datetime
    resolved_at: datetime | None = None
    regressed_at: datetime | None = field(
        default=None, metadata={"description": "When an incident came after the group had been resolved"}
    )
    owner: str | None = None
    note: str | None = None
    muted_until: datetime | None = None
    gpu_hours_lost: float | None = None
    merged_into: str | None = None
    merged: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    came_from: str | None = field(
        default=None, metadata={"description": "The group out of which later knowledge took this one"}
    )
    provisional: bool = False

    def as_dict(self, base_url: str) -> dict[str, Any]:
        """The public JSON form. `url` is the group's page."""
        known = {"id": self.id, "url": f"{base_url}/groups/{self.id}"} | fields_form(self)
        del known["provisional"]
        return known


@dataclass(frozen=True, slots=True)
class GroupIssue:
    """The issue of a group at one tracker, named by its channel: the `url` of the issue, whether a call to the tracker
    is waiting (`pending`), and why the last call failed."""

    channel: str
    url: str | None = None
    pending: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What somebody changed in a group. None leaves a value as it is, and an empty text removes it.

    A group that is muted for `mute` sends no messages to chats. A duration of zero ends this.
    """

    status: GroupStatus | None = None
    owner: str | None = None
    note: str | None = None
    mute: timedelta | None = None


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list, and in which order. None means any value. All of `words` must be in the group's title,
    signature, entry, owner or note, unless its entry is one of `entries`."""

    status: GroupStatus | None = None
    entry: str | None = None
    outcome: str | None = None
    words: str | None = None
    entries: tuple[str, ...] = ()
    sort: GroupOrder = GroupOrder.SEEN
