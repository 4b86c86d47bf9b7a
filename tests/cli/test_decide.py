from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.logs import BANNER, agent, report, steps, text, traceback
from torchtriage.cli.main import main

OOM = text(
    BANNER, steps(range(4)), traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", prefix="[rank1]: ")
)  # fmt: skip
JAMMED = text(
    BANNER, steps([0]), traceback("widgets.WidgetError: jammed", prefix="[rank0]: "), agent(1), report((0, 1))
)
CUT = text(steps(range(2)))


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIAGE_POLICY_FILE", raising=False)


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, str]:
    for name, content in (("oom", OOM), ("jammed", JAMMED), ("cut", CUT)):
        (tmp_path / f"{name}.log").write_bytes(content)
    return {name: str(tmp_path / f"{name}.log") for name in ("oom", "jammed", "cut")}


def decided(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["decide", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_people_read_what_to_do_why_and_what_is_left(logs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decide", logs["oom"]]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Decision       Stop",
        "Reason         cuda.oom is certain, and the job fails again until it is fixed.",
        "Restarts left  100 for the job, 8 without progress, 1 for this cause",
    ]
    assert main(["decide", "--lang", "zh", logs["oom"]]) == 0
    assert capsys.readouterr().out.startswith("决策      停止\n理由      原因确定为 cuda.oom，修复之前重启仍会失败。\n")


def test_several_logs_are_attempts_of_one_job(logs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    once = decided(capsys, logs["jammed"])
    assert (once["action"], once["attempt"]["attempt"]) == ("restart", 0)
    twice = decided(capsys, logs["jammed"], logs["jammed"])
    assert (twice["action"], twice["rule"], twice["attempt"]["attempt"]) == ("wait", "retries-used", 1)


def test_its_output_is_a_history_for_the_next_decision(
    logs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(json.dumps(decided(capsys, logs["jammed"])) + "\n")
    again = decided(capsys, "--history", str(history), logs["jammed"])
    assert (again["action"], again["attempt"]["attempt"]) == ("wait", 1)
    assert decided(capsys, "--history", str(history), "--attempt", "7", logs["jammed"])["attempt"]["attempt"] == 7


def test_the_exit_code_of_the_job_says_that_it_failed(logs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert decided(capsys, logs["cut"])["action"] == "wait"
    assert decided(capsys, logs["cut"], "--job-exit-code", "0")["action"] == "wait"
    assert decided(capsys, logs["cut"], "--job-exit-code", "1")["action"] == "restart"


@pytest.mark.parametrize(("log", "status"), [("oom", 11), ("jammed", 10), ("cut", 14)])
def test_the_exit_code_is_the_decision(logs: dict[str, str], log: str, status: int) -> None:
    assert main(["decide", "--exit-code", logs[log]]) == status


def test_the_policy_is_of_the_option_else_of_the_environment(
    logs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "held.yaml").write_text("causes: {cuda.*: {wait: true}}\n")
    (tmp_path / "wrong.yaml").write_text("restart: 1\n")
    assert decided(capsys, "--policy", str(tmp_path / "held.yaml"), logs["oom"])["action"] == "wait"
    monkeypatch.setenv("TRIAGE_POLICY_FILE", str(tmp_path / "wrong.yaml"))
    assert main(["decide", logs["oom"]]) == 2
    assert capsys.readouterr().err == (
        f"torchtriage: TRIAGE_POLICY_FILE: {tmp_path}/wrong.yaml: restart: unknown key\n"
    )


def test_standard_input_is_taken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OOM)))
    assert decided(capsys)["action"] == "stop"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.log"], "none.log: no such file or folder"),
        (["--history", "none.jsonl", "oom"], "--history: none.jsonl: no such file"),
        (["--history", "oom", "oom"], "--history: oom: no JSON: "),
        (["--attempt", "0", "oom", "oom"], "--attempt: 2 logs can't be attempts up to 0"),
    ],
)
def test_wrong_input_is_one_line(
    logs: dict[str, str], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decide", *(logs.get(word, word) for word in words)]) == 2
    assert said.replace("oom:", f"{logs['oom']}:") in capsys.readouterr().err
