"""Logs that come in pieces, on both databases: what is kept, and when a job becomes an incident."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.otlp import BEGAN, OUT_OF_MEMORY, pod, record, request, resource
from torchtriage.domain.incident import Incident, IncidentFilter
from torchtriage.errors import NotFound, TriageError, UnreadableLog
from torchtriage.queue.subprocess_calls import CallFailed
from torchtriage.services.accept import accept
from torchtriage.services.gathered_logs import (
    TooMuchGathered,
    end_gathering,
    keep_pieces,
    list_gathered,
    report_due,
)
from torchtriage.services.incidents import list_incidents, read_incident, read_log
from torchtriage.services.otlp_records import Sorted, sort_records
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import gathered_logs
from torchtriage.web.api.otlp_decoding import JSON, resources

NOW = datetime(2026, 5, 1, 9, 5, 11, tzinfo=UTC)


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    settings = Settings(data_dir=tmp_path, database_url=database_url, workers=0, otlp_job_bytes=4000, otlp_total_bytes=20_000)  # fmt: skip
    opened = open_service(settings, lambda *_: None, working=False)
    yield opened
    close_service(opened)


def taken(service: Service, *told: dict[str, Any], seconds: float = 0) -> Sorted:
    come = sort_records(resources(request(*told), JSON), service.knowledge.vocabulary)
    keep_pieces(service, come, NOW + timedelta(seconds=seconds))
    return come


def due(service: Service, seconds: float) -> list[Incident]:
    """Returns the incidents that were made so many seconds later, triaged."""
    made = report_due(service, NOW + timedelta(seconds=seconds))
    for incident in made:
        triage_incident(service, incident)
    return [read_incident(service, incident) for incident in made]


def log_of(service: Service, incident: Incident) -> dict[str, list[str]]:
    files = incident.log.files
    return {file.name: [line.text for line in read_log(service, incident, 1, 2000, file.name)[1]] for file in files}


def test_a_silent_job_is_one_provisional_incident_and_then_a_final_one(service: Service) -> None:
    for rank in (0, 3):
        taken(service, resource(pod(rank), record("step 40 loss 2.35", 1), record("step 41 loss 2.31", 2)))
    taken(service, resource(pod(3), *(record(line, 3) for line in OUT_OF_MEMORY)), seconds=5)
    assert due(service, 599) == []
    (incident,) = due(service, 606)
    assert incident.verdict is not None
    assert incident.root_cause is not None
    assert (incident.entry, incident.verdict.provisional) == ("cuda.oom", True)
    assert (incident.job.job_name, incident.job.cluster, incident.job.labels) == (
        "llama",
        "blue",
        {"namespace": "ml", "source": "otel"},
    )
    assert incident.root_cause.host == "llama-worker-3"
    log = log_of(service, incident)
    assert sorted(log) == ["llama-worker-0.log", "llama-worker-3.log"]
    assert log["llama-worker-0.log"][0] == "llama-worker-0: 2026-05-01T09:05:12.000000Z step 40 loss 2.35"
    assert due(service, 700) == []  # nothing new
    taken(service, resource(pod(0), record("torch.distributed.DistBackendError: NCCL timeout", 620)), seconds=620)
    (again,) = due(service, 620 + 3600)
    assert again.id == incident.id
    assert again.verdict is not None
    assert not again.verdict.provisional
    assert log_of(service, again)["llama-worker-0.log"][-1].endswith("NCCL timeout")
    assert list_gathered(service) == []
    assert len(list_incidents(service, IncidentFilter()).items) == 1


def test_a_job_that_reports_its_end_is_an_incident_at_once(service: Service) -> None:
    taken(service, resource(pod(0, **{"enduser.id": "ann"}), *map(record, OUT_OF_MEMORY)))
    taken(service, resource(pod(1), record("exited", 9, torchtriage__job__exit_code="1")))
    (incident,) = due(service, 0)
    assert (incident.job.exit_code, incident.job.user) == (1, "ann")
    assert incident.entry == "cuda.oom"
    assert incident.verdict is not None
    assert not incident.verdict.provisional
    assert list_gathered(service) == []


def test_runs_of_one_name_are_different_jobs(service: Service) -> None:
    taken(service, resource({"service.name": "trainer"}, *map(record, OUT_OF_MEMORY)))
    (first,) = due(service, 3600)
    taken(service, resource({"service.name": "trainer"}, *map(record, OUT_OF_MEMORY)), seconds=7200)
    (second,) = due(service, 3 * 3600)
    assert first.id != second.id
    assert first.job.job_id == "trainer@20260501T090511Z"


def test_host_and_rank_are_those_of_the_attributes(service: Service) -> None:
    """The node, which a retry can leave out, and not its pod; in a log of one file too."""
    node = {"k8s.node.name": "gpu-021", "host.name": "llama-worker-3"}
    taken(service, resource(pod(3, **node), *(record(line, 1, rank="11") for line in OUT_OF_MEMORY)))
    taken(service, resource(pod(3, **node), record("[rank11]: bye", 2, rank="11")))
    (incident,) = due(service, 3600)
    assert incident.root_cause is not None
    assert (incident.root_cause.host, incident.root_cause.rank) == ("gpu-021", 11)
    (lines,) = log_of(service, incident).values()
    assert lines[0] == "gpu-021: 2026-05-01T09:05:12.000000Z [rank11]: step 41 loss 2.31"
    assert lines[-1] == "gpu-021: 2026-05-01T09:05:13.000000Z [rank11]: bye"
    assert list(log_of(service, incident)) == ["llama-worker-3/rank11.log"]


def test_a_person_can_end_the_gathering(service: Service) -> None:
    taken(service, resource(pod(0), *map(record, OUT_OF_MEMORY)))
    (job,) = list_gathered(service)
    assert (job.lines, job.since, job.dropped) == (5, NOW, 0)
    incident = end_gathering(service, job.id, "ann")
    assert list(log_of(service, read_incident(service, incident))) == ["llama-worker-0.log"]
    with pytest.raises(NotFound):
        end_gathering(service, job.id, "ann")


def test_pieces_that_come_late_are_put_where_they_were_written(service: Service) -> None:
    taken(service, resource(pod(0), record("third", 3)))
    taken(service, resource(pod(0), record("first", 1), record("second", 2)))
    (incident,) = due(service, 3600)
    assert [line.split()[-1] for line in log_of(service, incident)["llama-worker-0.log"]] == [
        "first",
        "second",
        "third",
    ]


def test_a_long_log_keeps_its_beginning_and_its_end(service: Service) -> None:
    for at in range(100):
        taken(service, resource(pod(0), record(f"line {at} {'x' * 50}", at)))
    (job,) = list_gathered(service)
    assert job.bytes <= 4000
    assert job.lines + job.dropped == 100
    (incident,) = due(service, 3600)
    kept = [int(line.split()[3]) for line in log_of(service, incident)["llama-worker-0.log"]]
    assert kept[:3] == [0, 1, 2]
    assert kept[-20:] == list(range(80, 100))


def test_a_request_over_the_total_limit_is_refused_completely(service: Service) -> None:
    for at in range(5):
        taken(service, resource(pod(0, f"job{at}"), record("x" * 3900, at)))
    with pytest.raises(TooMuchGathered) as refused:
        taken(service, resource(pod(0, "job9"), record("x" * 3900)))
    assert refused.value.detail["retry_after"] > 0
    assert len(list_gathered(service)) == 5
    due(service, 3600)
    taken(service, resource(pod(0, "job9"), record("x" * 3900)))


def test_no_secret_is_kept(service: Service, tmp_path: Path) -> None:
    secret = "hf_" + "a1B2" * 8
    taken(service, resource(pod(0), record(f"token {secret}")))
    with service.database.reading() as session:
        (job,) = gathered_logs.listed(session)
        names, newest = gathered_logs.streams(session, job.id)
        assert secret not in b"".join(gathered_logs.content(session, job.id, names[0], newest)).decode()


def test_lines_that_arrive_during_the_report_begin_a_new_log(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(service, resource(pod(0), *map(record, OUT_OF_MEMORY)))

    def meanwhile(*given: Any) -> Any:
        found = accept(*given)
        taken(service, resource(pod(0), record("one more", 9)), seconds=3601)
        return found

    monkeypatch.setattr("torchtriage.services.gathered_logs.accept", meanwhile)
    due(service, 3600)
    (job,) = list_gathered(service)
    assert (job.lines, job.since) == (1, NOW + timedelta(seconds=3601))


@pytest.mark.parametrize(
    ("problem", "kept"), [(CallFailed("the process is gone"), True), (UnreadableLog("the log is no text"), False)]
)
def test_only_what_can_never_be_an_incident_is_dropped(
    service: Service, monkeypatch: pytest.MonkeyPatch, problem: TriageError, kept: bool
) -> None:
    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr("torchtriage.services.gathered_logs.accept", fail)
    taken(service, resource(pod(3), record(OUT_OF_MEMORY[-1], 1)))
    assert report_due(service, NOW + timedelta(days=1)) == []
    assert bool(list_gathered(service)) is kept


def test_a_records_own_attributes_come_before_the_resources(service: Service) -> None:
    told = [
        resource({"host.name": "gpu-021"}, record("a", 0, slurm__job__id="4711", rank={"intValue": "3"})),
        resource({"host.name": "gpu-021"}, record("nobody's")),
        resource({"service.name": "unknown_service"}, record("nobody's either")),
        resource(
            {"job_id": "4711", "host.name": "gpu-022"}, record("b", 0, log__file__path="/logs/attempt_0/5/stderr.log")
        ),
    ]
    come = sort_records(resources(request(*told), JSON), service.knowledge.vocabulary)
    assert come.rejected == 2
    (job,) = come.pieces
    assert job.job.job_id == "4711"
    assert [piece.stream for piece in job.pieces] == ["gpu-021/rank3.log", "gpu-022/logs/attempt_0/5/stderr.log"]


def test_an_exception_of_a_logging_handler_is_read_as_one(service: Service) -> None:
    stack = "\n".join(OUT_OF_MEMORY[1:]) + "\n"
    failed = record("training failed", 5, "ERROR", exception__stacktrace=stack, exception__type="OutOfMemoryError")
    structured = record({"kvlistValue": {"values": [{"key": "message", "value": {"stringValue": "hello"}}]}}, 1)
    taken(service, resource({"service.name": "trainer"}, structured, failed))
    (incident,) = due(service, 3600)
    assert incident.entry == "cuda.oom"
    (lines,) = log_of(service, incident).values()
    assert lines[0].endswith('Z {"message": "hello"}')
    assert lines[1] == "2026-05-01T09:05:16.000000Z ERROR training failed"
    assert NOW.timestamp() == BEGAN


def test_the_settings_bound_what_is_gathered(service: Service) -> None:
    smaller = dataclasses.replace(service, settings=dataclasses.replace(service.settings, otlp_total_bytes=10))
    with pytest.raises(TooMuchGathered):
        taken(smaller, resource(pod(0), record("x" * 20)))
