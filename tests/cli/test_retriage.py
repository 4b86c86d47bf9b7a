from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.services.logs import HEALTHY, OUT_OF_MEMORY
from torchtriage.cli.main import main
from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.service import close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two incidents of other knowledge, of which one named another entry."""
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIAGE_WORKERS", "0")
    service = open_service(Settings(data_dir=tmp_path, workers=0), lambda *_: None, working=False)
    for log in (OUT_OF_MEMORY, HEALTHY):
        triage_incident(service, accept(service, Job(), [Upload("log", iter([log]))]).incident_id)
    with service.database.transaction() as session:
        session.execute(text("UPDATE incidents SET knowledge = 'older'"))
        session.execute(text("UPDATE incidents SET entry = 'python.exception' WHERE entry = 'cuda.oom'"))
    close_service(service)


@pytest.mark.usefixtures("stored")
def test_it_shows_what_would_change_and_changes_it_when_confirmed(capsys: pytest.CaptureFixture[str]) -> None:
    for looked_at in (2, 1):  # the healthy one is noted as the same
        assert main(["retriage", "--dry-run"]) == 0
        told = capsys.readouterr().out
        assert "incident 1: python.exception → cuda.oom" in told
        assert f"{looked_at} incidents were triaged with older knowledge; 1 of them get a new verdict" in told
    assert main(["retriage", "--yes"]) == 0
    assert "1 incidents have a new verdict; the previous ones are kept" in capsys.readouterr().out
    assert main(["retriage", "--yes"]) == 0
    assert "0 incidents were triaged with older knowledge" in capsys.readouterr().out


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("stdin", ["file", "closed"])
def test_without_a_terminal_it_shows_and_changes(
    stdin: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing if stdin == "file" else None)  # None, as Python has it
        assert main(["retriage"]) == 0
    told = capsys.readouterr()
    assert "incident 1: python.exception → cuda.oom" in told.out
    assert "1 incidents have a new verdict; the previous ones are kept" in told.out
    assert "Change them?" not in told.err


@pytest.mark.usefixtures("stored")
def test_at_a_terminal_it_asks_before(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for answer, changed in (("no\n", 0), ("\x04", 0), ("y\n", 1)):  # the second is Ctrl-D
        person, terminal = pty.openpty()
        with open(person, "w") as typing, open(terminal) as given:
            typing.write(answer)
            typing.flush()
            monkeypatch.setattr(sys, "stdin", given)
            assert main(["retriage"]) == 0
        told = capsys.readouterr()
        assert "incident 1: python.exception → cuda.oom" in told.out
        assert told.err == "Change them? [y/N] "
        assert told.out.count("1 incidents have a new verdict") == changed


def test_it_names_the_cases_where_the_cause_stays(
    tmp_path: Path, stored: None, capsys: pytest.CaptureFixture[str]
) -> None:
    service = open_service(Settings(data_dir=tmp_path, workers=0), lambda *_: None, working=False)
    with service.database.transaction() as session:
        session.execute(text("UPDATE incidents SET entry = 'cuda.oom', \"case\" = 'earlier' WHERE entry IS NOT NULL"))
    close_service(service)
    assert main(["retriage", "--yes"]) == 0
    told = capsys.readouterr().out
    assert "incident 1: cuda.oom/earlier → cuda.oom/" in told
    assert "1 of these keep their cause and get another case's answer" in told
