from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from tests.storage import values
from torchtriage.domain.dashboard import Range
from torchtriage.domain.incident import Job
from torchtriage.domain.stats import StatsFilter
from torchtriage.domain.verdict import Checkpoint, RunFacts, Verdict
from torchtriage.services import stats
from torchtriage.services.accept import accept
from torchtriage.services.dashboard import dashboard
from torchtriage.services.job_cost import gpu_hours_lost
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident

ECC = b"Nov 16 10:00:00 gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, name=python, DBE (double bit error)\n"


def run(outcome: str = "explained", **facts: Any) -> Verdict:
    return replace(values.verdict(outcome), run=RunFacts(**facts))


def saved(time: str | None) -> Checkpoint:
    return Checkpoint("ckpt/step7.pt", 7, time, 4)


@pytest.mark.parametrize(
    ("job", "verdict", "hours"),
    [
        (Job(gpus=8, started_at="2026-05-01T09:00:00Z", ended_at="2026-05-01T10:30:00Z"), run(), 12.0),
        (Job(gpus=8), run(started="2026-05-01T09:00:00", ended="2026-05-01T09:30:00"), 4.0),
        (
            Job(),
            run(world_size=4, versions={"nccl": "2.21"}, started="2026-05-01T09:00:00", ended="2026-05-01T10:00:00"),
            4.0,
        ),
        (Job(), run(world_size=4, started="2026-05-01T09:00:00", ended="2026-05-01T10:00:00"), None),  # CPUs perhaps
        (Job(gpus=8), run(checkpoint=saved("2026-05-01T09:50:00"), ended="2026-05-01T10:20:00"), 4.0),
        (
            Job(gpus=2, started_at="2026-05-01T00:00:00Z", ended_at="2026-05-01T10:20:00Z"),
            run(checkpoint=saved("2026-05-01T09:50:00"), ended="2026-05-01T10:20:00"),
            1.0,
        ),
        (Job(gpus=8), run(checkpoint=saved(None), started="2026-05-01T09:00:00", ended="2026-05-01T10:00:00"), 8.0),
        (Job(gpus=8, started_at="2026-05-01T09:00:00Z"), run(ended="2026-05-01T10:00:00"), None),  # two clocks
        (Job(gpus=8), run(started="2026-05-01T09:00:00", ended="2026-05-01T08:00:00"), None),
        (Job(gpus=8, started_at="soon", ended_at="2026-05-01T10:30:00Z"), run(), None),
        (Job(started_at="2026-05-01T09:00:00Z", ended_at="2026-05-01T10:30:00Z"), run(), None),
    ],
)
def test_gpu_hours_lost_are_gpus_times_hours(job: Job, verdict: Verdict, hours: float | None) -> None:
    assert gpu_hours_lost(job, verdict) == hours


def test_a_healthy_run_lost_nothing() -> None:
    job = Job(gpus=8, started_at="2026-05-01T09:00:00Z", ended_at="2026-05-01T10:30:00Z")
    assert gpu_hours_lost(job, run("healthy")) is None


def triaged(service: Service, content: bytes, **job: Any) -> None:
    times: dict[str, Any] = {"gpus": 8, "started_at": "2026-05-01T09:00:00Z", "ended_at": "2026-05-01T10:00:00Z"}
    triage_incident(service, accept(service, Job(**(times | job)), [upload(content)]).incident_id)


def test_hosts_that_fail_for_reasons_of_their_own_come_first(service: Service) -> None:
    for number in range(3):
        triaged(service, OUT_OF_MEMORY, job_id=str(number))
    for job_id in ("a", "b", "b"):
        triaged(service, ECC + job_id.encode() + b"\n", job_id=job_id, attempt=len(job_id))
    triaged(service, HEALTHY)
    first = stats.hosts(service, StatsFilter(), 10)[0]
    assert (first.host, first.hardware, first.jobs) == ("gpu-7", 2, 2)
    assert sum(first.entries.values()) == first.count == 2
    assert first.gpu_hours_lost == 16.0
    assert stats.hosts(service, StatsFilter(since=datetime.now(UTC) + timedelta(hours=1)), 10) == []


def test_counts_over_time(service: Service) -> None:
    triaged(service, OUT_OF_MEMORY, job_id="1", cluster="blue")
    triaged(service, OUT_OF_MEMORY, job_id="2", cluster="green")
    triaged(service, HEALTHY, job_id="3", cluster="green")
    today = datetime.now(UTC)
    counted = stats.count(service, StatsFilter(), "cluster", "day").items
    assert [(stat.value, stat.count, stat.gpu_hours_lost) for stat in counted] == [("green", 2, 8.0), ("blue", 1, 8.0)]
    assert {datetime.fromisoformat(stat.at) for stat in counted} <= {
        moment.replace(hour=0, minute=0, second=0, microsecond=0) for moment in (today, today - timedelta(hours=1))
    }
    by_entry = stats.count(service, StatsFilter(cluster="green"), "entry", "hour").items
    assert {(stat.value, stat.count) for stat in by_entry} == {("cuda.oom", 1), (None, 1)}


CHECKPOINTED = b"""\
2026-05-01 09:00:00 world_size: 8, NCCL version 2.21.5+cuda12.4
2026-05-01 09:00:10 step 1 loss 2.0
2026-05-01 09:29:58 step 500 loss 1.5
2026-05-01 09:30:00 Saving model checkpoint to out/checkpoint-500
2026-05-01 09:30:20 step 501 loss 1.5
2026-05-01 09:45:00 step 700 loss 1.4
2026-05-01 09:45:00 [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB
2026-05-01 10:30:00 the launcher gives up
"""  # fmt: skip


def test_the_dashboard_counts_from_the_last_checkpoint_to_the_failure(service: Service) -> None:
    job = {"started_at": None, "ended_at": None, "gpus": None}
    triaged(service, CHECKPOINTED, job_id="with", **job)
    without = CHECKPOINTED.replace(b"Saving model checkpoint to", b"Loading model from")
    triaged(service, without, job_id="without", **job)
    today = datetime.now(UTC).date()
    shown = dashboard(service, Range(today, today))
    from_checkpoint, from_start = 8 * 15 / 60, 8 * 90 / 60
    assert (shown.count, shown.gpu_hours_lost) == (2, from_checkpoint + from_start)
    assert [cost.gpu_hours_lost for cost in shown.causes] == [14.0]
