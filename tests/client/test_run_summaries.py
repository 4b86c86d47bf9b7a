"""What the client tells of runs that worked, and what changed since then, with a real service."""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from pathlib import Path
from typing import Any

from tests.client.running import OUT_OF_MEMORY, Bench
from tests.http_server import Asked, Told, serving
from torchtriage.client.torchtriage_client import first_lines, plain_environment, summary_of, versions_of, whole_file

WORKS = 'print("loading shards", flush=True); print("step 1 loss 2.5", flush=True)'
NEW_LINE = 'print("WARNING: pinned memory is off", flush=True)\n'


def installed(bench: Bench, name: str, version: str) -> dict[str, str]:
    """Returns an environment whose `python3` has this package."""
    home = bench.folder / f"{name}-{version}"
    (home / "lib/python3.11/site-packages" / f"{name}-{version}.dist-info").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "bin" / "trainer").write_text('#!/bin/sh\nexec python3 -c "$1"\n')
    (home / "bin" / "trainer").chmod(0o755)
    return {"PATH": f"{home}/bin:{os.environ['PATH']}"}


def page(bench: Bench, address: str, lang: str = "en") -> str:
    asked = urllib.request.Request(bench.url + address, headers={"Accept-Language": lang, "Accept": "text/html"})
    with urllib.request.urlopen(asked) as answer:
        return str(answer.read().decode())


def train(bench: Bench, script: str, environment: dict[str, str], job: str) -> tuple[int, str, str]:
    # No other test's id: the same log of the same job is one incident, whoever reports it.
    said = ("--job-name", bench.user, "--job-id", f"{bench.user}-{job}", "--image", f"train:{job}")
    return bench.run("run", *said, "--", "trainer", script, environment=environment)


def test_three_changes_since_it_worked_are_shown(bench: Bench) -> None:
    old, new = installed(bench, "torch", "2.5.1"), installed(bench, "torch", "2.6.0")
    assert train(bench, WORKS, old | {"NCCL_P2P_DISABLE": "1", "MY_DB_PASSWORD": "hunter2"}, "1") == (
        0, "loading shards\nstep 1 loss 2.5\n", "")  # fmt: skip
    assert not bench.incidents() + bench.bundles() + bench.captures()
    status, _, errors = train(bench, NEW_LINE + OUT_OF_MEMORY, new, "2")
    assert status == 1
    lines = [line for line in errors.splitlines() if line.startswith("torchtriage: ")]
    at = lines.index("torchtriage:   changed since it worked: torch 2.5.1 → 2.6.0")
    assert [line.split(":", 1)[1].strip() for line in lines[at + 1 : at + 3]] == [
        "image train:1 → train:2", "NCCL_P2P_DISABLE is no longer set"]  # fmt: skip
    (incident,) = bench.incidents()
    with urllib.request.urlopen(f"{bench.url}/api/v1/incidents/{incident['id']}") as answer:
        told = json.load(answer)["since_good"]
    assert told["incident"] is None
    assert [change["name"] for change in told["changes"]] == ["torch", "image", "NCCL_P2P_DISABLE"]
    assert (told["changes"][0]["before"], told["changes"][0]["now"]) == ("2.5.1", "2.6.0")
    shown = page(bench, f"/incidents/{incident['id']}")
    assert "What changed since it worked" in shown
    assert "NCCL_P2P_DISABLE is no longer set" in shown
    assert "NCCL_P2P_DISABLE 不再设置" in page(bench, f"/incidents/{incident['id']}", "zh")


def test_equal_values_are_not_shown(bench: Bench) -> None:
    same = installed(bench, "torch", "2.6.0")
    said = ("run", "--job-name", bench.user, "--", "trainer")
    assert bench.run(*said, WORKS, environment=same)[0] == 0
    errors = bench.run(*said, OUT_OF_MEMORY, environment=same)[2]
    assert "torchtriage:   more:" in errors
    assert "changed since it worked" not in errors
    (incident,) = bench.incidents()
    assert 'id="since-good"' not in page(bench, f"/incidents/{incident['id']}")


def test_a_new_line_above_the_failure_is_shown(bench: Bench) -> None:
    said = ("run", "--job-name", bench.user, "--", "python3", "-c")
    assert bench.run(*said, WORKS)[0] == 0
    errors = bench.run(*said, NEW_LINE + OUT_OF_MEMORY)[2]
    assert "changed since it worked: new line: WARNING: pinned memory is off" in errors


def test_a_report_that_waited_brings_its_summary(bench: Bench) -> None:
    old, new = installed(bench, "torch", "2.5.1"), installed(bench, "torch", "2.6.0")
    assert train(bench, WORKS, old, "1")[0] == 0
    assert train(bench, OUT_OF_MEMORY, new | {"TORCHTRIAGE_URL": "http://127.0.0.1:9"}, "2")[0] == 1
    assert bench.run("flush")[:2] == (0, "delivered 1, waiting 0\n")
    with urllib.request.urlopen(f"{bench.url}/api/v1/incidents/{bench.triaged()['id']}") as answer:
        assert json.load(answer)["since_good"]["changes"][0]["now"] == "2.6.0"


def test_nothing_is_told_of_runs_without_a_name_or_against_the_users_will(bench: Bench) -> None:
    asked: list[str] = []

    def answer(request: Asked) -> Told:
        asked.append(request.path)
        return Told(b'{"since_good": null}')

    with serving(answer) as url:
        there = {"TORCHTRIAGE_URL": url}
        assert bench.script(WORKS, environment=there)[0] == 0
        assert bench.script(WORKS, "--job-name", "a", environment=there | {"TORCHTRIAGE_SUMMARY": "no"})[0] == 0
        assert asked == []
        assert bench.script(WORKS, "--job-name", "a", environment=there)[0] == 0
        assert asked == ["/api/v1/run-summaries"]
    status, _, errors = bench.script(WORKS, "--job-name", "a", environment={"TORCHTRIAGE_URL": "http://127.0.0.1:9"})
    assert (status, errors) == (0, "")


def test_secrets_stay_where_they_are() -> None:
    kept = plain_environment(
        {
            "NCCL_DEBUG": "INFO",
            "WANDB_API_KEY": "x",
            "DB_PASSWD": "x",
            "MYSQL_PWD": "x",
            "A": "https://u:p@host/",
            "B": "a1" * 12,
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_TOKEN": "x",
            "SLURM_JOB_ID": "7",
            "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/opt/amazon/efa/lib",
            "LONG": "x " * 200,
        }
    )
    assert sorted(kept) == [
        "CUDA_DEVICE_MAX_CONNECTIONS", "LD_LIBRARY_PATH", "NCCL_DEBUG", "TOKENIZERS_PARALLELISM"]  # fmt: skip


def test_a_summary_is_small_and_masked(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    words = [f"{chr(97 + at % 26)}{chr(97 + at // 26)}word took" for at in range(600)]
    log.write_text("".join(f"{word * 10} {at}\n" for at, word in enumerate(words)) + "api_key=abc123 step 5\n")
    environment = {f"NCCL_{name}": "v" * 190 for name in words}
    before = dict(os.environ)
    os.environ.update({name.replace(" ", "_"): value for name, value in environment.items()})
    try:
        made = summary_of([("job_name", "a"), ("label", "host:x")], ["python3"], [whole_file("run.log", str(log))], {})
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert len(made.encode()) <= 20_000
    told: dict[str, Any] = json.loads(made)
    assert told["hosts"] == [socket.gethostname()]
    log.write_text(
        "step 1 loss 2.5\nstep 2 loss 2.4\nread 0x7ffe12 from 10.0.0.7:2940\napi_key = abc\n12:30:01 saved\n"
    )
    assert first_lines([whole_file("run.log", str(log))]) == [
        "step # loss #", "read # from #.#:#", "api_key = *", "#:#:# saved"]  # fmt: skip


def test_versions_are_those_of_the_commands_python(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "")
    path = installed(bench, "flash_attn", "2.7.4")["PATH"].partition(":")[0] + "/trainer"
    found = versions_of([path, "--x"])
    assert (found["flash-attn"], found["python"]) == ("2.7.4", "3.11")
