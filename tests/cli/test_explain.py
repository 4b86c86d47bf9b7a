from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.language_model import Model, claims, honest, model
from tests.logs import steps, text, traceback
from torchtriage.cli.main import main

LOG = text(steps(range(2), count=3), traceback("DriftError: layer 7", [("/w/t.py", 3, "f", 'g("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH")')]))  # fmt: skip


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    with model() as made:
        monkeypatch.setenv("TRIAGE_LLM_URL", made.url)
        monkeypatch.setenv("TRIAGE_LLM_MODEL", "m-1")
        monkeypatch.setenv("TRIAGE_LLM_SECONDS", "1")
        yield made


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "run.log").write_bytes(LOG)
    return str(tmp_path / "run.log")


def test_its_claims_stand_below_the_verdict(fake: Model, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    fake.says = honest
    assert main(["explain", log]) == 0
    out = capsys.readouterr().out
    assert out.index("The verdict") < out.index("m-1 says") < out.index("1. The line names the failure.")
    assert "line 10: DriftError: layer 7" in out
    assert "hf_abc" not in fake.sent + out


def test_a_lie_is_struck_out(fake: Model, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    fake.says = lambda _: claims({"says": "Disk full\x1b[2J.", "line": 9, "quote": "No space left"}, {"says": "Pray."})
    assert main(["explain", "--lang", "zh", log]) == 0
    out = capsys.readouterr().out
    assert "1. [已划去：该行没有这样的内容] Disk full." in out
    assert "2. [已划去：没有给出行号] Pray." in out
    assert "\x1b" not in out


@pytest.mark.parametrize("broken", ["slow", "500", "no JSON"])
def test_a_model_that_fails_is_one_line_on_standard_error(
    fake: Model, log: str, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.hangs, fake.status = broken == "slow", 500 if broken == "500" else 200
    fake.says = lambda _: "no"
    assert main(["explain", log]) == 1
    err = capsys.readouterr().err
    assert err.startswith("torchtriage: ")
    assert err.count("\n") == 1


def test_it_is_off_by_default(log: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIAGE_LLM_URL", raising=False)
    assert main(["explain", log]) == 2
    assert "TRIAGE_LLM_URL" in capsys.readouterr().err
