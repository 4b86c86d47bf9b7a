"""Incidents and counters at an OTLP endpoint, from logs on; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.http_server import Told
from tests.otlp_endpoint import FakeEndpoint, fake_endpoint
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from torchtriage.domain.incident import Job
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.maintenance import Maintenance
from torchtriage.services.otlp_metrics import OtlpMetrics
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with fake_endpoint() as running:
        yield running


@pytest.fixture
def sending(endpoint: FakeEndpoint, database_url: str, tmp_path: Path) -> Iterator[Service]:
    settings = Settings(data_dir=tmp_path, database_url=database_url, workers=0, otlp_endpoint=endpoint.url, allow_private_calls=True)  # fmt: skip
    service = open_service(settings, lambda *_: None, working=False)
    yield service
    close_service(service)


def triaged(service: Service, log: bytes, job: Job) -> str:
    incident_id = accept(service, job, [upload(log)]).incident_id
    triage_incident(service, incident_id)
    return incident_id


def deliver(service: Service) -> None:
    for count in range(1, 20):
        if not outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=60 * count)):
            return


def test_each_failed_run_is_one_record_and_a_healthy_one_none(sending: Service, endpoint: FakeEndpoint) -> None:
    ids = [triaged(sending, OUT_OF_MEMORY, Job(job_id=job, job_name="llama", cluster="blue")) for job in ("1", "2")]
    triaged(sending, HEALTHY, Job(job_id="3"))
    deliver(sending)
    records = endpoint.records()
    assert [record["torchtriage.incident"] for record in records] == ids
    assert {record["torchtriage.entry"] for record in records} == {"cuda.oom"}
    assert records[0]["torchtriage.job.name"] == "llama"
    assert records[0]["torchtriage.group"] == records[1]["torchtriage.group"]
    assert "2.00 GiB" in records[0]["body"]


def test_a_provisional_run_is_sent_again_when_it_has_ended(sending: Service, endpoint: FakeEndpoint) -> None:
    for provisional in (True, False):
        triaged(sending, OUT_OF_MEMORY, Job(job_id="1", provisional=provisional))
        deliver(sending)
    assert [record["level"] for record in endpoint.records()] == ["WARN", "ERROR"]
    assert len({record["torchtriage.incident"] for record in endpoint.records()}) == 1


def test_no_secret_of_a_log_is_in_a_record(sending: Service, endpoint: FakeEndpoint) -> None:
    token = "hf_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
    triaged(sending, f"RuntimeError: login with {token} failed\n".encode(), Job(job_id="1", job_name=f"run {token}"))
    deliver(sending)
    (request,) = endpoint.logs
    assert token not in str(request)


def test_a_record_waits_while_the_endpoint_is_unreachable(sending: Service, endpoint: FakeEndpoint) -> None:
    endpoint.refusals = [Told(b"", 503, {"Retry-After": "30"})]
    triaged(sending, OUT_OF_MEMORY, Job(job_id="1"))
    assert outbox.send_one(sending)
    assert not outbox.send_one(sending)
    assert endpoint.records() == []
    assert outbox.send_one(sending, datetime.now(UTC) + timedelta(seconds=31))
    assert len(endpoint.records()) == 1


def test_maintenance_sends_sums_with_the_names_of_the_metrics(sending: Service, endpoint: FakeEndpoint) -> None:
    hours = Job(job_id="1", gpus=8, started_at="2026-05-01T00:00:00Z", ended_at="2026-05-01T02:00:00Z")
    triaged(sending, OUT_OF_MEMORY, replace(hours, provisional=True))
    triaged(sending, OUT_OF_MEMORY, replace(hours, provisional=False))
    Maintenance(sending).run_round()
    sums = endpoint.sums()
    assert sums["torchtriage_triaged_total", "explained", "cuda.oom"] == 2
    assert sums["torchtriage_gpu_hours_lost_total", "explained", "cuda.oom"] == 16
    assert sums["torchtriage_accepted_total",] == 1  # a report that replaces another is the same incident
    assert sums["torchtriage_failed_total",] == 0
    own = {sample.name for family in sending.counters.registry.collect() for sample in family.samples}
    assert {name for name, *_ in sums} <= own


def test_sums_wait_as_long_as_the_endpoint_says(sending: Service, endpoint: FakeEndpoint) -> None:
    metrics = OtlpMetrics(sending)
    endpoint.refusals = [Told(b"", 500), Told(b"", 429, {"Retry-After": "3600"})]
    for _ in range(3):
        metrics.send()
    assert len(endpoint.asked) == 2
    endpoint.partial = {"rejectedDataPoints": "1", "errorMessage": "too many series"}
    OtlpMetrics(sending).send()
    assert len(endpoint.metrics) == 1


@pytest.mark.parametrize("other", [{"otlp_metrics": False}, {"otlp_endpoint": ""}])
def test_no_sums_are_sent_unless_configured(tmp_path: Path, endpoint: FakeEndpoint, other: dict[str, object]) -> None:  # fmt: skip
    wanted = {"otlp_endpoint": endpoint.url, **other}
    service = open_service(Settings(data_dir=tmp_path, workers=0, allow_private_calls=True, **wanted), lambda *_: None, working=False)  # type: ignore[arg-type]  # fmt: skip
    OtlpMetrics(service).send()
    close_service(service)
    assert endpoint.asked == []
