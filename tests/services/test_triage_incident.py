from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, kept, tar, upload, with_triager
from torchtriage.domain.incident import IncidentFilter, Job, State
from torchtriage.errors import UnreadableLog
from torchtriage.services import groups, incidents
from torchtriage.services.accept import accept
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.services.triage_upload import triage_upload
from torchtriage.settings import Settings
from torchtriage.storage import triage_claims
from torchtriage.storage.database import StorageUnavailable


def sent(service: Service, *uploads: bytes, **job: Any) -> str:
    return accept(service, Job(**job), [upload(content) for content in uploads]).incident_id


def test_a_log_becomes_a_verdict_in_a_group(service: Service) -> None:
    incident_id = sent(service, OUT_OF_MEMORY)
    triage_incident(service, incident_id)
    incident = incidents.read_incident(service, incident_id)
    assert incident.state is State.TRIAGED
    assert incident.verdict is not None
    assert incident.entry == "cuda.oom"
    assert incident.group is not None
    assert groups.read_group(service, incident.group.id).count == 1


def test_it_is_found_by_its_cause_in_both_languages(service: Service) -> None:
    incident_id = sent(service, OUT_OF_MEMORY, job_name="llama-pretrain")
    triage_incident(service, incident_id)
    for query in ("OutOfMemoryError", "out of memory", "显存", "cuda.oom", "llama pretrain", "model.py"):
        found = incidents.list_incidents(service, IncidentFilter(q=query)).items
        assert [incident.id for incident in found] == [incident_id], query


@pytest.mark.parametrize(
    ("job", "command"),
    [
        ({"scheduler": "slurm", "job_id": "4711_3"}, "sacct -j 4711_3 "),
        ({"scheduler": "slurm", "job_id": "1; rm -rf /"}, "sacct -j JOB "),
        ({"scheduler": "kubernetes", "job_id": "4711"}, "sacct -j JOB "),
    ],
)
def test_commands_are_filled_with_the_job_that_was_sent(service: Service, job: dict[str, str], command: str) -> None:
    incident_id = sent(service, b"slurmstepd: error: *** CANCELLED DUE TO TIME LIMIT ***\n", **job)
    triage_incident(service, incident_id)
    verdict = incidents.read_incident(service, incident_id).verdict
    assert verdict is not None
    assert verdict.root_cause is not None
    assert verdict.root_cause.checks[0].startswith(command)


@pytest.mark.parametrize("job_id", [None, "4711"])
def test_decisions_are_queried_only_if_the_job_is_known(service: Service, job_id: str | None) -> None:
    """A backlog of logs without a job's id costs the database no question about decisions."""
    incident_id, asked = sent(service, OUT_OF_MEMORY, job_id=job_id), list[str]()

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        triage_incident(service, incident_id)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert any("FROM decisions" in statement for statement in asked) == (job_id is not None)
    assert any("UPDATE incidents" in statement for statement in asked)


def test_a_healthy_run_is_in_no_group(service: Service) -> None:
    incident_id = sent(service, HEALTHY)
    triage_incident(service, incident_id)
    incident = incidents.read_incident(service, incident_id)
    assert incident.verdict is not None
    assert (incident.verdict.outcome, incident.group) == ("healthy", None)


def test_the_stored_log_has_the_verdict_that_the_sent_one_has(service: Service) -> None:
    bundle = tar({"attempt_0/1/stderr.log": OUT_OF_MEMORY, "attempt_0/0/stderr.log": HEALTHY})
    incident_id = sent(service, bundle)
    triage_incident(service, incident_id)
    verdict = incidents.read_incident(service, incident_id).verdict
    assert verdict is not None
    direct = triage_upload(service, [upload(bundle)], "en")
    assert verdict == replace(direct, stats=replace(direct.stats, seconds=verdict.stats.seconds))
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].file == "attempt_0/1/stderr.log"
    assert len(kept(service)) == 2  # of what was only triaged nothing is left


def test_a_log_that_the_engine_refuses_fails_with_the_reason_and_is_kept(service: Service) -> None:
    def refuse(*_: object) -> None:
        raise UnreadableLog("it can't be read")

    incident_id = sent(service, b" \n" * 10)
    triage_incident(with_triager(service, refuse), incident_id)
    incident = incidents.read_incident(service, incident_id)
    assert (incident.state, incident.failure) == (State.FAILED, "it can't be read")
    assert b"".join(service.blobs.chunks(incident.log.sha256)) == b" \n" * 10


def test_an_error_of_the_engine_fails_only_this_incident(service: Service) -> None:
    def divide(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    incident_id = sent(service, OUT_OF_MEMORY)
    triage_incident(with_triager(service, divide), incident_id)
    incident = incidents.read_incident(service, incident_id)
    assert (incident.state, incident.failure) == (State.FAILED, "the triage failed: ZeroDivisionError: by zero")


def test_an_incident_deleted_during_its_triage_stays_deleted(service: Service) -> None:
    def forget(*arguments: Any) -> Any:
        verdict = service.triager.run(*arguments)
        incidents.forget_incident(service, incident_id, "ann")
        return verdict

    incident_id = sent(service, OUT_OF_MEMORY)
    triage_incident(with_triager(service, forget), incident_id)
    assert incidents.list_incidents(service, IncidentFilter()).items == ()
    triage_incident(service, incident_id)


def test_incidents_that_waited_at_a_stop_are_triaged_after_the_next_start(settings: Settings) -> None:
    first = open_service(settings, lambda *_: None)
    waiting, claimed = sent(first, OUT_OF_MEMORY, job_id="1"), sent(first, OUT_OF_MEMORY, job_id="2")
    with first.database.transaction() as session:
        assert triage_claims.claim(session, [claimed], datetime.now(UTC))[claimed].tries == 1
    close_service(first)
    second = open_service(settings, triage_incident)
    for incident_id in (waiting, claimed):
        future = second.queue.find(incident_id)
        if future is not None:
            future.result(timeout=60)
        assert incidents.read_incident(second, incident_id).state is State.TRIAGED
    close_service(second)


@pytest.mark.slow
def test_a_kill_between_acceptance_and_triage_loses_nothing(settings: Settings) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from torchtriage.settings import Settings\n"
        "from torchtriage.domain.incident import Job\n"
        "from torchtriage.services.accept import accept\n"
        "from torchtriage.services.service import open_service\n"
        "from torchtriage.reading.unpack import Upload\n"
        "def die(service, incident_id):\n"
        "    from datetime import UTC, datetime\n"
        "    from torchtriage.storage import triage_claims\n"
        "    with service.database.transaction() as session: triage_claims.claim(session, [incident_id], datetime.now(UTC))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "service = open_service(Settings(data_dir=Path(sys.argv[1]), database_url=sys.argv[2]), die)\n"
        "print(accept(service, Job(), [Upload('log', iter([sys.argv[3].encode()]))]).incident_id, flush=True)\n"
        "signal.pause()\n"
    )
    command = [sys.executable, "-c", program, str(settings.data_dir), settings.database, OUT_OF_MEMORY.decode()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    service = open_service(settings, triage_incident)
    (incident,) = incidents.list_incidents(service, IncidentFilter()).items
    future = service.queue.find(incident.id)
    if future is not None:
        future.result(timeout=60)
    again = incidents.read_incident(service, incident.id)
    assert again.state is State.TRIAGED
    assert b"".join(service.blobs.chunks(again.log.sha256)) == OUT_OF_MEMORY
    close_service(service)


def test_an_incident_waits_if_the_whole_store_is_gone(service: Service, tmp_path: Path) -> None:
    incident_id = sent(service, OUT_OF_MEMORY)
    (tmp_path / "logs").rename(tmp_path / "elsewhere")
    (tmp_path / "logs").mkdir()  # as where what was mounted there is gone
    with pytest.raises(StorageUnavailable, match="was replaced"):
        triage_incident(service, incident_id)
    assert incidents.read_incident(service, incident_id).state is State.RECEIVED
    (tmp_path / "logs").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "logs")
    triage_incident(service, incident_id)
    assert incidents.read_incident(service, incident_id).state is State.TRIAGED


@pytest.mark.parametrize("broken", ["database", "logs"])
def test_a_service_that_cannot_work_does_not_start(tmp_path: Path, broken: str) -> None:
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "inside")
    wrong = {"database_url": f"sqlite:///{tmp_path}"} if broken == "database" else {"blob_url": place}
    with pytest.raises(StorageUnavailable) as raised:
        open_service(Settings(data_dir=tmp_path, **wrong), triage_incident)  # type: ignore[arg-type]
    assert "\n" not in raised.value.message


def test_a_log_that_takes_the_service_down_each_time_fails_in_the_end(service: Service) -> None:
    """As of a service that is started again after each time."""
    incident_id = sent(service, OUT_OF_MEMORY)
    now = datetime.now(UTC)
    for _ in range(triage_claims.MAX_TRIES):
        now += timedelta(days=1)
        with service.database.transaction() as session:
            assert triage_claims.claim(session, [incident_id], now)
    triage_incident(service, incident_id)
    incident = incidents.read_incident(service, incident_id)
    assert incident.state is State.FAILED
    assert "died 10 times" in (incident.failure or "")
    assert b"".join(service.blobs.chunks(incident.log.sha256)) == OUT_OF_MEMORY
