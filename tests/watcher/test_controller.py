"""What the controller does with its folder: each place at which a watcher can end, and the next one that goes on."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.watcher.pods import Json, event, failed, of_job, of_pytorchjob, uid
from torchtriage.client.torchtriage_client import Settings
from torchtriage.watcher.attempt import Attempt, Wanted
from torchtriage.watcher.controller import Controller
from torchtriage.watcher.kubernetes_messages import pod_lines
from torchtriage.watcher.metrics import Counters
from torchtriage.watcher.options import Options
from torchtriage.watcher.pod import pod_of
from torchtriage.watcher.report import facts_of, write_report
from torchtriage.watcher.report_history import recall


class StandIn:
    """Workers that note what they were asked for."""

    def __init__(self) -> None:
        self.wanted: list[Wanted] = []
        self.packing: list[Attempt] = []

    def read(self, attempt: Attempt, wanted: Wanted) -> None:
        self.wanted.append(wanted)

    def pack(self, attempt: Attempt) -> None:
        self.packing.append(attempt)


class Table:
    """A controller on a folder, and what it asked for."""

    def __init__(self, folder: Path, **more: float) -> None:
        client = Settings("http://127.0.0.1:9", "", str(folder / "spool"), str(folder), 0, 1, 1 << 20, True, {}, [])
        self.options = Options(client, folder, quiet=0, **more)  # type: ignore[arg-type]
        self.workers, self.counters = StandIn(), Counters()
        self.memory = recall(folder / "reported.json")
        self.controller = Controller(self.options, self.memory, self.workers, self.counters)
        self.controller.recover()

    def answer(self, text: str = "a line\n") -> None:
        """Reads every log that was asked for."""
        wanted, self.workers.wanted = self.workers.wanted, []
        for each in wanted:
            (attempt,) = (attempt for attempt in self.controller.open if each.pod.uid in attempt.pods)
            part = attempt.path(each.pod, each.container, each.start).with_suffix(".part")
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text)
            self.controller.read(attempt, each, part, "", False)

    def close(self) -> Attempt:
        """Goes on until an attempt is to be packed."""
        for _ in range(4):
            self.controller.tick(time.time())
            self.answer()
        return self.workers.packing[-1]

    def bundles(self) -> list[str]:
        return sorted(path.name for path in self.options.spool.glob("*.bundle"))


def failing(name: str = "llama") -> Json:
    return failed(of_pytorchjob(name, 0)[0])


@pytest.mark.parametrize("after", ["packed", "closed", "moved", "noted"])
def test_a_watcher_that_ends_while_it_sends_a_report_sends_it_once(tmp_path: Path, after: str) -> None:
    table = Table(tmp_path)
    pod = pod_of(failing())
    table.controller.changed(pod)
    attempt = table.close()
    write_report(attempt, table.options.client, (), [])
    shutil.copytree(attempt.folder, tmp_path / "before")
    if after != "packed":
        table.controller.packed(attempt, "")
        table.controller.tick(time.time())
        (bundle,) = table.bundles()
        shutil.rmtree(attempt.folder, ignore_errors=True)
        shutil.copytree(tmp_path / "before", attempt.folder)
        told = json.loads((attempt.folder / "attempt.json").read_text()) | {"closed": True}
        (attempt.folder / "attempt.json").write_text(json.dumps(told))
        if after == "closed":
            (table.options.spool / bundle).unlink()
        else:
            (attempt.folder / "report.part").unlink()
        if after != "noted":
            (tmp_path / "reported.json").unlink()
    again = Table(tmp_path)
    again.controller.listed("", [pod])
    if after == "packed":
        write_report(again.close(), again.options.client, (), [])
        again.controller.packed(again.workers.packing[0], "")
        again.controller.tick(time.time())
    assert len(again.bundles()) == 1
    assert not again.controller.open
    assert not list(again.options.attempts.iterdir())


def test_attempts_of_a_job_are_counted_and_end_at_the_limit(tmp_path: Path) -> None:
    table = Table(tmp_path, most_reports=3)
    numbers = []
    for number in range(5):
        table.controller.changed(pod_of(failed(of_job("loop", 0, created=number), when=300 + number)))
        before = len(table.workers.packing)
        for _ in range(3):
            table.controller.tick(time.time())
            table.answer()
        for attempt in table.workers.packing[before:]:
            write_report(attempt, table.options.client, (), [])
            numbers.append(attempt.number)
            table.controller.packed(attempt, "")
            table.controller.tick(time.time())
    assert numbers == [0, 1, 2]
    assert table.counters.registry.get_sample_value("torchtriage_watcher_reports_total", {"outcome": "skipped"}) == 2


def test_pods_of_one_job_and_index_that_failed_while_nobody_watched_are_attempts_of_their_own(tmp_path: Path) -> None:
    table = Table(tmp_path)
    first, second = failed(of_job("sweep", 3), when=300), failed(of_job("sweep", 3, created=310), when=400)
    peer = of_job("sweep", 0)
    table.controller.listed("", [pod_of(each) for each in (second, peer, first)])
    assert sorted((attempt.number, len(attempt.pods)) for attempt in table.controller.open) == [(0, 2), (1, 1)]


def test_an_unreadable_log_is_requested_again_and_then_reported(tmp_path: Path) -> None:
    table = Table(tmp_path)
    told = failing()
    told["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = "last words"
    table.controller.changed(pod_of(told))
    asked = 0
    while table.workers.wanted:
        wanted = table.workers.wanted.pop()
        asked += 1
        table.controller.read(table.controller.open[0], wanted, tmp_path / "no.part", "502 Bad Gateway", True)
        table.controller.tick(time.time())
    assert asked == 5
    attempt = table.workers.packing[0] if table.workers.packing else table.close()
    said = pod_lines(attempt, next(iter(attempt.pods.values())), [])
    assert "no log, 502 Bad Gateway" in said
    assert "last words" in said


def test_a_folder_that_can_not_be_read_is_left(tmp_path: Path) -> None:
    (tmp_path / "attempts" / "x").mkdir(parents=True)
    (tmp_path / "attempts" / "x" / "attempt.json").write_text("{")
    assert Table(tmp_path).controller.open == []


def test_what_kubernetes_says_is_in_order_and_only_of_the_time_in_which_the_pod_ran(tmp_path: Path) -> None:
    table = Table(tmp_path)
    pod = pod_of(told := failed(of_pytorchjob("llama", 0)[0], 139))
    table.controller.changed(pod)
    (attempt,) = table.controller.open
    events = [
        event(told, "BackOff", "Back-off restarting failed container", 310),
        event(told, "Unhealthy", "Readiness probe failed", 299),
        event(told, "FailedScheduling", "0/8 nodes are available", -60),
        event(told, "Pulled", "Successfully pulled image", 1, "Normal"),
        event(told, "Killing", "Stopping container pytorch", 301, "Normal"),
    ]
    lines = pod_lines(attempt, pod, events).splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        "pod ml/llama-master-0 on node gpu-1, PyTorchJob ml/llama attempt 0",
        "event Warning  Unhealthy  kubelet  Readiness probe failed",
        "container pytorch terminated with signal SIGSEGV: reason: Error, exit code: 139",
        "event Normal  Killing  kubelet  Stopping container pytorch",
    ]


def test_a_report_has_the_facts_of_its_job(tmp_path: Path) -> None:
    table = Table(tmp_path)
    one, two = of_pytorchjob("llama", 1)
    table.controller.changed(pod_of(failed(one, 1, when=299)))
    table.controller.changed(pod_of(failed(two, 137, "OOMKilled", 300)))
    facts, labels = facts_of(table.controller.open[0], ("owner",))
    assert facts["job_id"] == uid("kubeflow.org/v1", "PyTorchJob", "llama")
    assert (facts["state"], facts["exit_code"], facts["gpus"]) == ("OOMKilled", "137", "16")
    assert "pod:llama-worker-0" in labels
