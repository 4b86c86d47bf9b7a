"""Describes incidents and groups as items of a list, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import Request

from torchtriage.answer import inconclusive_answer
from torchtriage.answer.answer_text import first_sentence
from torchtriage.answer.localized_verdict import title_of
from torchtriage.domain.entry import KnowledgeBase, Language
from torchtriage.domain.group import Group
from torchtriage.domain.incident import Incident
from torchtriage.domain.incident_summary import IncidentSummary, summary_of
from torchtriage.services.incidents import read_summaries
from torchtriage.services.service import Service
from torchtriage.web.pages.language import language


@dataclass(frozen=True, slots=True)
class IncidentItem:
    """`kind` is the outcome, or the state if there is no verdict. `title` is None if the kind says enough. `says` is
    one sentence about what happened, if it adds to the title; otherwise `detail` is the line that shows it. `retry` is
    the word for the retry advice. `owner` is who must act, judged by the cause. `taken_by` is the owner of the
    group."""

    id: str
    kind: str
    title: str | None
    says: str | None
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
    retry: str | None
    owner: str | None
    taken_by: str | None
    gpu_hours_lost: float | None


@dataclass(frozen=True, slots=True)
class GroupItem:
    """A group with its title in the reader's language. `latest` is its latest incident, in lists that show it."""

    group: Group
    title: str
    latest: IncidentItem | None = None


def incident_items(
    incidents: Iterable[Incident | IncidentSummary], knowledge: KnowledgeBase, lang: Language
) -> tuple[IncidentItem, ...]:
    rows = (found if isinstance(found, IncidentSummary) else summary_of(found) for found in incidents)
    return tuple(_incident(row, knowledge, lang) for row in rows)


def rows_of(request: Request, service: Service, ids: Sequence[str]) -> dict[str, IncidentItem]:
    """Returns those of the incidents that still exist, by id."""
    found = read_summaries(service, ids)
    return {item.id: item for item in incident_items(found, service.knowledge, language(request))}


def group_items(
    groups: Iterable[Group],
    knowledge: KnowledgeBase,
    lang: Language,
    latest: Mapping[str, IncidentSummary] | None = None,
) -> tuple[GroupItem, ...]:
    return tuple(group_item(group, knowledge, lang, (latest or {}).get(group.id)) for group in groups)


def group_item(
    group: Group, knowledge: KnowledgeBase, lang: Language, latest: IncidentSummary | None = None
) -> GroupItem:
    title = title_of(group.entry, knowledge, lang, group.title) or group.signature or f"#{group.id}"
    return GroupItem(group, title, _incident(latest, knowledge, lang) if latest else None)


def _incident(row: IncidentSummary, knowledge: KnowledgeBase, lang: Language) -> IncidentItem:
    root, job = row.root, row.job
    entry = knowledge.entries.get(root.entry or "") if root else None
    title = title_of(root.entry, knowledge, lang, root.title) if root else None
    says = first_sentence(row.answer.case, row.answer.values, entry, lang) if row.answer and root else None
    if row.answer and row.outcome == "inconclusive" and inconclusive_answer.MISSING in row.answer.values:
        title, says = (
            inconclusive_answer.title_of(row.answer.values, lang),
            inconclusive_answer.said(row.answer.values, lang).says,
        )
    if says and title and says.rstrip(".。") == title.rstrip(".。"):
        says = None
    return IncidentItem(
        id=row.id,
        kind=row.outcome or row.state.value,
        title=title,
        says=says,
        detail=row.failure or (root.evidence[0].text if root and root.evidence else None),
        rank=root.rank if root else None,
        host=root.host if root else None,
        confidence=root.confidence if root else None,
        job=job.job_name or job.job_id,
        user=job.user,
        cluster=job.cluster,
        received_at=row.received_at,
        count=row.group.count if row.group else 0,
        group=row.group.id if row.group else None,
        retry=row.retry if root else None,
        owner=entry.owner if entry else root.owner if root else None,
        taken_by=row.group_owner,
        gpu_hours_lost=row.gpu_hours_lost,
    )
