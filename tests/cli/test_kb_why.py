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


def test_a_missing_log_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "why", "cuda.oom", "nowhere.log"]) == 2
    assert "nowhere.log" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ["case empty is selected", "case later also applies, but empty comes first", "case other does not apply: the failure "
                "does not match its sign", "case frames does not apply: in run_ is not found in frames", "case step does not apply: step is "
                "unknown", "case known does not apply: code is known: pump()", "case place does not apply: where is t.py:1, but it "
                "requires lab", "case rest does not apply: its sentence needs step, which is unknown"]),
        ("zh", ["情形 empty 生效", "情形 later 也成立", "情形 step 不生效：step 未知"]),
    ],
)  # fmt: skip
def test_why_names_the_selected_case(
    lang: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_KNOWLEDGE_DIRS", str(tmp_path))
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / "lost.yaml").write_text(
        """\
id: flux.lost
kind: cause
title: {en: A tube is lost}
area: flux
owner: user
cases:
  - {id: step, when: {step: true}, says: {en: A.}}
  - {id: known, when: {code: false}, says: {en: A.}}
  - {id: place, when: {where: lab}, says: {en: A.}}
  - {id: frames, when: {frames: in run_}, says: {en: A.}}
  - {id: other, text: 'flux.Lost: tubes', says: {en: A.}}
  - {id: empty, text: 'flux.Lost: tube', says: {en: A.}, do: [{en: B.}], example: 'flux.Lost: tube'}
  - {id: later, when: {code: true}, says: {en: A.}}
  - {id: rest, says: {en: 'A {step}.'}}
action: {advice: fix-first, retry: no}
"""
    )
    log = tmp_path / "run.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n    pump()\nflux.Lost: tube 7\n'
    )
    assert main(["kb", "why", "flux.lost", str(log), "--lang", lang]) == 0
    told = capsys.readouterr().out
    assert [each for each in words if each not in told] == []
    selected, others = words[0], "Other cases:" if lang == "en" else "其他情形："
    assert told.index(selected) < told.index(others) < told.index(words[1])
