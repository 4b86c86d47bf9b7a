"""Makes notices: an incident and its group in, what people are told about them in their language out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy.orm import Session

from torchtriage.answer.action import advise, told_fixes
from torchtriage.chat.wording import word
from torchtriage.domain.entry import Entry, Language
from torchtriage.domain.group import Group
from torchtriage.domain.host import exclusion
from torchtriage.domain.incident import Incident
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.domain.verdict import words_of
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
    verdict = incident.verdict or {}
    root = verdict.get("root_cause") or {}
    entry = service.knowledge.entries.get(root.get("entry") or "")
    evidence = (root.get("evidence") or [{}])[0]
    return Notice(
        kind=kind,
        lang=lang,
        title=_title(incident, root, entry, lang),
        outcome=verdict.get("outcome", "failed"),
        url=f"{base}/incidents/{incident.id}",
        incident=incident.id,
        group=group.id if group else None,
        group_url=f"{base}/groups/{group.id}" if group else None,
        entry=root.get("entry"),
        confidence=root.get("confidence"),
        rank=root.get("rank"),
        host=root.get("host"),
        job_name=incident.job.job_name,
        job_id=incident.job.job_id,
        user=incident.job.user,
        cluster=incident.job.cluster,
        evidence=evidence.get("text") or incident.failure,
        line=evidence.get("line"),
        advice=_advice(verdict, root, entry, lang),
        count=group.count if group else 0,
        recent=recent,
        gpu_hours=group.gpu_hours_lost if group else incident.gpu_hours_lost,
        status=group.status if group else None,
        muted_until=_still(group.muted_until) if group else None,
        over=over,
        document=without_secrets({"incident": incident.as_dict(base), "group": group.as_dict(base) if group else None}),
        **_fix(verdict, root, entry, lang),
    )


def test_notice(service: Service) -> Notice:
    """-> what shows somebody who set a channel up that it works."""
    lang, url = language(service), service.settings.base_url
    return Notice(NoticeKind.TEST, lang, "", "test", url, document={"incident": None, "group": None})


def language(service: Service) -> Language:
    return cast(Language, service.settings.alert_language)


def _title(incident: Incident, root: dict[str, Any], entry: Entry | None, lang: Language) -> str:
    if entry:
        return entry.title.in_(lang)
    if root:
        return str(root.get("title") or "")
    return word(lang, "healthy" if incident.verdict else "failed")


def _advice(verdict: dict[str, Any], root: dict[str, Any], entry: Entry | None, lang: Language) -> str | None:
    """-> whether a retry helps; in the words that were stored where the knowledge of then said something else."""
    if not root:
        return None
    stored = verdict.get("action") or {}
    hosts = tuple(stored.get("exclude_hosts") or ())
    if root.get("entry") and entry is None:
        reason = str(stored.get("reason") or "")
    else:
        today = advise(entry, _words(root), hosts, lang)
        reason = today.reason if today.advice == stored.get("advice") else str(stored.get("reason") or "")
    return f"{reason} {exclusion(hosts)}".rstrip()


def _fix(verdict: dict[str, Any], root: dict[str, Any], entry: Entry | None, lang: Language) -> dict[str, str | None]:
    if entry is None:
        return {}
    run = verdict.get("run") or {}
    versions = (run.get("versions_inferred") or {}) | (run.get("versions") or {})
    fixes = told_fixes(entry, _words(root), root.get("captured") or {}, versions, lang)
    if not fixes:
        return {}
    commands = cast(list[str], fixes[0]["commands"])
    return {"fix": str(fixes[0]["title"]), "command": commands[0] if commands else None}


def _words(root: dict[str, Any]) -> str:
    return words_of(root.get("exception"), (str(line.get("text")) for line in root.get("evidence") or ()))


def _still(moment: datetime | None) -> datetime | None:
    return moment if moment and moment > datetime.now(UTC) else None
