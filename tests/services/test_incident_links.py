"""Links from an incident to logs, metrics and trackers, and the file of their templates."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.built_in import built_in_engine
from torchtriage.domain.incident import Incident, Job, State, StoredLog
from torchtriage.domain.verdict import Verdict
from torchtriage.errors import SettingError
from torchtriage.reading.sources import from_bytes
from torchtriage.services.incident_links import links_of
from torchtriage.settings.links import LinkTemplates, link_templates

LOG = b"""\
wandb: \xf0\x9f\x9a\x80 View run at https://wandb.ai/acme/llm/runs/i31zyslt
2026-05-01 09:05:11 gpu-021 step 1 loss 2.3
2026-05-01 09:06:11 gpu-021 step 2 loss 2.2
Traceback (most recent call last):
  File "/home/ann/train.py", line 88, in <module>
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
FILE = """
timezone = "Europe/Berlin"
[[links]]
name = "Loki"
name_zh = "Loki 日志"
grafana = "https://grafana.example.org/"
type = "loki"
datasource = "P8E80"
query = '{cluster="$cluster"} |= "${job_id}" [$__auto]'
[[links]]
name = "portal"
url = "https://portal.example.org/$job_id?from=$from_ms&to=$to_ms&run=$wandb_run_id"
[[links]]
name = "queue"
url = "https://portal.example.org/queues/$queue"
"""


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return built_in_engine().triage(from_bytes(LOG))


def templates(folder: Path, text: str = FILE) -> LinkTemplates:
    (folder / "links.toml").write_text(text)
    return link_templates(folder / "links.toml")


def incident(verdict: Verdict | None, **job: Any) -> Incident:
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    known = Job(**{"job_id": "4711", "cluster": "blue", **job})
    return Incident("17", State.TRIAGED, at, known, StoredLog("0", ()), verdict)


def test_a_query_in_grafana_has_the_time_of_the_run(tmp_path: Path, verdict: Verdict) -> None:
    loki, portal, page = links_of(templates(tmp_path), incident(verdict), "en")
    address = urlsplit(loki.url)
    assert (loki.name, f"{address.scheme}://{address.netloc}{address.path}") == ("Loki", "https://grafana.example.org/explore")  # fmt: skip
    asked = parse_qs(address.query)
    assert asked["schemaVersion"] == ["1"]
    (pane,) = json.loads(asked["panes"][0]).values()
    (query,) = pane["queries"]
    assert query["expr"] == '{cluster="blue"} |= "4711" [$__auto]'
    assert (query["datasource"], pane["datasource"]) == ({"type": "loki", "uid": "P8E80"}, "P8E80")
    began, ended = (int(pane["range"][name]) / 1000 for name in ("from", "to"))
    assert datetime.fromtimestamp(began, UTC) == datetime(
        2026, 5, 1, 7, 0, 11, tzinfo=UTC
    )  # 09:05:11 in Berlin, less 5 minutes
    assert datetime.fromtimestamp(ended, UTC) == datetime(2026, 5, 1, 7, 11, 11, tzinfo=UTC)
    assert portal.url == f"https://portal.example.org/4711?from={began * 1000:.0f}&to={ended * 1000:.0f}&run=i31zyslt"
    assert (page.url, page.name) == ("https://wandb.ai/acme/llm/runs/i31zyslt", None)
    assert links_of(templates(tmp_path), incident(verdict, queue="gpu"), "zh")[0].name == "Loki 日志"
    assert links_of(templates(tmp_path), incident(verdict, queue="a/b"), "en")[2].url.endswith("/queues/a%2Fb")


def test_the_senders_times_come_before_the_logs(tmp_path: Path, verdict: Verdict) -> None:
    job = {"started_at": "2026-05-01T06:00:00+00:00", "ended_at": "2026-05-01T08:00:00Z"}
    portal = links_of(templates(tmp_path), incident(verdict, **job), "en")[1]
    asked = parse_qs(urlsplit(portal.url).query)
    times = [datetime.fromtimestamp(int(asked[name][0]) / 1000, UTC) for name in ("from", "to")]
    assert times == [datetime(2026, 5, 1, 5, 55, tzinfo=UTC), datetime(2026, 5, 1, 8, 5, tzinfo=UTC)]


def test_without_a_verdict_the_time_is_before_it_was_received(tmp_path: Path) -> None:
    (loki,) = links_of(templates(tmp_path), incident(None), "en")
    (pane,) = json.loads(parse_qs(urlsplit(loki.url).query)["panes"][0]).values()
    assert int(pane["range"]["to"]) - int(pane["range"]["from"]) == (6 * 3600 + 600) * 1000


@pytest.mark.parametrize("name", ['x"} or {a="', "a\nb", "", "x" * 300, "`", "a\\", "{", "$host"])
def test_a_value_that_could_change_a_query_fills_no_slot(tmp_path: Path, name: str) -> None:
    assert links_of(templates(tmp_path), incident(None, cluster=name), "en") == ()


@pytest.mark.parametrize("page", ["javascript:alert(1)//runs/x", "https://a b/runs/x", 'https://a"/runs/x'])
def test_only_pages_of_the_web_are_links(verdict: Verdict, page: str) -> None:
    facts = tuple(replace(fact, value=page) if fact.name == "wandb_run_url" else fact for fact in verdict.facts)
    assert any(fact.value == page for fact in facts)
    assert links_of(LinkTemplates(), incident(replace(verdict, facts=facts)), "en") == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[links]]\nurl = 'https://x'", "link 1: name is missing"),
        ("[[links]]\nname = 'a'", "link 1: give url, or grafana, type, datasource, query"),
        ("[[links]]\nname = 'a'\nurl = 'https://x'\nquery = 'y'", "link 1: give url, or"),
        ("[[links]]\nname = 'a'\nurl = 'javascript:x'", "link 1: the URL does not start with https://"),
        ("[[links]]\nname = 'a'\ngrafana = 'https://x'\ntype = 'loki'\nquery = 'y'", "link 1: datasource is missing"),
        (
            "[[links]]\nname = 'a'\ngrafana = 'https://x'\ntype = 'sql'\nquery = 'y'\ndatasource = 'z'",
            "type must be one of",
        ),
        ("[[links]]\nname = 'a'\nurl = 7", "link 1: all values must be strings"),
        ("[[links]]\nname = 'a'\nlink = 'https://x'", "link 1: link is unknown"),
        ("links = 7", "links: write each one as [[links]]"),
        ("link = []", "the file: link is unknown"),
        ("timezone = 'Mars/Base'", "timezone: Mars/Base is not a name"),
        ("[[links]", "TRIAGE_LINKS_FILE: "),
    ],
)
def test_a_mistake_is_reported_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        templates(tmp_path, text)
    assert raised.value.message.startswith("TRIAGE_LINKS_FILE: ")
    assert problem in raised.value.message
    assert "\n" not in raised.value.message


def test_a_missing_file_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"TRIAGE_LINKS_FILE: .*can't be read"):
        link_templates(tmp_path / "none.toml")
    assert link_templates(None) == LinkTemplates()
