from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from tests.services.logs import HEALTHY, OUT_OF_MEMORY
from tests.services.test_retriage import entries, triaged, wiser
from torchtriage.errors import BadInput
from torchtriage.services.retriage_job import Busy, Outdated, RetriageJobs, Stage
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings
from torchtriage.storage import retriage_job
from torchtriage.storage.retriage_job import StoredProgress

COUNTED: dict[str, Any] = {"looked_at": 5, "failed": 0, "found": 0, "changed": 0}
TOLD = COUNTED | {"by": "ann", "chosen": [], "differences": [], "ids": [], "problem": None}


@pytest.fixture
def servers(service: Service, settings: Settings) -> Iterator[tuple[RetriageJobs, RetriageJobs]]:
    """Two servers of one database, of other knowledge than its verdicts."""
    other = open_service(settings, lambda *_: None, working=False)
    both = RetriageJobs(wiser(service)), RetriageJobs(wiser(other))
    yield both
    for one in both:
        one.close()
    close_service(other)


def test_another_server_shows_and_applies_a_preview(
    servers: tuple[RetriageJobs, RetriageJobs], service: Service
) -> None:
    one, other = servers
    incident, _ = triaged(service, OUT_OF_MEMORY, "1"), triaged(service, HEALTHY, "2")
    one.start_preview("ann")
    one.wait()
    told = other.progress
    assert told == one.progress
    assert (told.stage, told.by, told.looked_at, told.found, told.ids) == (Stage.FOUND, "ann", 2, 1, (incident,))
    assert [difference.after for difference in told.differences] == [("explained", "cuda.illegal-access")]
    other.apply("bob")
    other.wait()
    assert (one.progress.stage, one.progress.by, one.progress.changed) == (Stage.APPLIED, "bob", 1)
    assert entries(service, incident) == ["cuda.illegal-access"]


def test_one_at_a_time_for_all_servers(servers: tuple[RetriageJobs, RetriageJobs], service: Service) -> None:
    one, other = servers
    under_way = StoredProgress("another's", Stage.LOOKING, datetime.now(UTC), TOLD)
    with service.database.transaction() as session:
        retriage_job.begin(session, under_way)
    with pytest.raises(Busy):
        one.start_preview("ann")
    with pytest.raises(Busy):
        other.apply("ann")
    with pytest.raises(Busy):
        other.discard()
    assert one.progress.stage is Stage.LOOKING


def test_one_whose_process_died_is_reported_and_does_not_block(
    servers: tuple[RetriageJobs, RetriageJobs], service: Service
) -> None:
    long_ago = StoredProgress("dead", Stage.APPLYING, datetime.now(UTC) - timedelta(minutes=1), TOLD)
    with service.database.transaction() as session:
        retriage_job.begin(session, long_ago)
    one, other = servers
    assert (one.progress.stage, one.progress.looked_at) == (Stage.BROKEN, 5)
    assert "is gone" in (one.progress.problem or "")
    other.start_preview("ann")
    with service.database.transaction() as session:  # it was not dead, only slow
        assert not retriage_job.note(session, dataclasses.replace(long_ago, stage=Stage.APPLIED))
    other.wait()
    assert one.progress.stage is Stage.FOUND


def test_a_discarded_preview_cannot_be_applied(servers: tuple[RetriageJobs, RetriageJobs], service: Service) -> None:
    one, other = servers
    triaged(service, OUT_OF_MEMORY, "1")
    one.start_preview("ann")
    one.wait()
    other.discard()
    assert one.progress.stage is Stage.NONE
    with pytest.raises(BadInput, match="no finished retriage"):
        one.apply("ann")


def test_a_preview_with_other_knowledge_is_not_offered(service: Service) -> None:
    incident = triaged(service, OUT_OF_MEMORY, "1")
    learned = wiser(service)
    jobs = RetriageJobs(learned)
    jobs.start_preview("ann", [incident])
    jobs.wait()
    found = jobs.progress
    learned.knowledge = service.knowledge  # as after an undo
    assert (found.stage, jobs.progress.stage) == (Stage.FOUND, Stage.OUTDATED)
    with pytest.raises(Outdated):
        jobs.apply("ann")
    jobs.preview_again("bob")
    jobs.wait()
    assert (jobs.progress.stage, jobs.progress.by, jobs.progress.chosen) == (Stage.FOUND, "bob", (incident,))
    jobs.discard()
    with pytest.raises(BadInput, match="no incident"):
        jobs.preview_again("ann")


def test_a_server_that_is_stopped_says_so(servers: tuple[RetriageJobs, RetriageJobs], service: Service) -> None:
    one, other = servers
    with service.database.transaction() as session:
        session.execute(text("UPDATE incidents SET knowledge = 'older'"))
    one.start_preview("ann")
    one.close()
    assert other.progress.stage in (Stage.BROKEN, Stage.FOUND)  # it may have been done by then
    other.start_preview("bob")
    other.wait()
    assert other.progress.stage is Stage.FOUND
