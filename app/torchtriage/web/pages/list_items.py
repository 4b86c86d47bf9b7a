"""Incidents and groups as items of a list, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from torchtriage.answer.localized_verdict import title_of
from torchtriage.domain.entry import KnowledgeBase, Language
from torchtriage.domain.group import Group
from torchtriage.domain.incident import Incident


@dataclass(frozen=True, slots=True)
class IncidentItem:
    """`kind` is the outcome, or the state where there is no verdict; `title` is None where the kind says all."""

    id: str
    kind: str
    title: str | None
    detail: str | None
    rank: int | None
    host: str | None
    confidence: str | None
    job: str | None
    user: str | None
    cluster: str | None
    received_at: datetime
    count: int
    group: str | None


@dataclass(frozen=True, slots=True)
class GroupItem:
    """A group with its title in the reader's language."""

    group: Group
    title: str


def incident_items(incidents: Iterable[Incident], knowledge: KnowledgeBase, lang: Language) -> tuple[IncidentItem, ...]:
    return tuple(_incident(incident, knowledge, lang) for incident in incidents)


def group_items(groups: Iterable[Group], knowledge: KnowledgeBase, lang: Language) -> tuple[GroupItem, ...]:
    return tuple(group_item(group, knowledge, lang) for group in groups)


def group_item(group: Group, knowledge: KnowledgeBase, lang: Language) -> GroupItem:
    title = title_of(group.entry, knowledge, lang, group.title) or group.signature or f"#{group.id}"
    return GroupItem(group, title)


def _incident(incident: Incident, knowledge: KnowledgeBase, lang: Language) -> IncidentItem:
    verdict, root, job = incident.verdict, incident.root_cause, incident.job
    shown = root.evidence[0].text if root and root.evidence else None
    return IncidentItem(
        id=incident.id,
        kind=verdict.outcome if verdict else incident.state.value,
        title=title_of(incident.entry, knowledge, lang, root.title if root else None),
        detail=incident.failure or shown,
        rank=root.rank if root else None,
        host=root.host if root else None,
        confidence=root.confidence if root else None,
        job=job.job_name or job.job_id,
        user=job.user,
        cluster=job.cluster,
        received_at=incident.received_at,
        count=incident.group.count if incident.group else 0,
        group=incident.group.id if incident.group else None,
    )
