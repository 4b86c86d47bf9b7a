"""Makes notices: what people are told about an incident and its group, in their language."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

from sqlalchemy.orm import Session

from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.localized_verdict import localized, title_of
from torchtriage.chat.wording import word
from torchtriage.domain.entry import Language
from torchtriage.domain.group import Group
from torchtriage.domain.incident import Incident
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.errors import NotFound
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.services.service import Service
from torchtriage.storage import alerts, groups, incidents

_WEEK = timedelta(days=7)


def read_notice(
    session: Session, service: Service, kind: NoticeKind, incident_id: str, over: dict[str, float]
) -> Notice:
    """Returns the notice of an incident in its current state. Raises NotFound if it was deleted."""
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
    """Returns the notice; `recent` is the number of the group's incidents in the last 7 days."""
    lang, base = language(service), service.settings.base_url
    verdict = localized(incident.verdict, service.knowledge, lang) if incident.verdict else None
    screen = first_screen(verdict, lang) if verdict else None
    evidence = screen.why if screen else None
    return Notice(
        kind=kind,
        lang=lang,
        title=_title(service, incident, lang),
        outcome=verdict.outcome if verdict else "failed",
        url=f"{base}/incidents/{incident.id}",
        incident=incident.id,
        group=group.id if group else None,
        group_url=f"{base}/groups/{group.id}" if group else None,
        entry=incident.entry,
        screen=screen,
        job_name=incident.job.job_name,
        job_id=incident.job.job_id,
        user=incident.job.user,
        cluster=incident.job.cluster,
        evidence=evidence.text if evidence else incident.failure,
        line=evidence.line if evidence else None,
        count=group.count if group else 0,
        recent=recent,
        gpu_hours=group.gpu_hours_lost if group else incident.gpu_hours_lost,
        status=group.status if group else None,
        muted_until=_still(group.muted_until) if group else None,
        over=over,
        document=without_secrets({"incident": incident.as_dict(base), "group": group.as_dict(base) if group else None}),
    )


def test_notice(service: Service) -> Notice:
    """Returns a test notice, which shows that a new channel works."""
    lang, url = language(service), service.settings.base_url
    return Notice(NoticeKind.TEST, lang, "", "test", url, document={"incident": None, "group": None})


def language(service: Service) -> Language:
    return cast(Language, service.settings.alert_language)


def _title(service: Service, incident: Incident, lang: Language) -> str:
    root, verdict = incident.root_cause, incident.verdict
    if root is None:
        title = word(lang, verdict.outcome if verdict else "failed")
    else:
        title = title_of(root.entry, service.knowledge, lang, root.title) or root.title
    return word(lang, "still_running", title=title) if verdict and verdict.provisional else title


def _still(moment: datetime | None) -> datetime | None:
    return moment if moment and moment > datetime.now(UTC) else None
