from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.logs import steps, text, traceback
from torchtriage.answer.brief.token_count import token_count
from torchtriage.cli.main import main

LOG = text(steps(range(4)), traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", prefix="[rank1]: "))  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_bytes(LOG)
    return path


def test_briefs_of_several_logs_follow_one_another(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["brief", str(log), str(log.parent / "none.log"), str(log.parent)]) == 2
    out, err = capsys.readouterr()
    assert out.count("# Brief: ") == 2
    assert "(`cuda.oom`" in out
    assert "no such file or folder" in err


def test_language_and_size_are_those_asked_for(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["brief", "--lang", "zh", "--tokens", "400", str(log)]) == 0
    out = capsys.readouterr().out
    assert "## 诊断" in out
    assert token_count(out) <= 400


def test_standard_input_is_taken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG)))
    assert main(["brief"]) == 0
    assert "> 84 [rank1]: torch.OutOfMemoryError" in capsys.readouterr().out


@pytest.mark.parametrize("tokens", ["299", "100001", "many"])
def test_too_few_or_too_many_tokens_are_refused(log: Path, tokens: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["brief", "--tokens", tokens, str(log)])
    assert f"{tokens!r} must be a whole number from 300 to 100000" in capsys.readouterr().err
