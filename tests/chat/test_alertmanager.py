"""Alerts for an Alertmanager, against a fake that refuses what that refuses and merges alerts by their labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given

from tests.chat.notices import hostile, usual
from tests.http_server import Asked, Told, serving
from torchtriage.chat.alertmanager import Alertmanager
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Answer, Outgoing
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind

OUTGOING = Outgoing(private=True)
BASIC = "Basic b3BzOnB3"  # ops:pw
FIRST_SEEN = "2026-05-01T09:05:11.000Z"
GROUP: dict[str, Any] = {"incident": {"id": "17"}, "group": {"id": "7", "first_seen": FIRST_SEEN, "regressed_at": None}}


@dataclass
class FakeAlertmanager:
    authorization: str | None = None
    url: str = ""
    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)  # by their labels

    def answer(self, asked: Asked) -> Told:
        if self.authorization and asked.headers.get("Authorization") != self.authorization:
            return Told(b"Unauthorized", 401)
        if (asked.method, asked.path) != ("POST", "/api/v2/alerts"):
            return Told(b'{"code": 404, "message": "path was not found"}', 404)
        if not asked.headers["Content-Type"].startswith("application/json"):
            return Told(b"", 415)
        for alert in json.loads(asked.body):
            if problem := self.problem(alert):
                return Told(json.dumps(problem).encode(), 400)
            self.alerts[json.dumps(alert["labels"], sort_keys=True)] = alert
        return Told(b"")

    def problem(self, alert: dict[str, Any]) -> str:
        names = [*alert["labels"], *alert["annotations"]]
        if not alert["labels"] or not all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in names):
            return "invalid label set"
        starts, ends = (datetime.fromisoformat(alert[name]) for name in ("startsAt", "endsAt"))
        if ends < starts:
            return "start time must be before end time"
        if urlsplit(alert["generatorURL"]).scheme not in ("http", "https"):
            return "generatorURL in body must be of type uri"
        return ""

    def firing(self) -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        return [alert for alert in self.alerts.values() if datetime.fromisoformat(alert["endsAt"]) > now]


@contextmanager
def fake(authorization: str | None = None) -> Iterator[FakeAlertmanager]:
    made = FakeAlertmanager(authorization)
    with serving(made.answer) as made.url:
        yield made


def sender(running: FakeAlertmanager, token: str = "", user: str = "") -> Alertmanager:
    return Alertmanager(OUTGOING, f"{running.url}/", 24, {"severity": "warning"}, token, user)


def test_an_alert_says_what_routes_and_people_ask_for() -> None:
    with fake() as running:
        sender(running).send(usual(document=GROUP), "k")
    (alert,) = running.firing()
    assert alert["labels"] == {
        "alertname": "TrainingRunFailed",
        "severity": "warning",
        "torchtriage_group": "7",
        "outcome": "explained",
        "entry": "cuda.oom",
        "cluster": "blue",
    }
    assert alert["annotations"]["summary"] == "The GPU ran out of memory"
    assert "Tried to allocate 2.00 GiB" in alert["annotations"]["description"]
    assert alert["annotations"]["incident"] == "https://triage.example.org/incidents/17"
    assert (alert["startsAt"], alert["generatorURL"]) == (FIRST_SEEN, "https://triage.example.org/groups/7")
    left = datetime.fromisoformat(alert["endsAt"]) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)


@pytest.mark.parametrize("end", [{"status": GroupStatus.RESOLVED}, {"status": GroupStatus.IGNORED}, {"muted_until": datetime(2099, 1, 1, tzinfo=UTC)}])  # fmt: skip
def test_it_is_one_alert_that_ends_with_its_group_and_comes_back(end: dict[str, Any]) -> None:
    with fake() as running:
        thread = sender(running).send(usual(document=GROUP), "k")
        elsewhere = usual(kind=NoticeKind.REPEAT, cluster="green", entry="cuda.oom-other", document=GROUP)
        assert sender(running).send(elsewhere, "k2", thread) == thread
        assert len(running.alerts) == len(running.firing()) == 1
        assert sender(running).send(usual(kind=NoticeKind.STATUS, document=GROUP, **end), "k3", thread) == thread
        assert (len(running.alerts), running.firing()) == (1, [])
        back = {"incident": {"id": "19"}, "group": GROUP["group"] | {"regressed_at": "2026-05-03T00:00:00.000Z"}}
        sender(running).send(usual(kind=NoticeKind.REGRESSED, cluster="green", document=back), "k4", thread)
        (alert,) = running.firing()
    assert (len(running.alerts), alert["startsAt"]) == (1, "2026-05-03T00:00:00.000Z")


def test_firing_alerts_are_sent_again_and_end_at_the_same_time() -> None:
    now = datetime.now(UTC)
    with fake() as running:
        groups = [GROUP | {"group": GROUP["group"] | {"last_seen": (now - timedelta(hours=hours)).isoformat()}} for hours in (1, 25)]  # fmt: skip
        notices = [usual(group=str(at), document=document) for at, document in enumerate(groups)]
        threads = [sender(running).send(notice, "k") for notice in notices]
        running.alerts.clear()  # it was started again
        sender(running).send_again(
            [(notice, thread) for notice, thread in zip(notices, threads, strict=True) if thread]
        )
        sender(running).send_again([])
    (alert,) = running.firing()
    assert (len(running.alerts), alert["labels"]["torchtriage_group"], alert["startsAt"]) == (1, "0", FIRST_SEEN)
    left = datetime.fromisoformat(alert["endsAt"]) - now
    assert timedelta(hours=22, minutes=59) < left < timedelta(hours=23, minutes=1)


def test_nothing_is_sent_about_a_group_without_an_alert() -> None:
    with fake() as running:
        assert sender(running).send(usual(kind=NoticeKind.REPEAT), "k") is None
        assert sender(running).send(usual(kind=NoticeKind.STATUS), "k") is None
    assert not running.alerts


@pytest.mark.parametrize(("expected", "token", "user"), [(BASIC, "pw", "ops"), ("Bearer t0", "t0", "")])
def test_it_says_who_it_is(expected: str, token: str, user: str) -> None:
    with fake(expected) as running:
        sender(running, token, user).send(usual(kind=NoticeKind.TEST), "k")
        with pytest.raises(Undelivered, match="Alertmanager answered 401") as refused:
            sender(running, "wrong", user).send(usual(), "k")
    assert not refused.value.passing
    assert [alert["labels"]["alertname"] for alert in running.firing()] == ["TorchtriageTest"]


@given(hostile())
def test_whatever_a_log_says_is_taken(notice: Notice) -> None:
    running = FakeAlertmanager()

    class Recorded(Outgoing):
        def call(self, method: str, url: str, payload: Any = None, headers: Any = None) -> Any:
            assert not running.problem(json.loads(json.dumps(payload))[0])
            assert all(payload[0]["labels"].values())
            assert len(json.dumps(payload)) < 50_000
            return Answer(200, {}, b"")

    Alertmanager(Recorded(), "http://a", 24, {}).send(notice, "k")
