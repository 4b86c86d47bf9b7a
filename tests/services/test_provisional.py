"""Reports of runs that have not ended, and what replaces them; on both databases."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from tests.slack import TOKEN, FakeSlack, texts
from torchtriage.domain.group import GroupFilter
from torchtriage.domain.incident import Incident, Job, State
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.decisions import decide_about, list_decisions
from torchtriage.services.groups import list_groups
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import order_of, triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import daily_counts
from torchtriage.storage.decisions import DecisionFilter

HANGS = b"step 1 loss 2.5\nstep 2 loss 2.4\ntorchtriage watch: no output for 95 s (limit 90 s); reached 2\n"
RUN: dict[str, Any] = {"job_id": "4711", "cluster": "blue", "user": "ann"}


@pytest.fixture
def service(tmp_path: Path, database_url: str, slack: FakeSlack) -> Iterator[Service]:
    known: dict[str, Any] = {"slack_bot_token": TOKEN, "slack_channel": "C1", "slack_api_url": f"{slack.url}/api/"}
    settings = Settings(
        data_dir=tmp_path,
        database_url=database_url,
        workers=0,
        slack_signing_secret="s",
        allow_private_calls=True,
        **known,
    )
    opened = open_service(settings, lambda *_: None, working=False)
    yield opened
    close_service(opened)


def reported(service: Service, log: bytes, provisional: bool | None, **job: Any) -> Incident:
    """Returns the incident, triaged."""
    accepted = accept(service, Job(**(RUN | job), provisional=provisional), [upload(log)])
    triage_incident(service, accepted.incident_id)
    return read_incident(service, accepted.incident_id)


def sent(service: Service) -> None:
    for minutes in range(1, 60):
        if not outbox.send_one(service, datetime.now(UTC) + timedelta(minutes=minutes)):
            return


def test_the_report_at_the_end_replaces_the_provisional_one(service: Service) -> None:
    first = reported(service, HANGS, True)
    assert (first.entry, first.verdict and first.verdict.provisional) == ("perf.hang", True)
    assert first.job.to_json()["provisional"] is True
    last = reported(service, OUT_OF_MEMORY, False)
    assert last.id == first.id
    assert (last.entry, last.verdict and last.verdict.provisional) == ("cuda.oom", False)
    assert last.log.bytes == len(OUT_OF_MEMORY)
    (group,) = list_groups(service, GroupFilter()).items
    assert (group.entry, group.count) == ("cuda.oom", 1)
    with service.database.reading() as session:
        assert daily_counts.of_entry(session, "perf.hang", date(2020, 1, 1))[0] == 0
        assert daily_counts.of_entry(session, "cuda.oom", date(2020, 1, 1))[0] == 1
        found = session.execute(text("SELECT count(*) FROM incident_files")).scalar()
        assert found == 1


def test_a_run_that_hangs_twice_is_one_incident(service: Service) -> None:
    first = reported(service, HANGS, True)
    second = reported(service, HANGS.replace(b"95", b"300"), True)
    (group,) = list_groups(service, GroupFilter()).items
    assert (second.id, group.count) == (first.id, 1)


def test_a_provisional_run_that_ends_successfully_is_healthy(service: Service) -> None:
    first = reported(service, HANGS, True)
    last = reported(service, HEALTHY, False, exit_code=0)
    assert (last.id, last.verdict and last.verdict.outcome, last.group) == (first.id, "healthy", None)
    assert not list_groups(service, GroupFilter()).items


@pytest.mark.parametrize(
    "other", [{"node_rank": 1}, {"attempt": 1}, {"cluster": "red"}, {"user": "bob"}, {"job_id": "4712"}]
)
def test_another_run_replaces_nothing(service: Service, other: dict[str, Any]) -> None:
    first = reported(service, HANGS, True)
    assert reported(service, OUT_OF_MEMORY, False, **other).id != first.id


def test_a_report_that_is_not_marked_replaces_nothing(service: Service) -> None:
    first = reported(service, HANGS, True)
    assert reported(service, OUT_OF_MEMORY, None).id != first.id


def test_a_final_report_is_not_replaced(service: Service) -> None:
    first = reported(service, OUT_OF_MEMORY, False)
    assert reported(service, HANGS, True).id != first.id
    again = accept(service, Job(**RUN, provisional=False), [upload(OUT_OF_MEMORY)])
    assert (again.incident_id, again.new) == (first.id, False)


def test_a_late_verdict_on_the_provisional_log_is_dropped(service: Service) -> None:
    """The run ends while its provisional report is triaged."""
    first = accept(service, Job(**RUN, provisional=True), [upload(HANGS)]).incident_id
    engine = service.triager

    class Slow:
        def run(self, order: Any) -> Any:
            found = engine.run(order)
            accept(service, Job(**RUN, provisional=False), [upload(OUT_OF_MEMORY)])
            return found

    slow: Any = Slow()
    triage_incident(dataclasses.replace(service, triager=slow), first)
    assert read_incident(service, first).state is State.RECEIVED
    triage_incident(service, first)
    assert read_incident(service, first).entry == "cuda.oom"


def test_a_decision_is_graded_by_how_the_next_attempt_ends(service: Service) -> None:
    decided = decide_about(service, reported(service, OUT_OF_MEMORY, None, attempt=0).id, "ann")
    assert decided.grade is None
    reported(service, HANGS, True, attempt=1)
    assert list_decisions(service, DecisionFilter()).items[0].grade is None
    last = reported(service, HEALTHY, False, attempt=1, exit_code=0)
    (graded,) = list_decisions(service, DecisionFilter()).items
    assert (graded.grade is not None, graded.graded_by) == (True, last.id)


@pytest.mark.parametrize("last", [OUT_OF_MEMORY, HANGS.replace(b"95", b"300")])
def test_slack_is_alerted_once(service: Service, slack: FakeSlack, last: bytes) -> None:
    reported(service, HANGS, True)
    sent(service)
    (message,) = slack.messages
    assert "(provisional: the job still runs)" in texts(message.payload)
    reported(service, last, False)
    sent(service)
    assert len(slack.messages) == 1
    assert "provisional" not in texts(message.payload)


def test_retriage_keeps_the_provisional_mark(service: Service) -> None:
    first = reported(service, HANGS, True)
    assert service.triager.run(order_of(first.log, first.job)).verdict.provisional
    assert not service.triager.run(
        order_of(first.log, dataclasses.replace(first.job, provisional=False))
    ).verdict.provisional
