"""The calls that the clients of NVIDIA's resiliency extension make (`--ft-attribution-endpoint`), one by one.

Three generations of them exist: the launcher's first client posts a path and asks for the one before; the next one takes
`result.state` for the answer; today's checks `status`, and takes `recommendation.action`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import httpx2
import pytest
from fastapi.testclient import TestClient

from tests.conftest import serving
from tests.prepared import DATABASE, put_database
from tests.web.logs import OOM
from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.settings import Settings
from torchtriage.storage.database import Database
from torchtriage.web.app import create_app

ACCEPT = {"accept": "application/json"}
GOOD = "step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\ntraining finished\n"
LOST = (
    "step 120 loss 2.5\n[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "/work/train.py", line 81, in step\n'
    "[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there "
    "was a network error, NCCL version 2.21.5\n"
)


def stops(payload: dict[str, Any]) -> bool:
    """Returns what today's client makes of an answer to GET /logs; it refuses one without a status that it knows."""
    assert payload["status"].strip().lower() in {"pending", "in_flight", "completed"}
    action = payload["recommendation"]["action"]
    assert action in {"STOP", "RESTART", "CONTINUE", "UNKNOWN", "TIMEOUT"}
    return bool(action == "STOP")


def stops_by_state(payload: dict[str, Any]) -> bool:
    """Returns what the client before made of it."""
    result = payload.get("result", payload)
    assert result["state"] in ("STOP", "CONTINUE", "RESTART")
    return bool(result["state"] == "STOP")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "lustre"
    folder.mkdir()
    return folder


@pytest.fixture
def client(tmp_path: Path, root: Path, migrated_sqlite: Path) -> Iterator[TestClient]:
    put_database(migrated_sqlite, tmp_path / "data" / DATABASE)
    settings = Settings(data_dir=tmp_path / "data", workers=0, attribution_root=root, decisions="enforce")
    with TestClient(create_app(settings)) as asked:
        yield asked


def test_todays_client_names_a_log_early_and_asks_when_the_attempt_has_ended(client: TestClient, root: Path) -> None:
    log = root / "job_7_cycle0.log"
    whose = {"log_path": str(log), "user": "alice", "job_id": "job-7", "cycle_id": 8}
    start = client.post("/logs", json=whose | {"analysis_intent": "progressive"}, headers=ACCEPT)
    assert (start.status_code, start.json()["submitted"], start.json()["mode"]) == (200, True, "PENDING")
    early = client.get("/logs", params={"log_path": str(log), "wait": False}, headers=ACCEPT).json()
    assert (early["status"], stops(early)) == ("pending", False)
    log.write_text(OOM)
    ended = client.post("/logs", json=whose | {"analysis_intent": "terminal"}, headers=ACCEPT).json()
    assert (ended["mode"], ended["normalized_path"]) == ("SINGLE", str(log.resolve()))
    asked = client.get("/logs", params={"log_path": str(log), "wait": True}, headers=ACCEPT).json()
    assert (asked["status"], stops(asked), stops_by_state(asked)) == ("completed", True, True)
    assert asked["recommendation"] == {
        "action": "STOP",
        "reason": "cuda.oom is certain, and the job fails again until it is fixed.",
        "source": "torchtriage",
    }
    assert asked["result"]["decision"]["attempt"]["attempt"] == 8
    again = client.get("/logs", params={"log_path": str(log), "wait": False}, headers=ACCEPT).json()
    assert (again["status"], stops(again)) == ("completed", True)
    (incident,) = client.get("/api/v1/incidents").json()["items"]
    assert incident["job"] == {"job_id": "job-7", "attempt": 8, "user": "alice"}


def test_the_client_before_posts_a_path_and_asks_by_an_encoded_one(client: TestClient, root: Path) -> None:
    log = root / "a job+7_cycle3.log"
    client.post("/logs", json={"log_path": str(log)}, headers=ACCEPT)
    log.write_text(LOST)
    answer = client.get(f"/logs?log_path={quote_plus(str(log))}", headers=ACCEPT)
    assert answer.status_code == 200
    assert not stops_by_state(answer.json())
    assert answer.json()["recommendation"]["action"] == "RESTART"
    (incident,) = client.get("/api/v1/incidents").json()["items"]
    assert (incident["job"]["job_id"], incident["job"]["attempt"]) == (str(root.resolve() / "a job+7")[-64:], 3)


def test_the_first_client_asks_for_the_path_before_and_posts_the_next(client: TestClient, root: Path) -> None:
    last = None
    for cycle in range(3):
        log = root / f"job_cycle{cycle}.log"
        if last is not None:
            assert client.get(f"/logs?log_path={quote_plus(str(last))}", headers=ACCEPT).json()["status"] == "completed"
        assert client.post("/logs", json={"log_path": str(log)}, headers=ACCEPT).status_code == 200
        log.write_text(LOST.replace("120", str(120 + cycle)))
        last = log
    decisions = client.get("/api/v1/decisions").json()["items"]
    assert [(one["attempt"]["attempt"], one["action"], one["grade"]) for one in decisions] == [
        (1, "restart", None),
        (0, "restart", "right"),
    ]


def test_the_monitor_asks_with_job_user_and_cycle(client: TestClient, root: Path) -> None:
    log = root / "slurm-4711.out"
    log.write_text(GOOD)
    assert client.get("/healthz", headers=ACCEPT).status_code < 500
    body = {"log_path": str(log), "user": "unknown", "job_id": "4711"}
    assert client.post("/logs", json=body, headers=ACCEPT).status_code == 200
    answer = client.get("/logs", params={"log_path": str(log), "wl_restart": 2}, headers=ACCEPT).json()
    assert (answer["recommendation"]["action"], answer["wl_restart"]) == ("CONTINUE", 2)
    assert answer["result"]["module"]


def test_a_dry_run_gives_nothing_to_act_on(tmp_path: Path, root: Path, migrated_sqlite: Path) -> None:
    put_database(migrated_sqlite, tmp_path / "data" / DATABASE)
    (root / "job_cycle0.log").write_text(OOM)
    settings = Settings(data_dir=tmp_path / "data", workers=0, attribution_root=root)
    with TestClient(create_app(settings)) as client:
        told = client.get("/logs", params={"log_path": str(root / "job_cycle0.log")}).json()
        assert (stops(told), stops_by_state(told)) == (False, False)
        assert told["recommendation"]["action"] == "UNKNOWN"
        assert told["recommendation"]["reason"].startswith("dry run, Stop: cuda.oom is certain")
        assert client.get("/api/v1/decisions").json()["items"][0]["action"] == "stop"


def test_a_log_that_was_written_on_is_looked_at_again(client: TestClient, root: Path) -> None:
    log = root / "job_cycle0.log"
    log.write_text(LOST)
    first = client.get("/logs", params={"log_path": str(log)}).json()
    with log.open("a") as file:
        file.write(OOM)
    assert client.get("/logs", params={"log_path": str(log), "wait": False}).json()["status"] == "pending"
    second = client.get("/logs", params={"log_path": str(log)}).json()
    assert first["result"]["result_id"] != second["result"]["result_id"]


def test_paths_lead_nowhere_else(client: TestClient, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text(OOM)
    (root / "link.log").symlink_to(secret)
    os.mkfifo(root / "pipe.log")
    (root / "empty.log").touch()
    (root / "folder").mkdir()
    for path, status, code in (
        ("job.log", 400, "bad_input"),
        (str(secret), 403, "outside_root"),
        (f"{root}/../secret.log", 403, "outside_root"),
        (str(root / "link.log"), 403, "outside_root"),
        (str(root), 403, "outside_root"),
        (str(root / "none.log"), 404, "not_found"),
        (str(root / "pipe.log"), 400, "bad_input"),
        (str(root / "folder"), 400, "bad_input"),
        (str(root / "empty.log"), 422, "unreadable_log"),
        (f"{root}/a\0b", 400, "bad_input"),
    ):
        answer = client.get("/logs", params={"log_path": path})
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), path
    assert client.post("/logs", json={"log_path": str(secret)}).status_code == 403
    assert client.post("/logs", json={"log_path": str(root / "x.log"), "cycle_id": True}).status_code == 422
    assert client.get("/api/v1/incidents").json()["items"] == []


def test_without_the_setting_no_path_is_looked_at(tmp_path: Path, migrated_sqlite: Path) -> None:
    put_database(migrated_sqlite, tmp_path / DATABASE)
    with TestClient(create_app(Settings(data_dir=tmp_path, workers=0))) as client:
        answer = client.get("/logs", params={"log_path": "/etc/hostname"})
        assert (answer.status_code, answer.json()["error"]["message"]) == (404, "TRIAGE_ATTRIBUTION_ROOT is not set")


def test_a_token_comes_in_the_address(tmp_path: Path, root: Path, migrated_sqlite: Path) -> None:
    """Its client sends no header of its own, but httpx makes one of a name and a password in the address."""
    put_database(migrated_sqlite, tmp_path / "data" / DATABASE)
    (root / "job_cycle0.log").write_text(OOM)
    with serving(tmp_path / "data", auth="tokens", workers=0, attribution_root=root, decisions="enforce") as server:
        database = Database(server.settings.database)
        secret, _ = tokens.create(database, "launcher", [Scope.SUBMIT, Scope.READ], None, "a test")
        database.close()
        asked = {"log_path": str(root / "job_cycle0.log")}
        for password, status in ((secret, 200), ("wrong", 401), ("", 401)):
            address = server.url.replace("http://", f"http://launcher:{password}@")
            with httpx2.Client(base_url=address, timeout=60) as client:
                assert client.get("/logs", params=asked, headers=ACCEPT).status_code == status
