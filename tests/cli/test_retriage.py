from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from app.cli.main import main
from app.domain.incident import Job
from app.reading.unpack import Upload
from app.services.accept import accept
from app.services.service import close_service, open_service
from app.services.triage_incident import triage_incident
from app.settings import Settings
from tests.services.logs import HEALTHY, OUT_OF_MEMORY


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
def test_it_shows_what_would_change_and_changes_it_when_it_is_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    for looked_at in (2, 1):  # the healthy one is noted as the same
        assert main(["retriage", "--dry-run"]) == 0
        told = capsys.readouterr().out
        assert "incident 1: python.exception → cuda.oom" in told
        assert f"{looked_at} incidents had a verdict of other knowledge; today's says otherwise of 1" in told
    assert main(["retriage", "--yes"]) == 0
    assert "1 incidents have a new verdict; the ones before are kept" in capsys.readouterr().out
    assert main(["retriage", "--yes"]) == 0
    assert "0 incidents had a verdict of other knowledge" in capsys.readouterr().out


@pytest.mark.usefixtures("stored")
def test_without_an_answer_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriage"]) == 0  # its input is no terminal
    assert "have a new verdict" not in capsys.readouterr().out
