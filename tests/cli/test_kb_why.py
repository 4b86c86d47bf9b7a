import json
from pathlib import Path

import pytest

from torchtriage.cli.main import main


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.\n")
    return path


def test_why_prints_the_signs_and_what_is_missing(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "why", "dataloader.shm-bus-error", str(log)]) == 0
    out = capsys.readouterr().out
    assert "no sign matched" in out
    assert "1: RuntimeError: DataLoader worker (pid 7)" in out


def test_json_holds_every_sign(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "why", "dataloader.worker-killed", str(log), "--json", "--lang", "zh"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["entry"] == "dataloader.worker-killed"
    assert told["state"] == "root"
    assert told["signs"][0]["state"] == "matched"


def test_a_wrong_id_suggests_the_nearest_ones(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "why", "cuda.ooom", str(log)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "cuda.oom" in err


def test_a_missing_log_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "why", "cuda.oom", "nowhere.log"]) == 2
    assert "nowhere.log" in capsys.readouterr().err
