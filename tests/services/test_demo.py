from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.cli.main import main
from torchtriage.domain.incident import Incident, IncidentFilter, State
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes
from torchtriage.services import demo, demo_logs
from torchtriage.services.incidents import list_incidents
from torchtriage.services.service import close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def filled(folder: Path, seed: int) -> list[Incident]:
    service = open_service(Settings(data_dir=folder, workers=0), triage_incident, working=False)
    try:
        demo.fill(service, 30, seed, NOW, lambda _: None)
        return list(list_incidents(service, IncidentFilter(), 200).items)
    finally:
        close_service(service)


def test_every_incident_is_triaged_and_stands_in_the_month_before(tmp_path: Path) -> None:
    incidents = filled(tmp_path, 1)
    assert len(incidents) == 30
    assert {incident.state for incident in incidents} == {State.TRIAGED}
    assert all(NOW - timedelta(days=demo.DAYS + 1) < incident.received_at <= NOW for incident in incidents)
    assert any(incident.gpu_hours_lost for incident in incidents)
    assert any(incident.feedback for incident in incidents)


def test_a_seed_makes_the_same_incidents(tmp_path: Path) -> None:
    first, again, other = (filled(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert Counter(incident.log.sha256 for incident in first) == Counter(incident.log.sha256 for incident in again)
    assert not {incident.log.sha256 for incident in first} & {incident.log.sha256 for incident in other}


@pytest.mark.parametrize("srun", [True, False])
def test_the_engine_finds_what_the_logs_were_made_with(srun: bool) -> None:
    knowledge = built_in_knowledge()
    engine, chance = Engine(knowledge), Random(2)
    launch = demo_logs.Launch("train.py", ("n-1", "n-2"), NOW - timedelta(hours=3), 400, srun, "2.6.0")
    for name in ("cuda.oom", "data.missing-file", "checkpoint.key-mismatch", "xid.79"):
        log = demo_logs.log_of(launch, knowledge.entries[name], 11, chance)
        root = engine.triage(from_bytes(log.encode())).root_cause
        assert root is not None
        assert (root.entry, root.rank, root.host) == (name, 11, "n-2")
    assert engine.triage(from_bytes(demo_logs.log_of(launch, None, 0, chance).encode())).outcome == "healthy"


def test_a_folder_with_incidents_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIAGE_WORKERS", "0")
    assert main(["demo", "--count", "2"]) == 0
    assert main(["demo", "--count", "2"]) == 2
    assert "holds incidents already" in capsys.readouterr().err
