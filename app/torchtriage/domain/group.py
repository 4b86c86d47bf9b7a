"""Groups of incidents: those of one fingerprint, or of several that somebody joined."""

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
    """What comes first in a list of groups: the latest seen, the one with the most incidents, the dearest."""

    SEEN = "last_seen"
    COUNT = "count"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class GroupMark:
    """What an incident says about its group."""

    id: str
    status: GroupStatus
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """Incidents that count as one. `title` and `signature` are the latest incident's.

    `regressed_at` is when an incident came after the group had been resolved, which opened it again. A group that was
    merged into another has no incidents, and names it in `merged_into`; `merged` are those that were merged into this.
    `came_from` is the group, there or gone, whose incidents went to several groups under later knowledge, this one
    among them. It is `provisional` while it may turn out to be an older one under a new fingerprint.
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
        """The form that outsiders rely on; `url` is the group's page."""
        known = {"id": self.id, "url": f"{base_url}/groups/{self.id}"} | fields_form(self)
        del known["provisional"]
        return known


@dataclass(frozen=True, slots=True)
class GroupIssue:
    """What there is of a group at one tracker, named by its channel: the `url` of its issue, whether a call to the
    tracker waits (`pending`), and why the last one failed."""

    channel: str
    url: str | None = None
    pending: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What somebody decided about a group; None leaves it as it is, an empty text takes it away.

    A group that is muted for `mute` says nothing in chats; a duration of zero ends that.
    """

    status: GroupStatus | None = None
    owner: str | None = None
    note: str | None = None
    mute: timedelta | None = None


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list, and in which order; None leaves a property open. `words` must all be in what
    is kept of a group (title, signature, entry, owner, note), unless its entry is one of `entries`."""

    status: GroupStatus | None = None
    entry: str | None = None
    outcome: str | None = None
    words: str | None = None
    entries: tuple[str, ...] = ()
    sort: GroupOrder = GroupOrder.SEEN
