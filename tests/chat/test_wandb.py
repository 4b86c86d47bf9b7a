"""Tags on runs in W&B: against one of our own, which takes and refuses what the real one does."""

from __future__ import annotations

import base64
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
from torchtriage.chat.outbound_http import Answer, Outgoing
from torchtriage.chat.wandb import WandB
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.errors import SettingError
from torchtriage.settings import Settings

KEY = "0123456789abcdef0123456789abcdef01234567"  # no secret: made up for tests
CONFIG = {"lr": {"value": 0.1, "desc": None}, "_wandb": {"value": {"cli_version": "0.31.0"}, "desc": None}}


@dataclass
class FakeWandB:
    """Knows one run, `acme/llm/i31zyslt`. `refusals` are answered first, each once."""

    url: str = ""
    tags: list[str] = field(default_factory=lambda: ["baseline"])
    config: str = field(default_factory=lambda: json.dumps(CONFIG))
    refusals: list[Told] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def answer(self, asked: Asked) -> Told:
        if (asked.method, asked.path) != ("POST", "/graphql"):
            return Told(b"404 page not found", 404, {"Content-Type": "text/plain"})
        if asked.headers.get("Authorization") != "Basic " + base64.b64encode(f"api:{KEY}".encode()).decode():
            return failed("user is not logged in", 401)
        if not asked.headers["Content-Type"].startswith("application/json"):
            return failed("unsupported media type", 415)
        body = json.loads(asked.body)
        if set(re.findall(r"\$(\w+): \[?\w+!?\]?!?[,)]", body["query"])) != set(body["variables"]):
            return failed("the variables are not those of the query", 400)
        if self.refusals:
            return self.refusals.pop(0)
        return getattr(self, re.search(r"(?:query|mutation) (\w+)", body["query"])[1])(body["variables"])  # type: ignore[index, no-any-return]

    def Viewer(self, variables: dict[str, Any]) -> Told:  # noqa: N802  the operation's name
        self.asked.append("viewer")
        return told({"data": {"viewer": {"entity": "acme"}}})

    def Run(self, variables: dict[str, Any]) -> Told:  # noqa: N802
        self.asked.append("run")
        if (variables["entity"], variables["project"]) != ("acme", "llm"):
            return told({"data": {"project": None}})
        run = {"id": "UnVuOjE=", "tags": self.tags, "config": self.config}
        return told({"data": {"project": {"run": run if variables["name"] == "i31zyslt" else None}}})

    def UpsertBucket(self, variables: dict[str, Any]) -> Told:  # noqa: N802
        self.asked.append("update")
        tags = variables["tags"]
        if variables["id"] != "UnVuOjE=" or len(set(tags)) != len(tags) or not all(0 < len(tag) <= 64 for tag in tags):
            return failed("invalid input", 400)
        self.tags, self.config = tags, variables["config"]
        return told({"data": {"upsertBucket": {"bucket": {"id": "UnVuOjE="}}}})


def failed(message: str, status: int = 200) -> Told:
    return told({"errors": [{"message": message, "path": []}], "data": None}, status)


@contextmanager
def fake() -> Iterator[FakeWandB]:
    made = FakeWandB()
    with serving(made.answer) as made.url:
        yield made


def sender(running: FakeWandB, *hosts: str, key: str = KEY) -> WandB:
    return WandB(Outgoing(private=True), f"{running.url}/", key, hosts or ("wandb.ai",))


def page(run: str = "i31zyslt", host: str = "wandb.ai", path: str = "acme/llm") -> tuple[str, str]:
    return "wandb_run_url", f"https://{host}/{path}/runs/{run}"


def notice(*facts: tuple[str, str], **other: Any) -> Notice:
    told_facts = [{"name": name, "value": value} for name, value in facts or [page()]]
    verdict = {"root_cause": {"confidence": "certain"}, "facts": told_facts}
    given_parts = {"kind": NoticeKind.INCIDENT, "document": {"incident": {"id": "17", "verdict": verdict}}}
    return usual(**(given_parts | other))


def test_the_run_says_what_failed_and_keeps_what_it_had() -> None:
    with fake() as running:
        sender(running).send(notice(), "k")
    assert running.tags == ["baseline", "torchtriage:cuda.oom"]
    config = json.loads(running.config)
    assert config.pop("torchtriage")["value"] == {
        "outcome": "explained",
        "entry": "cuda.oom",
        "confidence": "certain",
        "retry": "no",
        "summary": "Rank 3 asked for 2.00 GiB at train.py:88 and 1.10 GiB were free.",
        "incident": "https://triage.example.org/incidents/17",
    }
    assert config == CONFIG


def test_a_later_incident_replaces_the_tag() -> None:
    with fake() as running:
        sender(running).send(notice(), "k")
        sender(running).send(notice(entry=None, outcome="unexplained", screen=None), "l")
    assert running.tags == ["baseline", "torchtriage:unexplained"]
    assert json.loads(running.config)["torchtriage"]["value"]["entry"] == "unknown"


@pytest.mark.parametrize(
    ("facts", "tagged"),
    [
        ([page(), page()], True),
        ([page(host="127.0.0.1:8080")], True),
        ([page(host="evil.example")], False),
        ([page(), page(host="evil.example")], False),
        ([page(), page("1zpp9ex8")], False),  # a sweep: which of them failed is not told
        ([page(), page(path="acme/vision")], False),
        ([page(path="acme/llm/more")], False),
        ([("wandb_run_url", "https://[::1/acme/llm/runs/i31zyslt")], False),
        ([("wandb_run_id", "i31zyslt")], False),
        ([("mlflow_run_id", "i31zyslt")], False),
    ],
)
def test_only_the_one_run_of_a_server_that_the_settings_name_is_tagged(facts: list[tuple[str, str]], tagged: bool) -> None:  # fmt: skip
    with fake() as running:
        sender(running, "wandb.ai").send(notice(*facts), "k")
    assert (len(running.tags) == 2, bool(running.asked)) == (tagged, tagged)


@pytest.mark.parametrize("other", [page("1zpp9ex8"), page(path="acme/gone")])
def test_a_run_that_the_server_does_not_know_is_nothing_to_repeat(other: tuple[str, str]) -> None:
    with fake() as running:
        sender(running).send(notice(other), "k")
    assert running.asked == ["run"]


@pytest.mark.parametrize("config", ["[]", "{", '"text"'])
def test_a_config_that_cannot_be_read_is_not_replaced(config: str) -> None:
    with fake() as running:
        running.config = config
        with pytest.raises(Undelivered, match="W&B refused it: the run's config is not a JSON object"):
            sender(running).send(notice(), "k")
    assert (running.config, running.asked) == (config, ["run"])


def test_one_that_is_lost_on_its_way_is_sent_again() -> None:
    with fake() as running:
        running.refusals = [Told(b"", 429, {"Retry-After": "9"})]
        with pytest.raises(Undelivered) as lost:
            sender(running).send(notice(), "k")
        sender(running).send(notice(), "k")
    assert (lost.value.passing, lost.value.wait) == (True, 9)
    assert running.tags == ["baseline", "torchtriage:cuda.oom"]


def test_a_refusal_in_an_answer_of_200_is_reported() -> None:
    with fake() as running:
        running.refusals = [failed("permission denied"), Told(b"<html>", 200, {"Content-Type": "text/html"})]
        with pytest.raises(Undelivered, match="W&B refused it: permission denied") as denied:
            sender(running).send(notice(), "k")
        with pytest.raises(Undelivered, match="W&B refused it: no JSON"):
            sender(running).send(notice(), "k")
    assert not denied.value.passing


def test_a_wrong_address_or_key_is_reported_and_a_right_one_changes_nothing() -> None:
    with fake() as running:
        with pytest.raises(Undelivered, match="W&B answered 401: user is not logged in") as wrong:
            sender(running, key="other").send(usual(kind=NoticeKind.TEST), "t")
        running.refusals = [told({"data": {"viewer": None}})]
        with pytest.raises(Undelivered, match="the API key belongs to no user"):
            sender(running).send(usual(kind=NoticeKind.TEST), "t")
        sender(running).send(usual(kind=NoticeKind.TEST), "t")
        with pytest.raises(Undelivered, match="W&B answered 404: 404 page not found"):
            WandB(Outgoing(private=True), f"{running.url}/elsewhere", KEY, ("wandb.ai",)).send(notice(), "k")
    assert not wrong.value.passing
    assert running.asked == ["viewer"]


def test_pages_of_the_api_of_wandb_are_on_its_own_host() -> None:
    asked: list[str] = []

    class Recorded(Outgoing):
        def call(self, method: str, url: str, payload: Any = None, headers: Any = None) -> Answer:
            asked.append(url)
            return Answer(200, {}, b'{"data": {"project": null}}')

    WandB(Recorded(), "https://api.wandb.ai", KEY).send(notice(), "k")
    assert asked == ["https://api.wandb.ai/graphql"]


def test_the_settings_make_the_channel_and_want_a_key(tmp_path: Path) -> None:
    with fake() as running:
        given_variables = {
            "TRIAGE_DATA_DIR": str(tmp_path),
            "TRIAGE_WANDB_URL": running.url,
            "TRIAGE_WANDB_HOSTS": "wandb.ai, Wandb.Example.org",
            "TRIAGE_ALLOW_PRIVATE_CALLS": "yes",
        }
        with pytest.raises(SettingError, match="TRIAGE_WANDB_TOKEN"):
            Settings.from_environment(given_variables)
        known = Settings.from_environment(given_variables | {"TRIAGE_WANDB_TOKEN": KEY})
        open_channels(known).senders["wandb"].send(notice(page(host="wandb.example.org")), "k")
    assert running.tags == ["baseline", "torchtriage:cuda.oom"]


@given(hostile())
def test_whatever_a_log_says_is_taken(given_notice: Notice) -> None:
    class Recorded(Outgoing):
        def call(self, method: str, url: str, payload: Any = None, headers: Any = None) -> Answer:
            variables = payload["variables"]
            if "id" not in variables:
                return Answer(200, {}, b'{"data": {"project": {"run": {"id": "a", "tags": null, "config": null}}}}')
            assert all(0 < len(tag) <= 64 for tag in variables["tags"])
            assert json.loads(variables["config"])
            return Answer(200, {}, b'{"data": {}}')

    given_notice.document.clear()
    given_notice.document.update(notice().document)
    WandB(Recorded(), "https://wandb.ai", KEY).send(given_notice, "k")
