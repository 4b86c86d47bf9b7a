"""Decisions over HTTP: asked with a log or an incident, kept, graded by the next attempt, shown on a page."""

from __future__ import annotations

import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.prepared import DATABASE, put_database
from tests.services.logs import OUT_OF_MEMORY
from tests.web.logs import OOM
from torchtriage.domain.access import Scope
from torchtriage.errors import SettingError
from torchtriage.services import tokens
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

PEOPLE = {"accept": "text/html"}
DECISION = "/api/v1/decision"
GOOD = b"step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\ntraining finished\n"


def nccl(step: int, host: str = "gpu-007") -> bytes:
    """Returns the log of a run in which one rank lost its peer."""
    return (
        "".join(f"{host}: step {at} loss {2.5 - at / 1000:.4f}\n" for at in range(step - 3, step + 1))
        + "[rank3]: Traceback (most recent call last):\n"
        '[rank3]:   File "/work/train.py", line 81, in step\n'
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or "
        "there was a network error, NCCL version 2.21.5\n"
    ).encode()


def decided(client: TestClient, log: bytes | str, **query: Any) -> dict[str, Any]:
    answer = client.post(DECISION, params=query, content=log)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_log_is_stored_and_decided_about(both: TestClient) -> None:
    made = decided(both, OOM, job_id="7", attempt=2)
    assert (made["action"], made["mode"], made["confidence"]) == ("stop", "dry-run", "certain")
    assert made["reason"] == "cuda.oom is certain, and the job fails again until it is fixed."
    assert (made["attempt"]["attempt"], made["attempt"]["entry"], made["attempt"]["rank"]) == (2, "cuda.oom", 3)
    assert set(made["budget"]) == {"job", "progress", "cause"}
    assert "CUDA out of memory" in made["evidence"][0]["text"]
    assert both.get(f"/api/v1/incidents/{made['incident']}").json()["job"] == {"job_id": "7", "attempt": 2}
    assert both.get("/api/v1/decisions").json() == {"items": [made], "next": None}


def test_an_incident_is_decided_about_in_the_language_asked_for(client: TestClient) -> None:
    taken = client.post("/api/v1/incidents?wait=60", content=gzip.compress(OOM.encode())).json()["id"]
    asked = {"incident": taken, "attempt": 4, "history": [{"attempt": 3, "entry": "nccl.timeout"}], "lang": "zh"}
    made = client.post(DECISION, json=asked).json()
    assert (made["incident"], made["attempt"]["attempt"], made["action"]) == (taken, 4, "stop")
    assert made["reason"] == "原因确定为 cuda.oom，修复之前重启仍会失败。"


def test_the_history_is_taken_from_the_jobs_own_incidents(client: TestClient) -> None:
    for attempt in range(2):
        made = decided(client, nccl(120, "gpu-007"), job_id="7", attempt=attempt)
    assert (made["action"], made["rule"]) == ("wait", "retries-used")
    assert decided(client, nccl(121), job_id="8", attempt=1)["action"] == "restart"  # another job


def test_a_history_that_is_given_counts_instead(client: TestClient) -> None:
    earlier = json.dumps([{"attempt": 1, "entry": "nccl.remote-error", "host": "gpu-1", "step": 50}])
    assert decided(client, nccl(120), attempt=2, history=earlier)["action"] == "restart"
    assert decided(client, nccl(20), attempt=2, history=earlier)["action"] == "wait"


def test_the_next_attempt_grades_what_was_decided(both: TestClient) -> None:
    for job, log, following in (("a", OOM, OOM), ("b", OOM, GOOD), ("c", nccl(100).decode(), nccl(200))):
        decided(both, log, job_id=job, attempt=0)
        both.post("/api/v1/incidents", params={"job_id": job, "attempt": 1, "wait": 60}, content=following)
    found = {one["job_id"]: one for one in both.get("/api/v1/decisions").json()["items"]}
    assert {job: one["grade"] for job, one in found.items()} == {"a": "right", "b": "wrong", "c": "right"}
    assert found["a"]["graded_by"] == str(int(found["a"]["incident"]) + 1)
    score = {one["action"]: one for one in both.get("/api/v1/decisions/score").json()["items"]}
    assert (score["stop"]["right"], score["stop"]["wrong"], score["restart"]["right"]) == (1, 1, 1)
    assert [one["job_id"] for one in both.get("/api/v1/decisions?grade=wrong").json()["items"]] == ["b"]
    assert both.get("/api/v1/decisions?grade=waiting").json()["items"] == []


def test_a_run_that_worked_grades_what_was_decided(both: TestClient) -> None:
    for job, log in (("a", nccl(100)), ("b", OOM)):
        decided(both, log, job_id=job, attempt=0)
    decided(both, nccl(90), job_id="a", attempt=0, cluster="blue")
    for job in ("a", "b"):
        both.post("/api/v1/run-summaries", json={"job_name": "bert", "job_id": job})
    found = {(one["job_id"], one["cluster"]): one for one in both.get("/api/v1/decisions").json()["items"]}
    grades = {key: one["grade"] for key, one in found.items()}
    assert grades == {("a", None): "right", ("b", None): "wrong", ("a", "blue"): None}
    assert found["a", None]["graded_by"] is None
    assert "#None" not in both.get("/decisions", headers=PEOPLE).text


def test_long_job_ids_that_begin_alike_are_distinguished(both: TestClient) -> None:
    begin = "very-long-" * 20
    decided(both, OOM, job_id=begin + "a", attempt=0)
    assert decided(both, nccl(10), job_id=begin + "b", attempt=1)["budget"]["progress"] == 6  # one attempt is unknown
    assert both.get("/api/v1/decisions", params={"job_id": begin + "a"}).json()["items"][0]["grade"] is None
    decided(both, OOM + "again", job_id=begin + "a", attempt=1)
    found = both.get("/api/v1/decisions", params={"job_id": begin + "a"}).json()["items"]
    assert [(one["job_id"], one["grade"]) for one in found] == [(begin + "a", None), (begin + "a", "right")]


def test_another_node_of_the_same_attempt_grades_nothing(client: TestClient) -> None:
    decided(client, OOM, job_id="7", attempt=0, node_rank=0)
    client.post("/api/v1/incidents?job_id=7&attempt=0&node_rank=1&wait=60", content=nccl(10))
    client.post("/api/v1/incidents?job_id=7&attempt=1&cluster=blue&wait=60", content=OOM)  # the job of another cluster
    assert client.get("/api/v1/decisions").json()["items"][0]["grade"] is None


def test_attempts_without_a_number_are_distinguished_by_time(client: TestClient) -> None:
    assert decided(client, OOM, job_id="7")["attempt"]["attempt"] == 0
    made = decided(client, OOM + "again\n", job_id="7")
    assert made["attempt"]["attempt"] == 1
    assert [one["grade"] for one in client.get("/api/v1/decisions").json()["items"]] == [None, "right"]


def test_nodes_that_report_for_themselves_use_up_no_attempts(client: TestClient) -> None:
    """Without numbers, each node's reports are attempts of their own."""
    for node in range(4):
        made = decided(client, nccl(100, f"gpu-{node}"), job_id="7", node_rank=node)
        assert (made["attempt"]["attempt"], made["action"]) == (0, "restart"), node
    assert decided(client, nccl(101, "gpu-3"), job_id="7", node_rank=3)["attempt"]["attempt"] == 1


def test_asked_again_it_is_decided_again_until_the_next_attempt_is_known(client: TestClient) -> None:
    first = decided(client, nccl(10), job_id="7", attempt=0)
    again = client.post(DECISION, json={"incident": first["incident"], "attempt": 9}).json()
    assert (again["id"], again["attempt"]["attempt"], again["action"]) == (first["id"], 9, "wait")
    client.post(DECISION, json={"incident": first["incident"], "attempt": 0})
    client.post("/api/v1/incidents?job_id=7&attempt=1&wait=60", content=GOOD)
    graded = client.post(DECISION, json={"incident": first["incident"], "attempt": 9}).json()
    assert (graded["attempt"]["attempt"], graded["grade"]) == (0, "right")
    assert len(client.get("/api/v1/decisions").json()["items"]) == 1


def test_a_failed_job_is_restarted_though_its_log_shows_nothing(client: TestClient) -> None:
    assert decided(client, b"step 1 loss 2.5\n", job_id="1")["action"] == "wait"
    assert decided(client, b"step 1 loss 2.5\n", job_id="2", exit_code=1)["action"] == "restart"
    assert decided(client, b"step 1 loss 2.5\n", job_id="3", state="NODE_FAIL")["action"] == "restart"


def test_a_decision_without_a_verdict_can_be_asked_for_again(tmp_path: Path, migrated_sqlite: Path) -> None:
    put_database(migrated_sqlite, tmp_path / DATABASE)
    settings = Settings(data_dir=tmp_path, workers=0)
    with TestClient(create_app(settings)) as client:
        client.app.state.service.queue.stop()  # type: ignore[attr-defined]
        answer = client.post(DECISION, params={"wait": 0}, content=OOM)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_triaged")
        named = answer.json()["error"]["detail"]["incident"]
        assert client.post(DECISION, json={"incident": named}, params={"wait": 0}).status_code == 409
        assert client.get("/api/v1/decisions").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"incident": "99"}, 404, "no such incident"),
        ({}, 422, "body.incident: Field required"),
        ({"incident": "1", "retry": True}, 422, "body.retry: Extra inputs are not permitted"),
        ({"incident": "1", "attempt": -1}, 422, "body.attempt: "),
        ({"incident": "1", "history": [{"step": 1}]}, 422, "body.history.0.attempt: Field required"),
        ([1], 422, "body: "),
    ],
)
def test_a_wrong_question_is_refused(client: TestClient, body: Any, status: int, said: str) -> None:
    answer = client.post(DECISION, json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"].startswith(said)


def test_a_body_that_is_no_json_or_too_large_is_refused(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    assert client.post(DECISION, content=b"{", headers=headers).status_code == 422
    assert client.post(DECISION, content=b"[" * 3_000_000, headers=headers).status_code == 413
    assert client.post(DECISION, content=b"", headers={"content-type": "text/plain"}).status_code == 422
    refused = client.post(DECISION, params={"history": "no"}, content=OOM)
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith("query.history: no JSON: ")


def test_a_decision_goes_with_its_incident(both: TestClient) -> None:
    made = decided(both, OOM)
    assert both.delete(f"/api/v1/incidents/{made['incident']}").status_code == 204
    assert both.get("/api/v1/decisions").json()["items"] == []


def test_the_list_has_pages(client: TestClient) -> None:
    ids = [decided(client, OOM + str(at), job_id=str(at))["id"] for at in range(3)]
    first = client.get("/api/v1/decisions?limit=2").json()
    rest = client.get("/api/v1/decisions", params={"limit": 2, "cursor": first["next"]}).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None
    assert [one["job_id"] for one in client.get("/api/v1/decisions?job_id=1").json()["items"]] == ["1"]
    assert client.get("/api/v1/decisions?action=wait").json()["items"] == []
    assert client.get("/api/v1/decisions?who=me").status_code == 422


def test_a_token_needs_to_submit_and_to_read(tmp_path: Path, migrated_sqlite: Path) -> None:
    put_database(migrated_sqlite, tmp_path / DATABASE)
    with TestClient(create_app(Settings(data_dir=tmp_path, workers=0, auth="tokens"))) as client:
        database = client.app.state.service.database  # type: ignore[attr-defined]
        for scopes, status in (([Scope.SUBMIT], 403), ([Scope.READ], 403), ([Scope.SUBMIT, Scope.READ], 200)):
            secret, _ = tokens.create(database, "ann", scopes, None, "a test")
            headers = {"authorization": f"Bearer {secret}"}
            assert client.post(DECISION, content=OOM, headers=headers).status_code == status
        assert client.get("/api/v1/decisions", headers=headers).json()["items"][0]["by"] == "ann"


def test_the_policy_and_the_mode_are_settings(tmp_path: Path, migrated_sqlite: Path) -> None:
    put_database(migrated_sqlite, tmp_path / DATABASE)
    policy = tmp_path / "policy.yaml"
    policy.write_text("causes: {cuda.oom: {wait: true}}\n")
    settings = Settings(data_dir=tmp_path, workers=0, policy_file=policy, decisions="enforce")
    with TestClient(create_app(settings)) as client:
        made = decided(client, OUT_OF_MEMORY)
        assert (made["action"], made["mode"], made["policy"]) == ("wait", "enforce", str(policy))


def test_a_wrong_policy_stops_the_start_with_one_line(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("retries: {twice: 2}\n")
    with (
        pytest.raises(SettingError, match=r"^TRIAGE_POLICY_FILE: .*/policy.yaml: retries.twice: unknown key$"),
        TestClient(create_app(Settings(data_dir=tmp_path, workers=0, policy_file=policy))),
    ):
        pass


@pytest.mark.parametrize(
    ("lang", "says"),
    [
        ("en", ["Dry run: ", "Restart without gpu-7", "Pending", "attempt 0", "100 %"]),
        ("zh", ["试运行：", "排除 gpu-7 后重启", "待评判", "100 %"]),
    ],
)
def test_the_page_shows_the_score_and_the_list(client: TestClient, lang: str, says: list[str]) -> None:
    assert client.get("/decisions", headers=PEOPLE).status_code == 200  # of nothing too
    ecc = (
        "Nov 16 10:00:00 gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, name=python, DBE (double bit error)\n"
    )
    assert decided(client, ecc, job_id="ecc", attempt=0)["hosts"] == ["gpu-7"]
    for attempt in range(2):
        decided(client, OOM, job_id="<b>7</b>", attempt=attempt)
    page = client.get("/decisions", params={"lang": lang}, headers=PEOPLE).text
    shown = re.sub(r"</?span[^>]*>", "", page)
    assert [words for words in says if words not in shown] == []
    assert "&lt;b&gt;7&lt;/b&gt;" in page
    wrong = client.get("/decisions?grade=wrong", headers=PEOPLE).text
    assert "gpu-7" not in wrong
    title = {"en": "The GPU ran out of memory", "zh": "GPU 显存不足"}[lang]
    row = page[page.index('class="stacked people decisions"') :].split("</tr>")[2]
    assert re.search(rf'<a class="title" href="/incidents/\d+">{title}</a>', row)
    assert "cuda.oom" not in row
    excluding = html.unescape(client.get("/decisions?action=restart-excluding&grade=waiting", headers=PEOPLE).text)
    assert "gpu-7" in excluding
    assert title not in excluding
    assert 'href="/decisions?grade=waiting#list"' in excluding  # takes the action off
    assert "/api/v1/decisions?action=restart-excluding&grade=waiting" in excluding
    assert 'href="/decisions"' in client.get("/dashboard", headers=PEOPLE).text
