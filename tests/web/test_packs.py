"""A server that has a pack installed answers with it, from its start on and while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.drafts import SAYS, SOUND, UNKNOWN
from tests.services.test_case_drafts import CASE, ENTRY, LOCKED
from torchtriage.domain.entry import Text
from torchtriage.knowledge import BUILT_IN, packs
from torchtriage.knowledge.drafted_entry import yaml_of
from torchtriage.knowledge.folders import home_of_packs
from torchtriage.services.maintenance import Maintenance
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

BROWSER = {"accept": "text/html"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Returns where packs are, one of which is installed."""
    source, home = tmp_path / "entries", home_of_packs(tmp_path / "data")
    (source / "ourdata").mkdir(parents=True)
    says = Text(SAYS, "/data/a.idx 的分片 3 只有 3005 条记录。")
    (source / "ourdata" / "shard-too-short.yaml").write_text(yaml_of(SOUND, says))
    _, packed = packs.build(source, "ours", "1.0.0", [BUILT_IN])
    packs.install(packs.read_archive(packed, "ours.tar.gz"), "ours.tar.gz", home, [BUILT_IN])
    return home


def asked(client: TestClient, job: str) -> dict[str, Any]:
    query = {"wait": "60", "job_id": job}
    found = client.post("/api/v1/incidents", params=query, content=UNKNOWN.replace("3005", job).encode())
    verdict: dict[str, Any] = found.json()["verdict"]
    return verdict


@pytest.mark.slow
def test_a_server_answers_with_its_packs_and_takes_removed_ones_out(home: Path) -> None:
    app = create_app(Settings(data_dir=home.parent, workers=0))
    with TestClient(app) as client:
        verdict = asked(client, "7")
        assert verdict["root_cause"]["entry"] == SOUND.entry
        assert verdict["root_cause"]["pack"] == "ours 1.0.0"
        assert "ours 1.0.0" in client.get("/incidents/1", headers=BROWSER).text
        assert client.get("/knowledge", headers=BROWSER).text.count("ours 1.0.0") == 1
        assert "holds only 7 records" in verdict["answer"]["says"]
        assert client.get(f"/api/v1/knowledge/{SOUND.entry}").json()["pack"] == "ours 1.0.0"
        page = client.get(f"/knowledge/{SOUND.entry}", headers=BROWSER)
        assert 'pack <span translate="no">ours 1.0.0</span>' in page.text
        packs.remove("ours", home)
        Maintenance(app.state.service).run_round()
        assert "ours 1.0.0" in client.get("/incidents/1", headers=BROWSER).text  # it was made by that entry
        without = asked(client, "8")
        assert without["outcome"] == "unexplained"
        assert without["knowledge"] != verdict["knowledge"]


@pytest.mark.slow
def test_a_pack_that_does_not_load_any_more_stops_no_start(home: Path) -> None:
    broken = home / "theirs@1-0"
    (broken / "x").mkdir(parents=True)
    (broken / "x" / "y.yaml").write_text("id: [")
    (broken / "pack.json").write_text(json.dumps({"name": "theirs", "version": "1"}))
    with TestClient(create_app(Settings(data_dir=home.parent, workers=0))) as client:
        assert asked(client, "7")["root_cause"]["entry"] == SOUND.entry
        page = client.get("/settings").text
        assert "pack theirs 1: skipped, because it does not load: x/y.yaml:" in page
        assert ">ours 1.0.0</span>" in page


@pytest.mark.slow
def test_the_pack_of_a_case_is_named_where_the_case_is(tmp_path: Path) -> None:
    source, home = tmp_path / "cases" / "storage", home_of_packs(tmp_path / "data")
    source.mkdir(parents=True)
    (source / "output-path+frobnicator-lock.yaml").write_text(yaml_of(CASE, Text(CASE.says_en, CASE.says_zh)))
    _, packed = packs.build(source.parent, "ours", "1.0.0", [BUILT_IN])
    packs.install(packs.read_archive(packed, "ours.tar.gz"), "ours.tar.gz", home, [BUILT_IN])
    with TestClient(create_app(Settings(data_dir=home.parent, workers=0))) as client:
        found = client.post("/api/v1/incidents", params={"wait": "60"}, content=LOCKED).json()["verdict"]
        assert (found["root_cause"]["pack"], found["answer"]["pack"]) == (None, "ours 1.0.0")
        assert "ours 1.0.0" in client.get("/incidents/1", headers=BROWSER).text
        page = client.get(f"/knowledge/{ENTRY}", headers=BROWSER).text
        assert page.count("ours 1.0.0") == 1
        assert "ours 1.0.0" not in client.get("/knowledge", headers=BROWSER).text
