"""Notices: what people are told about a group of incidents, in any chat."""

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
    REGRESSED = "regressed"  # an incident of a group that was resolved
    COST = "cost"  # the GPU hours that a group lost went over a threshold
    COUNT = "count"  # the number of its incidents did
    REPEAT = "repeat"  # one more incident: counters of messages that were sent are set
    STATUS = "status"  # somebody resolved or ignored the group, or opened it again
    INCIDENT = "incident"  # an incident with its verdict, for channels that record each of them
    ISSUE = "issue"  # somebody wants an issue about the group
    ANSWER = "answer"  # somebody handed this log in and waits for the answer
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Notice:
    """What there is to tell, in the words of one language. None where it isn't known.

    `title` is the cause in plain words; of an unexplained run it is the exception. `screen` is what every reader sees
    first, None where there is no verdict; `evidence` is its telling line, or why there is none. `over` holds the
    thresholds that were passed, by kind. `document` is the same for machines.
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
    """How far an item of the outbox is: waiting (for a verdict) → ready → sent, or failed."""

    WAITING = "waiting"
    READY = "ready"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """One thing to do at another service: a notice to send, a question of Slack's to answer, a file to fetch.

    `problem` is why the last try failed, in a sentence.
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
    """Where a group is told of at another service, and the incident that it began with: a Slack channel and the message
    with which the group's thread begins; a repository or project and the name of an issue; the
    labels of an alert."""

    channel: str
    ts: str
    incident: str | None = None
