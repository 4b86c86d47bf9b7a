"""Tags on runs in MLflow, against a fake of its tracking server that refuses what that refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.chat.notices import hostile, usual
from tests.http_server import Asked, Told, serving
from tests.trackers import told
from torchtriage.chat.channels import open_channels
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.mlflow import MLflow
from torchtriage.chat.outbound_http import Answer, Outgoing
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.errors import SettingError
from torchtriage.settings import Settings

RUN, OTHER = "567216afacbe4cd9bf2fcbe019e71b5b", "0123456789abcdef0123456789abcdef"
BASIC = "Basic b3BzOnB3"  # ops:pw
ALL = {"outcome", "entry", "confidence", "retry", "summary", "incident"}


@dataclass
class FakeTrackingServer:
    """`refusals` are answered first, each once."""

    authorization: str = BASIC
    url: str = ""
    runs: dict[str, dict[str, str]] = field(default_factory=lambda: {RUN: {}})
    refusals: list[Told] = field(default_factory=list)
    calls: int = 0

    def answer(self, asked: Asked) -> Told:
        self.calls += 1
        if self.refusals:
            return self.refusals.pop(0)
        if asked.headers.get("Authorization") != self.authorization:
            return Told(b"You are not authenticated.", 401, {"Content-Type": "text/html"})
        if not asked.headers["Content-Type"].startswith("application/json"):
            return refused("INVALID_PARAMETER_VALUE", 400)
        body = json.loads(asked.body)
        if (asked.method, asked.path) == ("POST", "/api/2.0/mlflow/experiments/search"):
            return told({"experiments": []}) if body.get("max_results") else refused("INVALID_PARAMETER_VALUE", 400)
        if (asked.method, asked.path) != ("POST", "/api/2.0/mlflow/runs/set-tag"):
            return Told(b"Not Found", 404, {"Content-Type": "text/html"})
        key, value = body["key"], body["value"]
        if not re.fullmatch(r"[/\w.\- ]{1,250}", key) or not isinstance(value, str) or not 0 < len(value) <= 5000:
            return refused("INVALID_PARAMETER_VALUE", 400)
        if body["run_id"] not in self.runs:
            return refused("RESOURCE_DOES_NOT_EXIST", 404)
        self.runs[body["run_id"]][key] = value
        return told({})


def refused(code: str, status: int) -> Told:
    return told({"error_code": code, "message": f"{code}: it says"}, status)


@contextmanager
def fake(authorization: str = BASIC) -> Iterator[FakeTrackingServer]:
    made = FakeTrackingServer(authorization)
    with serving(made.answer) as made.url:
        yield made


def sender(running: FakeTrackingServer, *hosts: str) -> MLflow:
    return MLflow(Outgoing(private=True), f"{running.url}/", "pw", "ops", hosts)


def notice(*facts: tuple[str, str], **other: Any) -> Notice:
    told_facts = [{"name": name, "value": value} for name, value in facts or [("mlflow_run_id", RUN)]]
    verdict = {"root_cause": {"confidence": "certain"}, "facts": told_facts}
    given_parts = {"kind": NoticeKind.INCIDENT, "document": {"incident": {"id": "17", "verdict": verdict}}}
    return usual(**(given_parts | other))


def page(host: str, run: str = RUN) -> list[tuple[str, str]]:
    return [("mlflow_run_url", f"http://{host}/#/experiments/0/runs/{run}"), ("mlflow_run_id", run)]


def test_the_run_says_what_failed_and_where_to_read_on() -> None:
    with fake() as running:
        sender(running).send(notice(), "k")
    assert running.runs[RUN] == {
        "torchtriage.outcome": "explained",
        "torchtriage.entry": "cuda.oom",
        "torchtriage.confidence": "certain",
        "torchtriage.retry": "no",
        "torchtriage.summary": "Rank 3 asked for 2.00 GiB at train.py:88 and 1.10 GiB were free.",
        "torchtriage.incident": "https://triage.example.org/incidents/17",
    }


def test_nothing_stays_of_an_earlier_incident_of_the_run() -> None:
    with fake() as running:
        sender(running).send(notice(), "k")
        sender(running).send(notice(entry=None, outcome="unexplained", screen=None), "l")
    tags = running.runs[RUN]
    assert (tags["torchtriage.entry"], tags["torchtriage.retry"]) == ("unknown", "unknown")
    assert tags["torchtriage.outcome"] == "unexplained"


def test_one_that_is_lost_on_its_way_is_sent_again_whole() -> None:
    with fake() as running:
        running.refusals = [told({}), told({}), Told(b"", 503, {"Retry-After": "9"})]
        with pytest.raises(Undelivered) as lost:
            sender(running).send(notice(), "k")
        sender(running).send(notice(), "k")
    assert (lost.value.passing, lost.value.wait) == (True, 9)
    assert set(running.runs[RUN]) == {f"torchtriage.{name}" for name in ALL}


@pytest.mark.parametrize(
    ("facts", "tagged"),
    [
        (page("127.0.0.1:5000"), True),
        (page("mlflow.train.svc:5000"), True),
        (page("evil.example"), False),
        ([*page("127.0.0.1"), ("mlflow_run_url", "http://evil.example/#/experiments/0/runs/" + RUN)], False),
        (page("[::1"), False),
        ([*page("127.0.0.1"), *page("127.0.0.1", OTHER)], False),  # a sweep: which of them failed is not told
        ([*page("127.0.0.1"), *page("127.0.0.1")], True),
        ([("wandb_run_id", "i31zyslt")], False),
    ],
)
def test_only_the_one_run_of_a_server_that_the_settings_name_is_tagged(facts: list[tuple[str, str]], tagged: bool) -> None:  # fmt: skip
    with fake() as running:
        sender(running, "mlflow.train.svc").send(notice(*facts), "k")
    assert (bool(running.runs[RUN]), bool(running.calls)) == (tagged, tagged)


def test_a_run_that_the_server_does_not_know_is_nothing_to_repeat() -> None:
    with fake() as running:
        sender(running).send(notice(("mlflow_run_id", OTHER)), "k")
    assert running.calls == 1


def test_a_wrong_address_or_token_is_reported() -> None:
    with fake("Bearer t0") as running:
        with pytest.raises(Undelivered, match="MLflow answered 401") as wrong:
            sender(running).send(usual(kind=NoticeKind.TEST), "t")
        MLflow(Outgoing(private=True), running.url, "t0").send(usual(kind=NoticeKind.TEST), "t")
        with pytest.raises(Undelivered, match="MLflow answered 404: Not Found"):
            MLflow(Outgoing(private=True), f"{running.url}/elsewhere", "t0").send(notice(), "k")
    assert not wrong.value.passing


def test_the_settings_make_the_channel_and_want_a_token(tmp_path: Path) -> None:
    with fake() as running:
        given_variables = {
            "TRIAGE_DATA_DIR": str(tmp_path),
            "TRIAGE_MLFLOW_URL": running.url,
            "TRIAGE_MLFLOW_USER": "ops",
            "TRIAGE_MLFLOW_HOSTS": "mlflow.train.svc, Tracking.Example.org",
            "TRIAGE_ALLOW_PRIVATE_CALLS": "yes",
        }
        with pytest.raises(SettingError, match="TRIAGE_MLFLOW_TOKEN"):
            Settings.from_environment(given_variables)
        known = Settings.from_environment(given_variables | {"TRIAGE_MLFLOW_TOKEN": "pw"})
        open_channels(known).senders["mlflow"].send(notice(*page("tracking.example.org")), "k")
    assert len(running.runs[RUN]) == len(ALL)


@pytest.mark.parametrize("text", ["https://mlflow.example.org", "mlflow:5000", "a b", "*"])
def test_an_invalid_host_prevents_the_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError, match="TRIAGE_MLFLOW_HOSTS: not a comma-separated list of host names"):
        Settings.from_environment({"TRIAGE_DATA_DIR": str(tmp_path), "TRIAGE_MLFLOW_HOSTS": text})


@given(hostile())
def test_whatever_a_log_says_is_taken(given_notice: Notice) -> None:
    class Recorded(Outgoing):
        def call(self, method: str, url: str, payload: Any = None, headers: Any = None) -> Answer:
            assert 0 < len(payload["value"].encode()) <= 5000
            return Answer(200, {}, b"{}")

    given_notice.document.clear()
    given_notice.document.update(notice().document)
    MLflow(Recorded(), "http://a", "t").send(given_notice, "k")
