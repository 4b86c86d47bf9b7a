"""Nodes that report for themselves: what joins one incident, and whom that alerts; on both databases."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.services.logs import OUT_OF_MEMORY, upload
from tests.slack import TOKEN, FakeSlack, texts
from torchtriage.domain.group import GroupFilter
from torchtriage.domain.incident import Incident, IncidentFilter, Job, State
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.alerting import NODES
from torchtriage.services.decisions import decide_about
from torchtriage.services.groups import list_groups
from torchtriage.services.incidents import list_incidents, read_incident
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

PEER = b"""step 1 loss 2.5
[rank0]: Traceback (most recent call last):
[rank0]:   File "/job/train.py", line 11, in <module>
[rank0]:     dist.all_reduce(loss)
[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.4.8]:41177
"""
HANGS = b"step 1 loss 2.5\nstep 2 loss 2.4\ntorchtriage watch: no output for 95 s (limit 90 s); reached 2\n"
RUN: dict[str, Any] = {"job_id": "4711", "cluster": "blue", "user": "ann", "nodes": 2, "gpus": 8}
FROM, TO = "2026-05-01T09:00:00Z", "2026-05-01T09:05:00Z"


@pytest.fixture
def service(tmp_path: Path, database_url: str, slack: FakeSlack) -> Iterator[Service]:
    known: dict[str, Any] = {"slack_bot_token": TOKEN, "slack_channel": "C1", "slack_api_url": f"{slack.url}/api/"}
    settings = Settings(
        data_dir=tmp_path, database_url=database_url, workers=0, allow_private_calls=True, **known
    )  # fmt: skip
    opened = open_service(settings, lambda *_: None, working=False)
    yield opened
    close_service(opened)


def job(rank: int, **told: Any) -> Job:
    return Job(**(RUN | {"node_rank": rank, "labels": {"host": f"gpu-02{rank}"}} | told))


def reported(service: Service, rank: int, log: bytes, at: datetime | None = None, **told: Any) -> Incident:
    """Returns the incident, triaged, after a node's report."""
    accepted = accept(service, job(rank, **told), [upload(log)], at)
    triage_incident(service, accepted.incident_id)
    return read_incident(service, accepted.incident_id)


def send_all(service: Service, after: float) -> None:
    while outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=after)):
        pass


@pytest.mark.parametrize("logs", [(PEER, OUT_OF_MEMORY), (OUT_OF_MEMORY, PEER)])
def test_two_nodes_are_one_incident_in_either_order(service: Service, logs: tuple[bytes, bytes]) -> None:
    first = reported(service, 0, logs[0], started_at=FROM, ended_at=TO, exit_code=1)
    assert first.job.awaits_nodes
    second = reported(service, 1, logs[1], started_at=FROM, ended_at="2026-05-01T09:06:00Z", exit_code=1)
    assert (second.id, second.entry, second.log.bytes) == (first.id, "cuda.oom", len(PEER) + len(OUT_OF_MEMORY))
    told = second.job
    assert (told.gpus, told.ended_at, told.node_rank, told.awaits_nodes) == (16, "2026-05-01T09:06:00Z", None, False)
    assert (list(told.reports), told.labels) == (["0", "1"], {"host": "gpu-020,gpu-021"})
    (group,) = list_groups(service, GroupFilter()).items
    assert (group.entry, group.count) == ("cuda.oom", 1)


def test_a_report_that_is_sent_again_changes_nothing(service: Service) -> None:
    first = reported(service, 0, PEER)
    reported(service, 1, OUT_OF_MEMORY)
    for rank, log in ((0, PEER), (1, OUT_OF_MEMORY)):
        again = accept(service, job(rank), [upload(log)])
        assert (again.incident_id, again.new, again.incident.job.reported_nodes) == (first.id, False, 2)


def test_files_with_the_same_name_get_different_names(service: Service) -> None:
    reported(service, 0, PEER)
    files = reported(service, 1, OUT_OF_MEMORY).log.files
    assert [file.name for file in files] == [files[0].name, f"node-1/{files[0].name}"]


def test_nodes_that_report_at_the_same_moment_are_one_incident(service: Service) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda rank: accept(service, job(rank, nodes=8), [upload(PEER + b"%d\n" % rank)]), range(8))
        )
    assert len({one.incident_id for one in found}) == 1
    triage_incident(service, found[0].incident_id)
    assert read_incident(service, found[0].incident_id).job.reported_nodes == 8


@pytest.mark.parametrize(
    "other",
    [
        {"attempt": 1},
        {"cluster": "red"},
        {"user": "bob"},
        {"job_id": "4712"},
        {"nodes": None},
        {"nodes": 1},
        {"started_at": "2026-05-01T09:05:30Z", "ended_at": "2026-05-01T09:09:00Z"},
        {"labels": {"host": "gpu-021", "step": "1"}},
    ],
)
def test_another_run_is_another_incident(service: Service, other: dict[str, Any]) -> None:
    known: dict[str, Any] = {"started_at": FROM, "ended_at": TO, "labels": {"host": "gpu-020", "step": "0"}}
    first = reported(service, 0, PEER, **known)
    assert reported(service, 1, OUT_OF_MEMORY, **(known | other)).id != first.id


def test_a_node_that_fails_again_begins_the_next_incident(service: Service) -> None:
    first = reported(service, 0, PEER)
    reported(service, 1, OUT_OF_MEMORY)
    second = reported(service, 1, PEER + b"again\n")
    assert second.id != first.id
    assert reported(service, 0, PEER + b"more\n").id == second.id


def test_a_node_that_comes_too_late_is_another_incident(service: Service) -> None:
    now = datetime.now(UTC)
    first = reported(service, 0, PEER, now - timedelta(seconds=service.settings.join_seconds + 1))
    assert reported(service, 1, OUT_OF_MEMORY, now).id != first.id


def test_it_can_be_turned_off(service: Service) -> None:
    alone = dataclasses.replace(service, settings=dataclasses.replace(service.settings, join_seconds=0))
    assert reported(alone, 0, PEER).id != reported(alone, 1, OUT_OF_MEMORY).id


def test_nodes_without_a_rank_are_distinguished_by_host(service: Service) -> None:
    first = reported(service, 0, PEER, node_rank=None)
    assert reported(service, 1, OUT_OF_MEMORY, node_rank=None).id == first.id


def test_each_node_replaces_its_own_provisional_report(service: Service) -> None:
    first = reported(service, 0, HANGS, provisional=True)
    second = reported(service, 1, HANGS.replace(b"95", b"96"), provisional=True)
    assert (second.id, second.job.provisional) == (first.id, True)
    third = reported(service, 0, PEER, provisional=False)
    assert (third.id, third.job.provisional) == (first.id, False)
    last = reported(service, 1, OUT_OF_MEMORY, provisional=False)
    assert (last.id, last.entry, last.log.bytes) == (first.id, "cuda.oom", len(PEER) + len(OUT_OF_MEMORY))
    assert last.job.gpus == 16


def test_a_verdict_older_than_the_last_report_is_made_again(service: Service) -> None:
    """The other node reports while the first one's log is triaged; the queue has the incident once more then."""
    first = accept(service, job(0), [upload(PEER)]).incident_id
    engine, came = service.triager, list[str]()

    class Slow:
        def run(self, order: Any) -> Any:
            found = engine.run(order)
            if not came:
                came.append(accept(service, job(1), [upload(OUT_OF_MEMORY)]).incident_id)
            return found

    slow: Any = Slow()
    triage_incident(dataclasses.replace(service, triager=slow), first)
    assert (came, read_incident(service, first).state) == ([first], State.RECEIVED)
    triage_incident(service, first)
    assert read_incident(service, first).entry == "cuda.oom"


def test_one_alert_has_the_cause_that_the_second_node_reported(service: Service, slack: FakeSlack) -> None:
    reported(service, 0, PEER)
    send_all(service, 5)
    assert not slack.messages  # the other node may know more
    reported(service, 1, OUT_OF_MEMORY)
    send_all(service, 5)
    (message,) = slack.messages
    assert "GPU memory" in texts(message.payload) or "memory" in texts(message.payload)
    send_all(service, 3600)
    assert len(slack.messages) == 1


def test_people_are_alerted_after_a_while_if_a_node_never_reports(service: Service, slack: FakeSlack) -> None:
    reported(service, 0, PEER)
    send_all(service, NODES + 5)
    assert len(slack.messages) == 1
    reported(service, 1, OUT_OF_MEMORY)  # too late for the alert, whose message is corrected
    send_all(service, 3600)
    (message,) = slack.messages
    assert "memory" in texts(message.payload)


def test_no_alert_remains_about_a_group_that_proved_to_be_known(service: Service, slack: FakeSlack) -> None:
    reported(service, 0, OUT_OF_MEMORY, job_id="4700", nodes=None)
    send_all(service, 5)
    assert len(slack.messages) == 1
    reported(service, 0, PEER)
    reported(service, 1, OUT_OF_MEMORY)
    send_all(service, 3600)
    assert len(slack.messages) == 1
    assert len(list_incidents(service, IncidentFilter()).items) == 2


def test_attempts_of_joined_nodes_are_a_history(service: Service) -> None:
    now = datetime.now(UTC)
    reported(service, 0, PEER, now - timedelta(minutes=9))
    reported(service, 1, OUT_OF_MEMORY, now - timedelta(minutes=8))
    second = reported(service, 1, OUT_OF_MEMORY + b"again\n", now)
    assert decide_about(service, second.id, "ann").decision.attempt.attempt == 1
