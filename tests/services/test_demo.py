from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.built_in import built_in_engine, built_in_knowledge, vocabulary
from torchtriage.cli.main import main
from torchtriage.domain.dashboard import Range
from torchtriage.domain.incident import Incident, IncidentFilter, State
from torchtriage.reading.sources import from_bytes
from torchtriage.services import demo, demo_logs
from torchtriage.services.dashboard import unlikely_hosts
from torchtriage.services.incidents import list_incidents
from torchtriage.services.service import close_service, open_service
from torchtriage.services.tokens import changes
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage.audit_log import ChangeFilter

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def filled(folder: Path, seed: int) -> list[Incident]:
    service = open_service(Settings(data_dir=folder, workers=0), triage_incident, working=False)
    try:
        demo.fill(service, 30, seed, NOW, lambda _: None)
        return list(list_incidents(service, IncidentFilter(), 200).items)
    finally:
        close_service(service)


def test_every_incident_is_triaged_and_of_the_last_month(tmp_path: Path) -> None:
    incidents = filled(tmp_path, 1)
    assert len(incidents) == 30
    assert {incident.state for incident in incidents} == {State.TRIAGED}
    assert all(NOW - timedelta(days=demo.DAYS + 1) < incident.received_at <= NOW for incident in incidents)
    assert any(incident.gpu_hours_lost for incident in incidents)
    assert any(incident.feedback for incident in incidents)
    service = open_service(Settings(data_dir=tmp_path, workers=0), triage_incident, working=False)
    try:
        said = [
            change.at for change in changes(service.database, ChangeFilter(), 100).items if change.action == "feedback"
        ]
    finally:
        close_service(service)
    assert said == sorted(said, reverse=True)


@pytest.mark.slow
def test_a_seed_makes_the_same_incidents(tmp_path: Path) -> None:
    first, again, other = (filled(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert Counter(incident.log.sha256 for incident in first) == Counter(incident.log.sha256 for incident in again)
    assert not {incident.log.sha256 for incident in first} & {incident.log.sha256 for incident in other}


def messages() -> list[tuple[str, str]]:
    told = vocabulary().groups("demo-messages")
    return [(name, message) for name, some in told.items() for message in some]


@pytest.mark.parametrize(("name", "message"), messages())
def test_the_engine_finds_what_the_logs_were_made_with(name: str, message: str) -> None:
    engine, chance = built_in_engine(), Random(2)
    steps = 0 if demo_logs.ends_at_start(message) else 400
    tried = 0
    for scheduler in demo_logs.SCHEDULERS:
        if not demo_logs.fits(message, scheduler):
            continue
        tried += 1
        launch = demo_logs.Launch(
            "train.py", ("n-1", "n-2"), NOW - timedelta(hours=3), steps, scheduler == "slurm", "2.6.0"
        )
        log = demo_logs.log_of(launch, message, 11, chance)
        assert "{" not in log.split("\n")[-1]
        root = engine.triage(from_bytes(log.encode())).root_cause
        assert root is not None
        assert root.entry == (None if name == "unknown" else name)
        if message.partition(":")[0] in ("model", "loader", "loop", "save", "kernel"):
            assert (root.rank, root.host) == (11, "n-2")
    assert tried


def test_a_run_that_ends_well_is_healthy() -> None:
    engine = built_in_engine()
    for srun in (True, False):
        launch = demo_logs.Launch("train.py", ("n-1", "n-2"), NOW - timedelta(hours=3), 400, srun, "2.6.0")
        assert engine.triage(from_bytes(demo_logs.log_of(launch, None, 0, Random(2)).encode())).outcome == "healthy"


def test_every_entry_of_the_demonstration_has_its_messages() -> None:
    vocabulary = built_in_knowledge().vocabulary
    named = {name for names in vocabulary.groups("demo-failures").values() for name in names}
    assert named | {"unknown"} == set(vocabulary.groups("demo-messages"))


def test_a_folder_with_incidents_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIAGE_WORKERS", "0")
    assert main(["demo", "--count", "2"]) == 0
    assert main(["demo", "--count", "2"]) == 2
    assert "already contains incidents" in capsys.readouterr().err
    assert main(["demo", "--count", "2", "--once"]) == 0


def test_make_demo_uses_a_folder_and_a_port_of_its_own(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    said = subprocess.run(
        ["make", "-n", "-o", ".venv/.installed", "demo"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    demo = re.search(r"^exec (env .*) \.venv/bin/torchtriage serve --port 8010$", said, re.M)
    assert demo is not None
    variables = {"PATH": os.environ["PATH"], "TRIAGE_DATABASE_URL": "postgresql://mine", "TRIAGE_DATA_DIR": "/mine"}
    left = subprocess.run(
        ["sh", "-c", f"{demo[1]} env"], env=variables, capture_output=True, text=True, check=True
    ).stdout
    assert [line for line in left.splitlines() if line.startswith("TRIAGE_")] == ["TRIAGE_DATA_DIR=demo-data"]


@pytest.mark.slow
def test_one_host_fails_more_than_chance(tmp_path: Path) -> None:
    service = open_service(Settings(data_dir=tmp_path, workers=0), triage_incident, working=False)
    try:
        demo.fill(service, 300, 1, NOW, lambda _: None)
        wanted = Range((NOW - timedelta(days=demo.DAYS + 1)).date(), NOW.date())
        found, _ = unlikely_hosts(service, wanted, None)
    finally:
        close_service(service)
    assert found[0].failures.host == "cumulus-007"
    assert found[0].failures.hardware > found[0].failures.count / 2
