"""Requests issues about groups at the configured trackers, and reads their state. The outbox does the rest."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.orm import Session

from torchtriage.domain.access import AuditLine
from torchtriage.domain.group import Group, GroupIssue
from torchtriage.domain.notice import NoticeKind, SendState
from torchtriage.errors import BadInput, NotFound
from torchtriage.services.service import Service
from torchtriage.storage import alerts, audit_log, groups, outbox, slack_state
from torchtriage.storage.outbox import Wanted


def issues_of(service: Service, group_id: str) -> list[GroupIssue]:
    """Returns, for each tracker, the issue of a group or of one merged into it. Raises NotFound."""
    if not service.channels.trackers():
        return []
    with service.database.reading() as session:
        return _found(session, service, groups.read(session, group_id))


def ask_for_issue(service: Service, group_id: str, channel: str, by: str) -> list[GroupIssue]:
    """Requests an issue about a group at a tracker, unless one exists or is requested. Returns the issues as they are
    now.

    Raises NotFound, and BadInput if no such tracker is configured.
    """
    if channel not in service.channels.trackers():
        raise BadInput("no such issue tracker is configured")
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        group = groups.read(session, group_id)
        incident = alerts.latest(session, group.id)
        if incident is None:
            raise NotFound("the group's incidents were deleted")
        known = next(issue for issue in _found(session, service, group) if issue.channel == channel)
        if known.url is None and not outbox.is_coming(session, NoticeKind.ISSUE, channel, group.id):
            key = f"group {group.id} {NoticeKind.ISSUE} {channel} {now.isoformat()}"
            outbox.put(session, Wanted(key, NoticeKind.ISSUE, channel, incident, group.id), now)
            audit_log.add(session, AuditLine(now, by, "issue", f"group {group.id}", {"after": {"channel": channel}}))
        return _found(session, service, group)


def _found(session: Session, service: Service, group: Group) -> list[GroupIssue]:
    found = []
    for channel, tracker in service.channels.trackers().items():
        threads = [slack_state.thread_of(session, one, channel) for one in (group.id, *group.merged)]
        thread = next((one for one in threads if one), None)
        last = outbox.latest_of_group(session, group.id, channel)
        waits = last is not None and last.state is SendState.READY
        failed = last is not None and last.state is not SendState.SENT
        url = tracker.address_of(thread) if thread else None
        found.append(GroupIssue(channel, url, waits, last.problem if last and failed else None))
    return found
