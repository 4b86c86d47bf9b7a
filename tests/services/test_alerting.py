"""Who is told of what, through the outbox and to a Slack on loopback; on both databases."""

from __future__ import annotations

import dataclasses
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.http_server import Asked, Told, serving
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from tests.slack import SECRET, TOKEN, FakeSlack, texts
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import Job
from torchtriage.domain.notice import OutboxItem, SendState
from torchtriage.errors import NotFound
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.explanation import EXPLAIN
from torchtriage.services.groups import change_group, list_groups
from torchtriage.services.incidents import forget_incident
from torchtriage.services.outbox_worker import OutboxWorker
from torchtriage.services.retriage import Retriage
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.slack_jobs import TAKE
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage.outbox import Wanted, put

UNEXPLAINED = b"""\
Traceback (most recent call last):
  File "/home/ann/train.py", line 42, in <module>
    frobnicate(batch)
RuntimeError: the frobnicator of layer 7 is out of tune
"""
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60  # seconds, for a busy machine
_numbers = itertools.count()


def settings(folder: Path, database_url: str, slack: FakeSlack, **more: Any) -> Settings:
    known: dict[str, Any] = {
        "slack_bot_token": TOKEN,
        "slack_channel": "C1",
        "slack_api_url": f"{slack.url}/api/",
        "slack_signing_secret": SECRET,
        "allow_private_calls": True,
    }
    return Settings(data_dir=folder, database_url=database_url, workers=0, **(known | more))


def opened(settings: Settings) -> Service:
    return open_service(settings, lambda *_: None, working=False)


@pytest.fixture
def service(tmp_path: Path, database_url: str, slack: FakeSlack) -> Iterator[Service]:
    made = opened(settings(tmp_path, database_url, slack))
    yield made
    close_service(made)


def failed(service: Service, log: bytes = OUT_OF_MEMORY, **job: Any) -> str:
    """Returns the id of a failed run that was triaged."""
    job = {"job_id": f"job-{next(_numbers)}"} | job
    incident = accept(service, Job(**job), [upload(log)]).incident_id
    triage_incident(service, incident)
    return incident


def sent(service: Service, hours: float = 0) -> int:
    """Sends all that is due now, or in so many hours -> how much that was."""
    count = 0
    while True:
        # What a pace or a pause holds up is due then too.
        now = datetime.now(UTC) + timedelta(hours=hours, seconds=60 * (count + 1))
        if not outbox.send_one(service, now):
            return count
        count += 1


def states(service: Service) -> list[tuple[str, str]]:
    return [(item.kind, item.state.value) for item in reversed(outbox.list_outbox(service).items)]


def group_of(service: Service) -> str:
    (group,) = list_groups(service, GroupFilter()).items
    return group.id


def test_a_new_group_is_alerted_once_and_repeats_update_its_message(service: Service, slack: FakeSlack) -> None:
    failed(service, job_name="llama", user="ann")
    sent(service)
    (first,) = slack.messages
    assert "New failure: The GPU ran out of memory" in texts(first.payload)
    assert "job llama" in texts(first.payload)
    assert "torch.OutOfMemoryError: CUDA out of memory" in texts(first.payload)
    for _ in range(4):
        failed(service)
    assert sent(service) == 1  # four repeats are one
    assert (len(slack.messages), first.updates) == (1, 1)
    assert "seen 5 times, 5 in 7 days" in texts(first.payload)
    assert "job llama" in texts(first.payload)


def test_healthy_runs_are_not_alerted_and_unexplained_ones_only_if_configured(
    tmp_path: Path, database_url: str, slack: FakeSlack
) -> None:
    service = opened(settings(tmp_path, database_url, slack))
    failed(service, HEALTHY)
    assert sent(service) == 0
    failed(service, UNEXPLAINED)
    sent(service)
    assert "the frobnicator of layer 7 is out of tune" in texts(slack.messages[0].payload)
    silent = dataclasses.replace(service, settings=dataclasses.replace(service.settings, alert_unexplained=False))
    failed(silent, UNEXPLAINED.replace(b"frobnicator", b"resonator"))
    assert sent(silent) == 0
    close_service(service)


def test_a_reopened_group_is_alerted_in_its_thread(service: Service, slack: FakeSlack) -> None:
    failed(service)
    sent(service)
    change_group(service, group_of(service), GroupChange(status=GroupStatus.RESOLVED), "ann")
    sent(service)
    assert "resolved" in texts(slack.messages[0].payload)
    failed(service)
    sent(service)
    first, second = slack.messages
    assert second.thread == first.ts
    assert "Regressed after it was resolved" in texts(second.payload)
    assert "resolved" not in texts(first.payload)


def test_each_threshold_is_alerted_once(tmp_path: Path, database_url: str, slack: FakeSlack) -> None:
    service = opened(settings(tmp_path, database_url, slack, alert_counts=(3, 4), alert_gpu_hours=(1000,)))
    for _ in range(6):
        failed(service)
        sent(service)
    hours: dict[str, Any] = {"started_at": "2026-05-01T00:00:00Z", "ended_at": "2026-05-02T00:00:00Z", "gpus": 64}
    failed(service, **hours)
    failed(service, **hours)
    sent(service)
    told = [message.payload["text"].split(" · ")[0] for message in slack.messages[1:]]
    assert told == [
        "Seen 3 times: The GPU ran out of memory",
        "Seen 4 times: The GPU ran out of memory",
        "1,000 GPU hours lost: The GPU ran out of memory",
    ]
    close_service(service)


def test_a_muted_or_ignored_group_only_counts(service: Service, slack: FakeSlack) -> None:
    failed(service)
    sent(service)
    group = group_of(service)
    change_group(service, group, GroupChange(mute=timedelta(days=7)), "ann")
    for _ in range(12):
        failed(service)
    sent(service)
    assert len(slack.messages) == 1
    assert "muted until" in texts(slack.messages[0].payload)
    change_group(service, group, GroupChange(status=GroupStatus.RESOLVED), "ann")
    failed(service)  # what comes back is told although it was muted
    sent(service)
    assert "Regressed after it was resolved" in texts(slack.messages[1].payload)
    change_group(service, group, GroupChange(status=GroupStatus.IGNORED), "ann")
    failed(service)
    sent(service)
    assert len(slack.messages) == 2


def test_rules_select_the_channels(tmp_path: Path, database_url: str, slack: FakeSlack) -> None:
    routes = tmp_path / "routes.toml"
    rules = """
[channels.vision]
kind = "slack"
channel = "C-vision"
[channels.hook]
kind = "slack-webhook"
url = "SLACK/services/T/B/x"
[[rules]]
when = {entry = "cuda.*", label = {team = "vision"}}
to = ["vision", "hook"]
[[rules]]
when = {owner = "hardware"}
to = []
[[rules]]
when = {cluster = ["blue", "green*"], user = "b*"}
to = ["hook"]
[[rules]]
to = ["slack"]
"""
    routes.write_text(rules.replace("SLACK", slack.url))
    service = opened(settings(tmp_path, database_url, slack, routes_file=routes))
    jobs: list[dict[str, Any]] = [{"labels": {"team": "vision"}}, {"cluster": "green-2", "user": "bob"}, {}]
    for number, job in enumerate(jobs):
        failed(service, UNEXPLAINED.replace(b"7", b"%d" % number) if number else OUT_OF_MEMORY, **job)
        failed(service, OUT_OF_MEMORY.replace(b"forward", b"backward%d" % number), **job)
    sent(service)
    told = sorted({(item.channel, item.kind) for item in outbox.list_outbox(service, limit=200).items})
    assert told == [("hook", "new"), ("slack", "new"), ("vision", "new")]
    assert {message.channel for message in slack.messages} == {"C-vision", "#alerts", "C1"}
    close_service(service)


def test_temporary_errors_are_retried_and_permanent_ones_given_up(service: Service, slack: FakeSlack) -> None:
    slack.limited, slack.wait = 1, 600
    failed(service)
    assert outbox.send_one(service)
    (item,) = outbox.list_outbox(service).items
    assert (item.state, item.tries) == (SendState.READY, 1)
    assert "ratelimited" in (item.problem or "")
    assert timedelta(seconds=500) < item.due_at - datetime.now(UTC) <= timedelta(seconds=600)
    failed(service, UNEXPLAINED)
    assert not outbox.send_one(service)  # the channel is left alone for as long as it asked
    slack.broken = 3
    sent(service, hours=1)
    assert sent(service, hours=24) >= 0
    assert [state for _, state in states(service)] == ["sent", "sent"]
    assert len(slack.messages) == 2
    slack.errors["C1"] = "channel_not_found"
    failed(service, UNEXPLAINED.replace(b"frobnicator", b"resonator"))
    sent(service, hours=48)
    (broken,) = outbox.list_outbox(service, SendState.FAILED).items
    assert "channel_not_found" in (broken.problem or "")
    assert outbox.count_outbox(service)[("slack", "failed")] == 1
    slack.errors.clear()
    outbox.send_again(service, broken.id, "ann")
    sent(service, hours=72)
    assert len(slack.messages) == 3
    with pytest.raises(NotFound):
        outbox.send_again(service, broken.id, "ann")


def test_an_item_that_never_succeeds_is_given_up_after_days(service: Service, slack: FakeSlack) -> None:
    failed(service)
    slack.broken = 10**6
    now, tries = datetime.now(UTC), 0
    while outbox.list_outbox(service, SendState.READY).items:
        (item,) = outbox.list_outbox(service, SendState.READY).items
        aged = dataclasses.replace(item, put_at=now - timedelta(days=4)) if tries == 20 else item
        claimed = outbox.claim(service, item.due_at + timedelta(minutes=2))
        assert claimed is not None
        outbox.work(service, dataclasses.replace(claimed, put_at=aged.put_at))
        tries += 1
    assert tries == 21
    assert states(service) == [("new", "failed")]


@pytest.mark.slow
def test_several_senders_lose_nothing_and_send_nothing_twice(service: Service, slack: FakeSlack) -> None:
    for number in range(20):
        failed(service, UNEXPLAINED.replace(b"frobnicator", b"part" + b"abcdefghijklmnopqrst"[number : number + 1] * 5))
    service.channels.senders["slack"].pace = 0.0

    def send() -> None:
        while outbox.list_outbox(service, SendState.READY).items:
            outbox.send_one(service)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(slack.messages) == 20
    assert outbox.count_outbox(service) == {("slack", "sent"): 20}


@pytest.mark.slow
def test_an_item_of_a_killed_process_is_sent_by_another(tmp_path: Path, database_url: str, slack: FakeSlack) -> None:
    service = opened(settings(tmp_path, database_url, slack))
    failed(service)
    program = (
        "import os, signal, sys\n"
        "from datetime import UTC, datetime\n"
        "from torchtriage.services import outbox\n"
        "from torchtriage.storage.database import Database\n"
        "from types import SimpleNamespace\n"
        "assert outbox.claim(SimpleNamespace(database=Database(sys.argv[1])), datetime.now(UTC))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, database_url], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not outbox.send_one(service)  # it may still be at it
    assert outbox.LEASE <= 30
    assert outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=outbox.LEASE + 1))
    assert len(slack.messages) == 1
    close_service(service)


def test_a_sender_that_lost_its_lease_changes_nothing(service: Service, slack: FakeSlack) -> None:
    failed(service)
    now = datetime.now(UTC)
    late = outbox.claim(service, now)
    assert late is not None
    assert outbox.send_one(service, now + timedelta(seconds=outbox.LEASE + 1))
    outbox.work(service, dataclasses.replace(late, channel="gone"))
    assert states(service) == [("new", "sent")]


def test_a_verdict_that_is_not_stored_is_not_alerted(service: Service, slack: FakeSlack) -> None:
    incident = accept(service, Job(), [upload(OUT_OF_MEMORY)]).incident_id
    forget_incident(service, incident, "ann")
    triage_incident(service, incident)
    assert outbox.list_outbox(service).items == ()
    again = failed(service)
    forget_incident(service, again, "ann")
    assert sent(service) == 0
    assert slack.messages == []


def test_a_retriage_alerts_nobody(service: Service, slack: FakeSlack) -> None:
    incident = failed(service)
    sent(service)
    with service.database.transaction() as session:
        session.execute(text("UPDATE incidents SET knowledge = 'older', entry = NULL"))
        session.execute(text("UPDATE incidents SET verdict = replace(cast(verdict AS text), 'cuda.oom', 'cuda.ooo')"
                             if service.database.is_sqlite else
                             "UPDATE incidents SET verdict = replace(verdict::text, 'cuda.oom', 'cuda.ooo')::json"))  # fmt: skip
    assert [difference.incident_id for difference in Retriage(service).change("ann")] == [incident]
    assert sent(service) == 0


def test_no_secret_of_a_log_is_sent(service: Service, slack: FakeSlack) -> None:
    secret = "hf_" + "a1B2" * 8
    log = UNEXPLAINED.replace(b"out of tune", f"out of tune {secret} password=hunter22hunter".encode())
    failed(service, log, user=f"ann {secret}", job_name=f"https://ann:{secret}@example.org")
    sent(service)
    payload = str(slack.messages[0].payload)
    assert "frobnicator" in payload
    assert secret not in payload
    assert "hunter22" not in payload


def test_old_items_are_deleted(service: Service, slack: FakeSlack) -> None:
    failed(service)
    sent(service)
    assert outbox.forget_sent(service) == 0
    assert outbox.forget_sent(service, datetime.now(UTC) + timedelta(days=31)) == 1


def test_a_test_message_says_whether_a_channel_works(service: Service, slack: FakeSlack) -> None:
    outbox.send_test(service, "slack", "ann")
    assert "torchtriage can post here" in texts(slack.messages[0].payload)
    with pytest.raises(NotFound):
        outbox.send_test(service, "nowhere", "ann")


def test_without_channels_the_outbox_stays_empty(tmp_path: Path, database_url: str) -> None:
    service = opened(Settings(data_dir=tmp_path, database_url=database_url, workers=0))
    failed(service)
    assert outbox.list_outbox(service).items == ()
    outbox_worker = OutboxWorker(service, pause=0.05)
    outbox_worker.start()
    outbox_worker.stop()
    close_service(service)


def test_the_outbox_worker_sends_by_itself_and_stops(service: Service, slack: FakeSlack) -> None:
    outbox_worker = OutboxWorker(service, pause=0.05)
    outbox_worker.start()
    failed(service)
    while not slack.messages or outbox.list_outbox(service, SendState.READY).items:
        assert threading.active_count()
    outbox_worker.stop()
    assert states(service) == [("new", "sent")]


@dataclasses.dataclass
class Receivers:
    """Receivers of webhooks on loopback: `/hang/…` does not answer before it is told to, the others do."""

    url: str = ""
    asked: list[str] = dataclasses.field(default_factory=list)
    go_on: threading.Event = dataclasses.field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Told:
        self.asked.append(asked.path)
        if asked.path.startswith("/hang/"):
            self.go_on.wait(TIMEOUT)
        return Told(b"{}")

    def routes(self, folder: Path, *names: str) -> dict[str, Any]:
        """Returns the settings with which all alerts go to these paths, in their order."""
        channels = [
            f'[channels.{name.replace("/", "-")}]\nkind = "webhook"\nurl = "{self.url}/{name}"' for name in names
        ]
        (folder / "routes.toml").write_text("\n".join(channels))
        return {"routes_file": folder / "routes.toml", "slack_bot_token": "", "slack_channel": ""}


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    made = Receivers()
    with serving(made.answer) as made.url:
        yield made
        made.go_on.set()


@contextmanager
def posting(service: Service) -> Iterator[OutboxWorker]:
    outbox_worker = OutboxWorker(service, pause=0.05)
    outbox_worker.start()
    try:
        yield outbox_worker
    finally:
        outbox_worker.stop()


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_receivers_that_hang_block_no_other(
    tmp_path: Path, database_url: str, slack: FakeSlack, receivers: Receivers
) -> None:
    routes = receivers.routes(tmp_path, *(f"hang/{number}" for number in range(6)), "well")
    service = opened(settings(tmp_path, database_url, slack, **routes))
    with posting(service):
        for log in (OUT_OF_MEMORY, UNEXPLAINED):  # of which the second waits behind the first where that hangs
            failed(service, log)
        wait_until(lambda: receivers.asked.count("/well") == 2 and len(set(receivers.asked)) == 6 + 1)
        hanging = [item for item in outbox.list_outbox(service).items if item.channel != "well"]
        assert {(item.state, item.problem) for item in hanging} == {(SendState.READY, None)}  # none has given up yet
        assert len(receivers.asked) == 6 + 2
        receivers.go_on.set()
    close_service(service)


def test_work_without_a_lane_blocks_no_other_kind(service: Service) -> None:
    with service.database.transaction() as session:
        for kind in (*[EXPLAIN] * 9, *[TAKE] * 9):
            put(session, Wanted(f"{kind} {next(_numbers)}", kind, "x"), datetime.now(UTC))
    hanging, go_on = Counter[str](), threading.Event()

    def hang(item: OutboxItem) -> None:
        hanging[item.kind] += 1
        go_on.wait(TIMEOUT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torchtriage.services.outbox_worker.work", lambda _, item, *__: hang(item))
        with posting(service):
            wait_until(lambda: hanging == {EXPLAIN: 4, TAKE: 4})
            go_on.set()


def test_work_longer_than_a_lease_stays_with_its_process(
    tmp_path: Path, database_url: str, slack: FakeSlack, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchtriage.services.outbox_worker._KEEP", timedelta(seconds=0.2))
    service = opened(settings(tmp_path, database_url, slack, **receivers.routes(tmp_path, "hang/1")))
    failed(service)
    with posting(service) as outbox_worker:
        wait_until(lambda: receivers.asked)
        stopping = threading.Thread(target=outbox_worker.stop)
        for ending in (False, True):  # also while it waits for it to end
            if ending:
                stopping.start()
            for _ in range(3):  # of which the last is of the end
                assert outbox.claim(service, renewed(service)) is None
        receivers.go_on.set()
        stopping.join()
    assert (receivers.asked, states(service)) == (["/hang/1"], [("new", "sent")])
    close_service(service)


def due(service: Service) -> datetime:
    """Returns when the one item may be taken by another."""
    (item,) = outbox.list_outbox(service).items
    return item.due_at


def renewed(service: Service) -> datetime:
    """Waits until the one item is kept from others for longer -> until when it was before."""
    before = due(service)
    wait_until(lambda: due(service) > before)
    return before


class Clock(datetime):
    """A clock that can be set."""

    behind = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - cls.behind


@pytest.mark.slow
@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=400)])
def test_a_clock_that_goes_back_silences_no_channel(
    tmp_path: Path,
    database_url: str,
    slack: FakeSlack,
    receivers: Receivers,
    monkeypatch: pytest.MonkeyPatch,
    back: timedelta,
) -> None:
    for module in ("outbox_worker", "outbox", "alerting"):
        monkeypatch.setattr(f"torchtriage.services.{module}.datetime", Clock)
    service = opened(settings(tmp_path, database_url, slack, **receivers.routes(tmp_path, "hang/1", "well")))
    service.channels.senders["well"].pace = 3.0
    logs = [UNEXPLAINED.replace(b"frobnicator", name * 5) for name in (b"abc", b"def", b"ghi")]
    monkeypatch.setattr(Clock, "behind", timedelta())
    with posting(service):
        failed(service, logs[0])
        wait_until(lambda: sorted(receivers.asked) == ["/hang/1", "/well"])
        failed(service, logs[1])  # it waits behind the first: there for its end, here for the pace
        monkeypatch.setattr(Clock, "behind", back)
        failed(service, logs[2])
        wait_until(lambda: receivers.asked.count("/well") == 3)
        assert receivers.asked.count("/hang/1") == 1  # it is still being sent, and by nobody else
        receivers.go_on.set()
        wait_until(lambda: receivers.asked.count("/hang/1") == 3)
        wait_until(lambda: not outbox.list_outbox(service, SendState.READY).items)
    assert len(receivers.asked) == 6
    close_service(service)


def test_an_item_that_fails_after_a_clock_went_back_waits_for_its_next_try(
    service: Service, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(service)
    slack.broken = 2
    monkeypatch.setattr("torchtriage.services.outbox.datetime", Clock)
    monkeypatch.setattr(Clock, "behind", timedelta(days=400))
    past = Clock.now(UTC)
    assert outbox.send_one(service, past)
    (item,) = outbox.list_outbox(service).items
    assert (item.tries, item.state) == (1, SendState.READY)
    assert item.put_at == past  # so that it is given up in time, and is not due at once
    assert not outbox.send_one(service, past)


def test_an_item_names_its_incident_and_group(service: Service) -> None:
    incident = failed(service)
    (item,) = outbox.list_outbox(service).items
    assert isinstance(item, OutboxItem)
    assert (item.incident, item.group, item.channel) == (incident, group_of(service), "slack")
