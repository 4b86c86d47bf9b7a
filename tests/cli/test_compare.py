from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.logs import text
from torchtriage.cli.main import main
from torchtriage.reading.run_ends import HEAD, TAIL, run_ends
from torchtriage.reading.sources import open_path

STEPS = [f"step {step} loss {3 / (step + 1):.4f}" for step in range(30)]


def written(folder: Path, name: str, *parts: str) -> str:
    path = folder / name
    path.write_bytes(text(*parts, STEPS))
    return str(path)


def test_two_logs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = written(tmp_path, "a.log", "Namespace(lr=0.1, workers=8)")
    now = written(tmp_path, "b.log", "Namespace(lr=0.1, workers=2)", "UserWarning: slow loader")
    assert main(["compare", before, now, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "workers  8 → 2  (1)" in out
    assert "2: UserWarning: slow loader" in out
    assert main(["compare", before, now, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["kind"] == "setting"


def test_no_difference_is_reported_in_the_requested_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = written(tmp_path, "a.log", "Namespace(lr=0.1, workers=8)")
    assert main(["compare", "--lang", "zh", log, log, "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == ["没有发现差异。", "相同的配置：2 项。"]


def test_the_count_of_identical_settings_is_left_out_if_it_is_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text("epoch one begins\nepoch two begins\n")
    assert main(["compare", str(log), str(log), "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == ["No differences found."]


def test_a_log_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path / "none"), written(tmp_path, "b.log", "x"), "--quiet"]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_of_a_long_log_the_beginning_and_the_end_are_read_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    count = 3 * (HEAD + TAIL) // 40
    path.write_text("".join(f"line {number:08} {'x' * 25}\n" for number in range(1, count + 1)))
    lines, partly = run_ends(open_path(path))
    assert partly
    assert (lines[0].number, lines[-1].number) == (1, count)
    assert all(line.text.split()[1] == f"{line.number:08}" for line in (lines[0], lines[100], lines[-2], lines[-1]))
    path.write_text("one\ntwo\n")
    assert [line.text for line in run_ends(open_path(path))[0]] == ["one", "two"]
