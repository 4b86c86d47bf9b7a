"""Back-tests: what a draft would explain, take from others, and say of healthy runs."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.drafts import SOUND, UNKNOWN
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, triaged
from tests.services.test_retriage import entries
from torchtriage.domain.back_test import BackTest, BackTestStage, ShownIn
from torchtriage.domain.draft import Draft
from torchtriage.domain.json_form import fields_form
from torchtriage.errors import BadInput, NotFound
from torchtriage.services import drafts
from torchtriage.services.back_test import BackTestJobs, BackTestRuns
from torchtriage.services.service import Service
from torchtriage.storage import back_tests
from torchtriage.storage.retriage_job import StoredProgress

WARNED = UNKNOWN + "step 300 loss 2.0\nstep 400 loss 1.9\ntraining finished\n"


@pytest.fixture
def jobs(service: Service) -> Iterator[BackTestJobs]:
    made = BackTestJobs(service)
    yield made
    made.close()


def back_tested(jobs: BackTestJobs, service: Service, draft: Draft = SOUND) -> BackTest:
    stored, _ = drafts.create_draft(service, draft, None, "ann")
    jobs.start(stored.id, "ann")
    jobs.wait()
    return jobs.progress(stored.id)


@pytest.mark.slow
def test_it_lists_what_a_draft_would_explain_and_changes_nothing(jobs: BackTestJobs, service: Service) -> None:
    first = triaged(service, UNKNOWN.encode(), "1")
    triaged(service, OUT_OF_MEMORY, "2")
    triaged(service, HEALTHY, "3")
    second = triaged(service, UNKNOWN.replace("shard 3", "shard 4").encode(), "4")
    told = back_tested(jobs, service)
    assert (told.stage, told.by, told.revision, told.total, told.looked_at) == (BackTestStage.DONE, "ann", 1, 4, 4)
    assert told.explains == (ShownIn(first, "unexplained", None), ShownIn(second, "unexplained", None))
    assert (told.counts, told.changed, told.failed) == ({"explains": 2}, (first, second), 0)
    assert entries(service, first, second) == [None, None]


def test_it_lists_what_other_entries_would_lose_and_matches_that_are_not_the_cause(
    jobs: BackTestJobs, service: Service
) -> None:
    taken = triaged(service, OUT_OF_MEMORY, "1")
    broad = dataclasses.replace(
        SOUND, sign=r"OutOfMemoryError: CUDA out of memory\. Tried to allocate [\d.]+ GiB\. GPU 0 has a total"
    )
    told = back_tested(jobs, service, broad)
    assert told.takes == (ShownIn(taken, "explained", "cuda.oom", "forward"),) or told.beside == told.takes


def test_it_lists_false_alarms_on_healthy_runs(jobs: BackTestJobs, service: Service) -> None:
    healthy = triaged(service, HEALTHY + b"note: shard cache is cold\nstep 3 loss 2.3\ntraining finished\n", "1")
    told = back_tested(jobs, service, dataclasses.replace(SOUND, sign="note: shard cache is cold", search_in="line"))
    assert [shown.incident_id for shown in (*told.alarms, *told.beside)] in ([healthy], [])
    unhealthy = triaged(service, b"step 1 loss 2\nnote: shard cache is cold\n", "2")
    assert unhealthy != healthy


def test_a_missing_log_is_counted_and_does_not_stop_it(jobs: BackTestJobs, service: Service) -> None:
    gone, left = triaged(service, UNKNOWN.encode(), "1"), triaged(service, UNKNOWN.replace("3005", "7").encode(), "2")
    from torchtriage.services.incidents import read_incident

    service.blobs.remove(read_incident(service, gone).log.files[0].sha256)
    told = back_tested(jobs, service)
    assert (told.failed, told.changed) == (1, (left,))


def test_an_invalid_sign_is_refused(jobs: BackTestJobs, service: Service) -> None:
    for sign in ("", "x(?=y)"):
        with pytest.raises(BadInput, match="fix the sign first"):
            back_tested(jobs, service, dataclasses.replace(SOUND, sign=sign, entry=f"a.b{len(sign)}"))
    with pytest.raises(NotFound):
        jobs.start("77", "ann")


def test_one_runs_at_a_time_and_one_whose_process_died_does_not_block(jobs: BackTestJobs, service: Service) -> None:
    stored, _ = drafts.create_draft(service, SOUND, None, "ann")
    other, _ = drafts.create_draft(service, dataclasses.replace(SOUND, entry="ourdata.other"), None, "ann")
    running = BackTest(BackTestStage.RUNNING, "bob", 1, 5, 2)
    alive = StoredProgress("another's", BackTestStage.RUNNING, datetime.now(UTC), fields_form(running))
    with service.database.transaction() as session:
        back_tests.begin(session, other.id, alive)
    with pytest.raises(BackTestRuns, match=f"draft {other.id} is running"):
        jobs.start(stored.id, "ann")
    with service.database.transaction() as session:
        back_tests.begin(session, other.id, dataclasses.replace(alive, seen_at=alive.seen_at - timedelta(minutes=1)))
    told = jobs.progress(other.id)
    assert (told.stage, told.problem, told.looked_at) == (BackTestStage.BROKEN, "its process is gone", 2)
    jobs.start(stored.id, "ann")
    jobs.wait()
    assert jobs.progress(stored.id).stage is BackTestStage.DONE


def test_any_server_cancels_it(jobs: BackTestJobs, service: Service) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any) -> list[None]:
        begun.set()
        assert go_on.wait(60)
        return [None]

    triaged(service, UNKNOWN.encode(), "1")
    stored, _ = drafts.create_draft(service, SOUND, None, "ann")
    triager: Any = type("Slow", (), {"try_entry": staticmethod(slow), "check_draft": service.triager.check_draft})()
    mine = BackTestJobs(dataclasses.replace(service, triager=triager))
    mine.start(stored.id, "ann")
    assert begun.wait(60)
    jobs.cancel(stored.id)
    go_on.set()
    mine.wait()
    assert jobs.progress(stored.id).stage is BackTestStage.CANCELLED


def test_it_is_deleted_with_its_draft(jobs: BackTestJobs, service: Service) -> None:
    told = back_tested(jobs, service)
    assert told.stage is BackTestStage.DONE
    stored = drafts.list_drafts(service)[0]
    drafts.remove_draft(service, stored.id, 1, "ann")
    assert jobs.progress(stored.id) == BackTest()
