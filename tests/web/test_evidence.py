from __future__ import annotations

import json
from datetime import datetime, timedelta

from fastapi.testclient import TestClient

from tests.evidence.simulated import simulated
from tests.logs import text
from tests.services.logs import tar
from tests.web.test_api_incidents import SLOW, URL


def dumps() -> tuple[bytes, int]:
    """Returns an archive with the dumps of a run that hangs, and the rank at fault."""
    run = simulated(3, "stalls")
    return tar({f"dumps/nccl_trace_rank_{rank}": data for rank, data in run.dumps.items()}), run.at_fault


def test_an_archive_of_dumps_is_an_incident_that_names_the_rank(both: TestClient) -> None:
    archive, bad = dumps()
    answer = both.post(URL, content=archive, params=SLOW, headers={"content-type": "application/gzip"})
    assert answer.status_code == 201, answer.text
    verdict = answer.json()["verdict"]
    assert verdict["run"]["suspect_ranks"] == [bad]
    assert {source["taken_for"] for source in verdict["run"]["sources"]} == {"flight recorder"}
    shown = verdict["root_cause"]["evidence"][0]
    log = both.get(
        f"{URL}/{answer.json()['id']}/log", params={"from": shown["line"], "lines": 1, "file": shown["file"]}
    ).json()
    assert json.loads(log["lines"][0]["text"].rstrip(",")) == json.loads(shown["text"])  # the line is there to be read


def test_a_triage_without_keeping_reads_dumps(both: TestClient) -> None:
    archive, bad = dumps()
    answer = both.post("/api/v1/triage", content=archive, headers={"content-type": "application/gzip"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["run"]["suspect_ranks"] == [bad]


def test_the_page_of_the_incident_says_whom_to_look_at(both: TestClient) -> None:
    archive, bad = dumps()
    found = both.post(URL, content=archive, params=SLOW, headers={"content-type": "application/gzip"}).json()
    page = both.get(f"/incidents/{found['id']}").text
    assert f"Rank {bad} never entered" in page
    assert '<dt translate="no">flight recorder</dt>' in page
    assert "nccl_trace_rank_0</code>" in page


def test_the_page_says_which_clock_is_wrong(both: TestClient) -> None:
    def log(rank: int, skew: int) -> bytes:
        begin = datetime(2026, 5, 1, 9, 0, skew)
        times = [(begin + timedelta(seconds=10 * step)).isoformat(" ") for step in range(9)]
        return text([f"{time} INFO [rank {rank}] step {step} loss 0.5" for step, time in enumerate(times)])

    archive = tar({"logs/gpu-3.log": log(0, 0), "logs/gpu-7.log": log(1, 41)})
    found = both.post(URL, content=archive, params=SLOW, headers={"content-type": "application/gzip"}).json()
    page = f"/incidents/{found['id']}"
    said = both.get(page).text
    assert "gpu-7: 41.0 s ahead of gpu-3" in said
    assert "From 9 common steps, which agree within 0.0 s" in said
    assert "gpu-7：比 gpu-3 快 41.0 秒" in both.get(page, headers={"accept-language": "zh"}).text
