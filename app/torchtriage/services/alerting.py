"""Decides who is alerted about an incident, and writes the messages to the outbox in the verdict's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from torchtriage.domain.group import Group, GroupStatus
from torchtriage.domain.incident import Incident
from torchtriage.domain.notice import NoticeKind
from torchtriage.services.service import Service
from torchtriage.storage import alerts, groups, incidents, outbox
from torchtriage.storage.outbox import Wanted

GATHERING = 10  # seconds in which repeats of a group are combined into one message
NODES = 60  # seconds after the first report of a run in which the reports of its other nodes are awaited
HELD = 3600  # maximum seconds for which alerts of a provisional group wait: it may prove to be a known group


def put_notices(session: Session, service: Service, incident_id: str) -> None:
    """Releases the answers that wait for this incident's verdict. Alerts people if its group is new, reopened or over a
    threshold."""
    now = datetime.now(UTC)
    if service.settings.slack_signing_secret:
        outbox.release(session, incident_id, now)
    if not service.channels.senders:
        return
    incident = incidents.read(session, incident_id)
    # An alert about a run on several nodes that was not sent yet is decided again, from the reports of all nodes.
    withdrawn = bool(incident.job.nodes) and outbox.withdraw(session, incident_id, NoticeKind.NEW)
    if incident.group is None:
        return
    group = groups.read(session, incident.group.id)
    _put_record(session, service, incident, group)
    if _is_wanted(service, group, now):
        over = _passed(session, service, group)
        kind = _kind(incident, group, over, withdrawn)
        if kind is not None:
            _put(session, service, incident, group, kind, over)
            if kind is NoticeKind.REGRESSED:
                _put_for_others(session, service, NoticeKind.STATUS, _merged(session, group), f"incident {incident_id}")
    _put_for_others(session, service, NoticeKind.REPEAT, [group], f"incident {incident_id}", GATHERING)


def put_change(session: Session, service: Service, before: Group, after: Group, why: str) -> None:
    """Updates the first message of each thread about a group after somebody changed the group. If its status changed,
    updates the issues of the group and of those merged into it, too."""
    _put_for_others(session, service, NoticeKind.REPEAT, [after], why)
    if before.status is not after.status:
        _put_for_others(session, service, NoticeKind.STATUS, [after, *_merged(session, after)], why)


def _merged(session: Session, group: Group) -> list[Group]:
    return [groups.read(session, other) for other in group.merged]


def _put_for_others(
    session: Session, service: Service, kind: NoticeKind, about: Sequence[Group], why: str, delay: float = 0
) -> None:
    """Sends a message that is not an alert to the channels that take this kind and have a thread about the group."""
    hearing = service.channels.hearing(kind)
    for group in about:
        for channel in alerts.channels_with_thread(session, group.id):
            if channel in hearing and not outbox.is_coming(session, kind, channel, group.id):
                wanted = Wanted(f"{why} {kind} {channel} {group.id}", kind, channel, group=group.id)
                outbox.put(session, wanted, datetime.now(UTC), delay)


def _is_wanted(service: Service, group: Group, now: datetime) -> bool:
    if group.outcome == "unexplained" and not service.settings.alert_unexplained:
        return False
    return group.status is GroupStatus.OPEN and not (group.muted_until and group.muted_until > now)


def _passed(session: Session, service: Service, group: Group) -> dict[str, float]:
    settings = service.settings
    count, cost = alerts.thresholds_passed(session, group.id, settings.alert_counts, settings.alert_gpu_hours)
    passed = {NoticeKind.COUNT.value: count, NoticeKind.COST.value: cost}
    return {kind: value for kind, value in passed.items() if value is not None}


def _kind(incident: Incident, group: Group, over: dict[str, float], withdrawn: bool) -> NoticeKind | None:
    """Returns the strongest reason to alert people, or None if this is one more incident of a known failure.
    `withdrawn`: an alert about the incident's previous group was withdrawn before it was sent."""
    if group.count == 1 and group.first_seen == incident.received_at and (withdrawn or not group.came_from):
        return NoticeKind.NEW
    if group.regressed_at == incident.received_at:
        return NoticeKind.REGRESSED
    return next((kind for kind in (NoticeKind.COST, NoticeKind.COUNT) if kind in over), None)


def _put(
    session: Session,
    service: Service,
    incident: Incident,
    group: Group,
    kind: NoticeKind,
    over: dict[str, float],
) -> None:
    """Sends the alert to the channels that the routing rules select, and to those that already have an issue about the
    group."""
    known = service.channels.hearing(NoticeKind.STATUS).intersection(alerts.channels_with_thread(session, group.id))
    records = service.channels.hearing(NoticeKind.INCIDENT)
    routed = [name for name in service.channels.routes.to(_facts(service, incident)) if name not in records]
    for channel in dict.fromkeys([*routed, *sorted(known)]):
        wanted = Wanted(f"incident {incident.id} {kind} {channel}", kind, channel, incident.id, group.id, over)
        now = datetime.now(UTC)
        outbox.put(session, wanted, now, HELD if group.provisional else _wait_for_nodes(incident, now))


def _put_record(session: Session, service: Service, incident: Incident, group: Group) -> None:
    """Sends each incident once to the channels that record incidents. A provisional incident is sent again when its run
    has ended."""
    records = service.channels.hearing(NoticeKind.INCIDENT)
    if not records:
        return
    again = " provisional" if incident.verdict and incident.verdict.provisional else ""
    for channel in service.channels.routes.to(_facts(service, incident)):
        if channel in records:
            key = f"incident {incident.id} {NoticeKind.INCIDENT} {channel}{again}"
            wanted = Wanted(key, NoticeKind.INCIDENT, channel, incident.id, group.id)
            now = datetime.now(UTC)
            outbox.put(session, wanted, now, _wait_for_nodes(incident, now))


def _wait_for_nodes(incident: Incident, now: datetime) -> float:
    """Returns the number of seconds to wait before alerting people: other nodes of the run may still report
    the cause."""
    return max(0.0, NODES - (now - incident.received_at).total_seconds()) if incident.job.awaits_nodes else 0.0


def _facts(service: Service, incident: Incident) -> dict[str, str | None]:
    """Returns the values that the routing rules can test."""
    job, root = incident.job, incident.root_cause
    entry = service.knowledge.entries.get(incident.entry or "")
    labels: dict[str, str | None] = {f"label.{name}": value for name, value in job.labels.items()}
    return labels | {
        "entry": incident.entry,
        "owner": entry.owner if entry else None,
        "outcome": incident.verdict.outcome if incident.verdict else None,
        "cluster": job.cluster,
        "queue": job.queue,
        "user": job.user,
        "host": root.host if root else None,
        "job_name": job.job_name,
    }
