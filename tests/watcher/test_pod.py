from __future__ import annotations

import copy

from tests.watcher.pods import Json, at, evicted, failed, leaving, of_pytorchjob, pod, restarted, terminated
from torchtriage.watcher.pod import Ending, pod_of

RUNNING = of_pytorchjob("llama", 0)[0]


def endings(told: Json) -> list[tuple[str, int, str, int | None]]:
    return [(end.container, end.start, end.reason, end.exit_code) for end in pod_of(told).endings()]


def test_a_container_that_failed() -> None:
    assert endings(RUNNING) == endings(failed(RUNNING, 0, "Completed")) == []
    assert endings(failed(RUNNING, 1)) == [("pytorch", 0, "Error", 1)]
    assert endings(failed(RUNNING, 137, "OOMKilled")) == [("pytorch", 0, "OOMKilled", 137)]


def test_starts_are_counted_whatever_state_the_next_one_is_in() -> None:
    again = restarted(RUNNING, 1, 300)
    assert endings(again) == [("pytorch", 0, "Error", 1)]
    twice = restarted(again, 2, 400)
    assert endings(twice) == [("pytorch", 1, "Error", 2)]
    waiting = copy.deepcopy(again)  # ended a second time, and waits to be started a third time
    status = waiting["status"]["containerStatuses"][0]
    status |= {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
               "lastState": {"terminated": terminated(2, "Error", 400)}}  # fmt: skip
    assert endings(waiting) == [("pytorch", 1, "Error", 2)]


def test_a_pod_that_was_taken_away_and_not_its_containers() -> None:
    message = "The node was low on resource: memory."
    (end,) = pod_of(evicted(RUNNING, 300, message)).endings()
    uid = RUNNING["metadata"]["uid"]
    assert end == Ending(uid, "", 0, "Evicted", message, None, at(300))
    preempted = leaving(failed(RUNNING, 143), 290)
    preempted["status"]["conditions"].append(
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "lastTransitionTime": at(289),
         "message": "default-scheduler: preempting to accommodate a higher priority pod"})  # fmt: skip
    assert endings(preempted) == [("", 0, "PreemptionByScheduler", None)]
    rejected = copy.deepcopy(RUNNING)
    rejected["status"] |= {"phase": "Failed", "reason": "UnexpectedAdmissionError", "containerStatuses": []}
    assert endings(rejected) == [("", 0, "UnexpectedAdmissionError", None)]


def test_what_was_deleted_did_not_fail_unless_it_had_before() -> None:
    assert endings(leaving(failed(RUNNING, 143, when=295), 290)) == []
    assert endings(leaving(failed(RUNNING, 137, when=320), 290)) == []
    assert endings(leaving(failed(RUNNING, 143, when=280), 290)) == [("pytorch", 0, "Error", 143)]
    assert endings(leaving(failed(RUNNING, 137, "OOMKilled", when=295), 290)) == [("pytorch", 0, "OOMKilled", 137)]
    assert endings(leaving(failed(RUNNING, 1, when=295), 290)) == [("pytorch", 0, "Error", 1)]


def test_a_container_that_prepares_the_pod() -> None:
    told = copy.deepcopy(RUNNING)
    status = {
        **told["status"]["containerStatuses"][0],
        "name": "fetch-data",
        "state": {"terminated": terminated(2, "Error", 9)},
    }
    told["status"] |= {"initContainerStatuses": [status], "containerStatuses": [], "phase": "Pending"}
    assert endings(told) == [("fetch-data", 0, "Error", 2)]
    status["state"] = {"terminated": terminated(0, "Completed", 9)}
    assert pod_of(told).containers == []


def test_gpus_of_every_maker_are_counted_once() -> None:
    told = pod("many", gpus=4)
    told["spec"]["containers"].append({"name": "second", "resources": {"limits": {"amd.com/gpu": "2", "cpu": "8"}}})
    told["spec"]["containers"].append({"name": "third", "resources": {"requests": {"huawei.com/Ascend910": 1}}})
    assert pod_of(told).gpus == 7


def test_no_secret_of_a_pod_is_kept() -> None:
    assert "secret" not in str(pod_of(RUNNING).raw)
    assert "managedFields" not in str(pod_of(RUNNING).raw)
