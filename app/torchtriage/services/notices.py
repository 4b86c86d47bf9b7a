"""Makes notices: an incident and its group in, what people are told about them in their language out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

from sqlalchemy.orm import Session

from torchtriage.answer.action import advise, told_fixes
from torchtriage.chat.wording import word
from torchtriage.domain.entry import Entry, Language
from torchtriage.domain.group import Group
from torchtriage.domain.incident import Incident
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.domain.verdict import SuggestedFix, Verdict
from torchtriage.errors import NotFound
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.services.service import Service
from torchtriage.storage import alerts, groups, incidents

_WEEK = timedelta(days=7)


def read_notice(
    session: Session, service: Service, kind: NoticeKind, incident_id: str, over: dict[str, float]
) -> Notice:
    """-> the notice of an incident as things stand now. Raises NotFound where it is gone."""
    incident = incidents.read(session, incident_id)
    group = None
    if incident.group:
        try:
            group = groups.read(session, incident.group.id)
        except NotFound:
            group = None
    recent = alerts.recent(session, group.id, datetime.now(UTC) - _WEEK) if group else 0
    return notice_of(service, kind, incident, group, recent, over)


def notice_of(
    service: Service, kind: NoticeKind, incident: Incident, group: Group | None, recent: int, over: dict[str, float]
) -> Notice:
    """-> the notice; `recent` is how many incidents the group had in 7 days."""
    lang, base = language(service), service.settings.base_url
    verdict, root = incident.verdict, incident.root_cause
    entry = service.knowledge.entries.get(incident.entry or "")
    evidence = root.evidence[0] if root and root.evidence else None
    fix = _fix(verdict, entry, lang)
    return Notice(
        kind=kind,
        lang=lang,
        title=_title(incident, entry, lang),
        outcome=verdict.outcome if verdict else "failed",
        url=f"{base}/incidents/{incident.id}",
        incident=incident.id,
        group=group.id if group else None,
        group_url=f"{base}/groups/{group.id}" if group else None,
        entry=incident.entry,
        confidence=root.confidence if root else None,
        rank=root.rank if root else None,
        host=root.host if root else None,
        job_name=incident.job.job_name,
        job_id=incident.job.job_id,
        user=incident.job.user,
        cluster=incident.job.cluster,
        evidence=evidence.text if evidence else incident.failure,
        line=evidence.line if evidence else None,
        advice=_advice(verdict, entry, lang),
        count=group.count if group else 0,
        recent=recent,
        gpu_hours=group.gpu_hours_lost if group else incident.gpu_hours_lost,
        status=group.status if group else None,
        muted_until=_still(group.muted_until) if group else None,
        over=over,
        document=without_secrets({"incident": incident.as_dict(base), "group": group.as_dict(base) if group else None}),
        fix=fix.title if fix else None,
        command=fix.commands[0] if fix and fix.commands else None,
    )


def test_notice(service: Service) -> Notice:
    """-> what shows somebody who set a channel up that it works."""
    lang, url = language(service), service.settings.base_url
    return Notice(NoticeKind.TEST, lang, "", "test", url, document={"incident": None, "group": None})


def language(service: Service) -> Language:
    return cast(Language, service.settings.alert_language)


def _title(incident: Incident, entry: Entry | None, lang: Language) -> str:
    if entry:
        return entry.title.in_(lang)
    if incident.root_cause:
        return incident.root_cause.title
    return word(lang, "healthy" if incident.verdict else "failed")


def _advice(verdict: Verdict | None, entry: Entry | None, lang: Language) -> str | None:
    """-> whether a retry helps; in the words that were stored where the knowledge of then said something else."""
    if verdict is None or verdict.root_cause is None:
        return None
    stored, root = verdict.action, verdict.root_cause
    reason = stored.reason
    if entry is not None or root.entry is None:
        today = advise(entry, root.words, stored.exclude_hosts, lang)
        reason = today.reason if today.advice == stored.advice else stored.reason
    return f"{reason} {stored.exclusion}".rstrip()


def _fix(verdict: Verdict | None, entry: Entry | None, lang: Language) -> SuggestedFix | None:
    """-> the first fix of today's knowledge."""
    if verdict is None or verdict.root_cause is None or entry is None:
        return None
    root, versions = verdict.root_cause, verdict.run.versions_inferred | verdict.run.versions
    return next(iter(told_fixes(entry, root.words, root.captured, versions, lang)), None)


def _still(moment: datetime | None) -> datetime | None:
    return moment if moment and moment > datetime.now(UTC) else None
