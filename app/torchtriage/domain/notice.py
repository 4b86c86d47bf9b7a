"""Notices: messages to people about a group of incidents, in any chat."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from torchtriage.domain.entry import Language
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.group import GroupStatus


class NoticeKind(StrEnum):
    """Why a notice is sent."""

    NEW = "new"  # the first incident of a group
    REGRESSED = "regressed"  # an incident in a group that was resolved
    COST = "cost"  # the GPU hours lost to a group passed a threshold
    COUNT = "count"  # the number of its incidents passed a threshold
    REPEAT = "repeat"  # one more incident; updates the counters in sent messages
    STATUS = "status"  # somebody resolved or ignored the group, or opened it again
    INCIDENT = "incident"  # an incident with its verdict, for channels that record every incident
    ISSUE = "issue"  # somebody asked for an issue about the group
    ANSWER = "answer"  # somebody submitted this log and waits for the answer
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Notice:
    """The content of a notice in one language. Unknown values are None.

    `title` is the cause in plain words; for an unexplained run it is the exception. `screen` is what every reader sees
    first, or None if there is no verdict. `evidence` is the line that shows the failure, or the reason why there is
    none. `over` are the thresholds that were passed, by kind. `document` is the same content for machines.
    """

    kind: NoticeKind
    lang: Language
    title: str
    outcome: str
    url: str
    incident: str | None = None
    group: str | None = None
    group_url: str | None = None
    entry: str | None = None
    screen: FirstScreen | None = None
    job_name: str | None = None
    job_id: str | None = None
    user: str | None = None
    cluster: str | None = None
    evidence: str | None = None
    line: int | None = None
    count: int = 0
    recent: int = 0
    gpu_hours: float | None = None
    status: GroupStatus | None = None
    muted_until: datetime | None = None
    over: dict[str, float] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)


class SendState(StrEnum):
    """The states of an item of the outbox: waiting (for a verdict), ready, then sent or failed."""

    WAITING = "waiting"
    READY = "ready"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """One thing to do at another service: send a notice, answer a question from Slack, or fetch a file.

    `problem` is a sentence that says why the last try failed.
    """

    id: str
    key: str
    kind: str
    channel: str
    state: SendState
    tries: int
    put_at: datetime
    due_at: datetime
    incident: str | None = None
    group: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    ended_at: datetime | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """The place at another service where a group is discussed, and the incident that started it: a Slack channel and
    the first message of the thread; a repository or project and the name of an issue; or the labels of an alert."""

    channel: str
    ts: str
    incident: str | None = None
