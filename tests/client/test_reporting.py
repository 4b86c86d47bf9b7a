"""What is sent, kept and delivered, with a real service that is there, away, hanging, or coming back."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.client.running import NOBODY, OUT_OF_MEMORY, Bench, ended
from tests.http_server import Asked, Told, serving
from torchtriage.client.torchtriage_client import for_shell

AWAY = {"TORCHTRIAGE_URL": NOBODY}


def test_a_failure_is_reported_and_explained(bench: Bench) -> None:
    status, output, errors = bench.script(OUT_OF_MEMORY, "--label", "team:vision", "--job-name", "resnet")
    assert (status, output) == (1, "step 1 loss 2.5\n")
    lines = [line for line in errors.splitlines() if line.startswith("torchtriage: ")]
    assert len(lines) <= 20
    assert any(
        line.startswith("torchtriage:   why:   line ") and "OutOfMemoryError: CUDA out of" in line for line in lines
    )
    assert any(line.startswith("torchtriage:   do:    1. ") for line in lines)
    assert any(line.startswith("torchtriage:   retry: no (fix-first).") for line in lines)
    assert "torchtriage:   confidence: certain (cuda.oom)" in lines
    assert lines[-1].startswith(f"torchtriage:   more:  {bench.url}/incidents/")
    (incident,) = bench.incidents()
    job = incident["job"]
    assert (job["exit_code"], job["job_name"], job["labels"]["team"]) == (1, "resnet", "vision")
    assert job["labels"]["host"] == socket.gethostname()
    assert job["started_at"] <= job["ended_at"]
    assert not bench.bundles() + bench.captures()


def test_a_repeat_that_this_token_may_not_read_is_reported_by_its_url(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("RuntimeError: x\n")
    with serving(lambda _: Told(b'{"id": "7", "state": "triaged"}')) as url:
        status, output, _ = bench.run("report", str(tmp_path / "run.log"), environment={"TORCHTRIAGE_URL": url})
    assert status == 0
    assert "The log is kept, the triage is done" in output
    assert f"{url}/incidents/7" in output


def test_a_decision_is_printed_and_sets_the_status(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "Traceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    status, output, errors = bench.run("report", "--decide", "--exit-code", str(log))
    assert (status, errors) == (11, "")
    assert (
        "torchtriage:   decision: stop (dry run). cuda.oom is certain, and the job fails again until it is fixed.\n"
        in output
    )
    status, output, _ = bench.run("report", "--decide", "--shell", str(log))
    shown = dict(line.split("=", 1) for line in output.splitlines())
    assert (status, shown["TORCHTRIAGE_DECISION"], shown["TORCHTRIAGE_MODE"]) == (0, "stop", "dry-run")
    assert json.loads(bench.run("report", "--decide", "--json", str(log))[1])["decision"]["action"] == "stop"
    log.write_text("Traceback (most recent call last):\nwidgets.WidgetError: jammed\n")
    assert bench.run("report", "--decide", "--exit-code", str(log))[0] == 10


def test_a_success_is_not(bench: Bench) -> None:
    assert bench.script("print('fine')") == (0, "fine\n", "")
    assert not bench.incidents() + bench.bundles() + bench.captures()


def test_death_by_a_signal_is_in_the_log(bench: Bench) -> None:
    status, _, errors = bench.run("run", "--", "sh", "-c", "echo step 1 loss 2.5; kill -9 $$")
    assert status == -signal.SIGKILL
    assert "process.oom-killed" in errors
    assert bench.incidents()[0]["job"]["exit_code"] == 137


def test_the_verdict_can_be_the_status(bench: Bench) -> None:
    assert bench.script(OUT_OF_MEMORY, "--exit-code")[0] == 11
    assert bench.script("raise SystemExit(9)", "--exit-code")[0] == 9  # nothing to say: the command's own
    assert bench.script(OUT_OF_MEMORY, "--exit-code", environment=AWAY)[0] == 1


def test_a_dry_run_decides_nothing_about_the_status(bench: Bench) -> None:
    status, _, errors = bench.script(OUT_OF_MEMORY, "--decide", "--exit-code")
    assert status == 1
    assert "torchtriage:   decision: stop (dry run). cuda.oom is certain" in errors


@pytest.mark.parametrize(
    ("action", "options", "status"),
    [
        ("stop", (), 11), ("wait", (), 14), ("restart", (), 10), ("restart-excluding", (), 10),
        ("restart-from-checkpoint", ("--restart-status", "138"), 138), ("stop", ("--restart-status", "138"), 11),
    ],
)  # fmt: skip
def test_a_decision_can_be_the_status(bench: Bench, action: str, options: tuple[str, ...], status: int) -> None:
    asked = []

    def answers(told: Asked) -> Told:
        if "/decision" not in told.path:
            return Told(b'{"id": "7", "state": "triaged"}')
        asked.append(json.loads(told.body))
        return Told(json.dumps({"action": action, "mode": "enforce", "reason": "Because."}).encode())

    with serving(answers) as url:
        environment = {"TORCHTRIAGE_URL": url}
        found, _, errors = bench.script(
            "raise SystemExit(3)", "--decide", "--exit-code", *options, environment=environment
        )
    assert found == status
    assert asked == [{"incident": "7"}]
    assert "torchtriage:   decision: " in errors


def test_without_a_decision_the_status_stays(bench: Bench) -> None:
    def answers(told: Asked) -> Told:
        if "/decision" in told.path:
            return Told(b'{"error": {"code": "not_triaged", "message": "the incident has no verdict yet"}}', status=409)
        return Told(b'{"id": "7", "state": "triaged"}')

    with serving(answers) as url:
        status, _, errors = bench.script(
            "raise SystemExit(3)", "--decide", "--exit-code", environment={"TORCHTRIAGE_URL": url}
        )
    assert status == 3
    assert "torchtriage-client: no decision: " in errors
    assert "the incident has no verdict yet" in errors


def test_a_command_that_is_told_to_stop_gets_no_decision(bench: Bench) -> None:
    asked = []

    def answers(told: Asked) -> Told:
        asked.append(told.path.partition("?")[0])
        return Told(b'{"id": "7", "state": "triaged", "action": "wait", "mode": "enforce"}')

    with serving(answers) as url:
        words = ("run", "--decide", "--exit-code", "--", "sh", "-c", "echo ready; exec sleep 60")
        with ended(bench.start(*words, environment={"TORCHTRIAGE_URL": url})) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.terminate()
            process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    assert asked == ["/api/v1/incidents"]


def test_a_status_that_means_something_else_is_refused(bench: Bench) -> None:
    status, output, errors = bench.script("print('runs'); raise SystemExit(3)", "--restart-status", "11")
    assert (status, output) == (3, "runs\n")
    assert "--restart-status: not a number from 1 to 255, or the status of another action: 11" in errors


def test_an_output_file_is_sent_from_where_the_command_began(bench: Bench) -> None:
    path = bench.folder / "slurm-1.out"
    path.write_text("of another run\n")
    with path.open("ab") as file:
        assert bench.script(OUT_OF_MEMORY, stdout=file, stderr=file)[0] == 1
    sent = bench.log("output.log")
    assert sent.startswith("step 1 loss 2.5\nTraceback")
    assert path.read_text().endswith(sent[-20:]) is False
    assert "torchtriage:   more:" in path.read_text()


def test_a_service_that_is_away_costs_nothing_but_a_line(bench: Bench) -> None:
    status, _, errors = bench.script(OUT_OF_MEMORY, environment=AWAY)
    assert status == 1
    told = [line for line in errors.splitlines() if line.startswith("torchtriage-client: ")]
    assert told == [
        f"torchtriage-client: {NOBODY} can't be reached: [Errno 111] Connection refused; the report waits in {bench.spool}"
    ]
    assert len(bench.bundles()) == 1
    assert bench.run("flush")[:2] == (0, "delivered 1, waiting 0\n")
    assert bench.run("flush")[:2] == (0, "delivered 0, waiting 0\n")
    (incident,) = bench.incidents()
    assert incident["job"]["exit_code"] == 1
    assert not bench.bundles()


def test_the_next_run_delivers(bench: Bench) -> None:
    bench.script(OUT_OF_MEMORY, environment=AWAY)
    with ended(bench.start("run", "--", "cat")) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"torchtriage-client: delivered 1 reports of earlier runs\n"
    assert len(bench.incidents()) == 1


def test_a_spool_that_cannot_be_written_has_others_behind_it(bench: Bench) -> None:
    broken = {"TORCHTRIAGE_SPOOL": "/proc/nowhere"}
    status, _, errors = bench.script(OUT_OF_MEMORY, environment=AWAY | broken)
    assert (status, f"waits in {bench.scratch}/spool" in errors) == (1, True)
    assert bench.run("flush", environment=broken)[1] == "delivered 1, waiting 0\n"


def test_a_killed_client_loses_nothing(bench: Bench) -> None:
    script = "import time; print('step 1 loss 2.5', flush=True); time.sleep(600)"
    with ended(bench.start("run", "--", sys.executable, "-c", script)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert bench.run("flush")[1] == "delivered 0, waiting 0\n"  # a run that lives is nobody else's
        process.send_signal(signal.SIGKILL)
    assert len(bench.captures()) == 1
    assert bench.run("flush")[1] == "delivered 1, waiting 0\n"
    assert bench.log("stdout.log") == "step 1 loss 2.5\n"
    assert not bench.captures()


@pytest.fixture
def hanging() -> Iterator[socket.socket]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.slow  # it waits the seconds
def test_a_hanging_service_is_given_up(bench: Bench, hanging: socket.socket) -> None:
    url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
    status, _, errors = bench.script(OUT_OF_MEMORY, "--timeout", "2", environment={"TORCHTRIAGE_URL": url})
    assert status == 1
    assert errors.endswith("\n")
    assert len(bench.bundles()) == 1
    assert bench.run("flush")[1] == "delivered 1, waiting 0\n"


def test_a_client_killed_while_it_sends_loses_nothing(bench: Bench, hanging: socket.socket) -> None:
    url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
    with ended(
        bench.start("run", "--", sys.executable, "-c", OUT_OF_MEMORY, environment={"TORCHTRIAGE_URL": url})
    ) as process:
        connection, _ = hanging.accept()
        assert connection.recv(100).startswith(b"POST /api/v1/incidents?")
        process.kill()
        connection.close()
    assert bench.run("flush")[1] == "delivered 1, waiting 0\n"
    assert len(bench.incidents()) == 1


def test_many_processes_share_a_spool(bench: Bench) -> None:
    for number in range(4):
        bench.script(OUT_OF_MEMORY, "--job-id", f"{bench.user}-{number}", environment=AWAY)
    flushing = [bench.start("flush") for _ in range(4)]
    told = [process.communicate(timeout=120) for process in flushing]
    assert [process.returncode for process in flushing] == [0] * 4, told
    assert sum(int(output.split()[1].rstrip(b",")) for output, _ in told) == 4
    assert sorted(incident["job"]["job_id"] for incident in bench.incidents()) == [
        f"{bench.user}-{n}" for n in range(4)
    ]


class Refusing(BaseHTTPRequestHandler):
    """Answers as its class says, and remembers what it was asked."""

    answer: tuple[int, dict[str, str], bytes] = (500, {}, b"")
    asked: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, body = self.answer
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    Refusing.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "kept"),
    [
        (400, False),
        (401, True),
        (403, True),
        (404, True),
        (413, False),
        (422, False),
        (429, True),
        (500, True),
        (503, True),
    ],
)
def test_what_can_still_be_taken_is_kept(alone: Bench, refusing: str, status: int, kept: bool) -> None:
    Refusing.answer = (status, {}, json.dumps({"error": {"code": "x", "message": "the reason"}}).encode())
    asked = {"TORCHTRIAGE_URL": refusing, "TORCHTRIAGE_TOKEN": "tt_secret"}
    code, _, errors = alone.script(OUT_OF_MEMORY, environment=asked)
    assert (code, len(alone.bundles())) == (1, int(kept))
    assert f"torchtriage-client: {refusing}: {status} the reason" in errors
    assert len(list(alone.spool.glob("*.refused"))) == int(not kept)
    assert Refusing.asked[0][1] == "Bearer tt_secret"


def test_a_token_is_not_taken_elsewhere(alone: Bench, refusing: str) -> None:
    Refusing.answer = (302, {"Location": f"{refusing}/elsewhere"}, b"")
    _, _, errors = alone.script(
        OUT_OF_MEMORY, environment={"TORCHTRIAGE_URL": refusing, "TORCHTRIAGE_TOKEN": "tt_secret"}
    )
    assert f"it redirects to {refusing}/elsewhere; set TORCHTRIAGE_URL to that address" in errors
    assert len(Refusing.asked) == 1


@pytest.mark.parametrize("body", [b"<html>a proxy", b"[1]", b"{}"])
def test_an_answer_of_something_else_is_no_delivery(alone: Bench, refusing: str, body: bytes) -> None:
    Refusing.answer = (200, {}, body)
    alone.script(OUT_OF_MEMORY, environment={"TORCHTRIAGE_URL": refusing})
    assert len(alone.bundles()) == 1


LAUNCHER = """
import os, sys
folder = os.environ.get("PET_LOG_DIR", "")
print(os.environ.get("PET_TEE"), bool(folder), "TORCHELASTIC_ERROR_FILE" in os.environ, flush=True)
for rank, word in enumerate(("Connection closed by peer", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")):
    place = os.path.join(folder, "none_x1", "attempt_0", str(rank))
    os.makedirs(place)
    for name, text in (("stdout.log", "step 1 loss 2.5\\n"), ("stderr.log", "Traceback (most recent call last):\\n  File \\"train.py\\", line 3, in f\\n    g()\\n" + word + "\\n")):
        open(os.path.join(place, name), "w").write(text)
open(os.environ["TORCHELASTIC_ERROR_FILE"], "w").write("{}")
sys.exit(1)
"""


def test_the_output_of_each_rank_is_sent(bench: Bench) -> None:
    _, output, errors = bench.script(LAUNCHER)
    assert output == "3 True True\n"
    assert "rank 1" in errors
    assert "cuda.oom" in errors
    host = socket.gethostname()
    names = [file["name"] for file in bench.incidents()[0]["log"]["files"]]
    assert names == [f"{host}/stdout.log", *(f"{host}/none_x1/attempt_0/{rank}/{name}.log" for rank in (0, 1) for name in ("stderr", "stdout")), f"{host}/error.json"]  # fmt: skip


def test_torchruns_own_settings_stay(bench: Bench) -> None:
    tree = str(bench.folder / "logs")
    _, output, errors = bench.script(LAUNCHER, environment={"PET_LOG_DIR": tree, "PET_TEE": "2"})
    assert output == "2 True True\n"
    assert "cuda.oom" in errors
    assert Path(tree, "none_x1").is_dir()
    assert bench.script("import os; print(os.environ.get('PET_TEE'))", "--no-tee")[1] == "None\n"


def test_only_one_node_reports(bench: Bench) -> None:
    for node in ("0", "1"):
        bench.script(OUT_OF_MEMORY, "--node", "0", environment={"SLURM_JOB_ID": "7", "SLURM_NODEID": node})
    assert [incident["job"]["node_rank"] for incident in bench.incidents()] == [0]


def test_a_client_inside_of_a_client_only_runs(bench: Bench) -> None:
    inner = bench.command("run", "--", sys.executable, "-c", OUT_OF_MEMORY)
    assert bench.run("run", "--", *inner)[0] == 1
    assert len(bench.incidents()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["pipe", "file"])
def test_a_huge_output_is_kept_in_bounds(bench: Bench, reader: str) -> None:
    script = "import os\nos.write(1, b'the first line\\n')\nfor n in range(150): os.write(1, b'step %7d loss 2.5\\n' % n * 50000)\nos.write(1, b'\\nRuntimeError: the last line\\n'); os._exit(1)"
    with open(os.devnull if reader == "pipe" else bench.folder / "out.log", "wb") as file:
        assert bench.script(script, stdout=file)[0] == 1
    (incident,) = bench.incidents()
    assert incident["log"]["bytes"] < 65 << 20
    assert bench.log("stdout.log").startswith("the first line\n")
    assert "RuntimeError: the last line" in str(incident["verdict"])


def test_reports_of_files_and_folders(bench: Bench) -> None:
    logs = bench.folder / "logs"
    logs.mkdir()
    made = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], capture_output=True)
    (logs / "rank0.log").write_bytes(made.stdout + made.stderr)
    (logs / "model.pt").write_bytes(bytes(1000))
    status, output, _ = bench.run("report", str(logs), "--exit-code", "--job-exit-code", "1")
    assert (status, "cuda.oom" in output) == (11, True)
    again = json.loads(bench.run("report", "--json", str(logs / "rank0.log"), "--job-id", "7")[1])
    assert again["job"]["job_id"] == "7"
    shell = bench.run("report", "--shell", str(logs / "rank0.log"), "--job-id", "7")[1]
    assert (
        f"TORCHTRIAGE_ADVICE=fix-first\nTORCHTRIAGE_RETRY=no\nTORCHTRIAGE_EXCLUDE=''\nTORCHTRIAGE_INCIDENT={again['url']}"
        in shell
    )
    assert [file["name"] for file in bench.incidents()[-1]["log"]["files"]] == ["rank0.log"]


@pytest.mark.parametrize(
    ("paths", "told"), [(["nowhere.log"], "No such file"), ([os.devnull], "no log in"), (["."], "no log in")]
)
def test_nothing_to_report_is_wrong_usage(alone: Bench, paths: list[str], told: str) -> None:
    status, _, errors = alone.run("report", *paths)
    assert (status, told in errors, errors.count("\n")) == (2, True, 1)


def test_only_hosts_reach_a_shell() -> None:
    hosts = ["gpu-1", "$(id)", "gpu-\uff11", "-x", "a b", "gpu-2\nreboot", "g" * 300, "10.0.0.7"]
    told = for_shell({"verdict": {"action": {"exclude_hosts": hosts}}})
    assert "TORCHTRIAGE_EXCLUDE=gpu-1,10.0.0.7\n" in told
