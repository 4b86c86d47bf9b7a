"""The watcher, the official client and the service, over HTTP: what happens in a cluster, and what is reported of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import serving as serving_triage
from tests.ports import kept_port
from tests.watcher.api_server import ApiServer
from tests.watcher.conftest import TIMEOUT, Bench, until
from tests.watcher.pods import (
    at,
    event,
    evicted,
    failed,
    leaving,
    of_job,
    of_jobset,
    of_pytorchjob,
    pod,
    restarted,
    uid,
)

pytestmark = pytest.mark.first  # its waiting costs nothing while others compute
Json = dict[str, Any]


def steps(rank: int, count: int = 30) -> str:
    return "".join(f"{at(n)[:-1]}.{rank:09}Z step {n} loss 2.{n} rank {rank}\n" for n in range(count))


def timed_out(rank: int) -> str:
    """Returns the log of a rank that waited for another."""
    lines = [
        f"[rank{rank}]:[E1120 09:15:21.000000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
        "600027 milliseconds before timing out.",
        f"[rank{rank}]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank {rank}.",
    ]
    return steps(rank) + "".join(f"{at(400)[:-1]}.{n:09}Z {line}\n" for n, line in enumerate(lines))


def raised(what: str, when: int = 300) -> str:
    lines = ["Traceback (most recent call last):", '  File "/job/train.py", line 42, in <module>', "    main()", what]
    return steps(0) + "".join(f"{at(when)[:-1]}.{n:09}Z {line}\n" for n, line in enumerate(lines))


def write(api: ApiServer, told: Json, text: str, start: int = 0) -> None:
    api.logs[(told["metadata"]["uid"], told["status"]["containerStatuses"][0]["name"], start)] = text


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.10 GiB is free."


def test_one_of_four_pods_of_a_pytorchjob_is_oom_killed(bench: Bench, api: ApiServer) -> None:
    pods = of_pytorchjob("llama", 3)
    for rank, each in enumerate(pods):
        write(api, each, steps(rank))
    api.apply(*pods)
    with bench.watching():
        write(api, pods[2], steps(2))
        api.apply(failed(pods[2], 137, "OOMKilled", 300))
        for rank in (0, 1, 3):
            write(api, pods[rank], timed_out(rank))
            api.apply(failed(pods[rank], 1, "Error", 401))
        (incident,) = bench.incidents(1)
    cause, job = incident["verdict"]["root_cause"], incident["job"]
    assert (cause["entry"], cause["host"], cause["rank"]) == ("k8s.oom-killed", "llama-worker-1", 2)
    assert {cascade["entry"] for cascade in incident["verdict"]["cascades"]} >= {"nccl.timeout"}
    known = {"job_id": uid("kubeflow.org/v1", "PyTorchJob", "llama"), "job_name": "llama", "scheduler": "kubernetes",
             "attempt": 0, "exit_code": 137, "state": "OOMKilled", "gpus": 32,
             "image": "registry.example.com/ml/train:2.6", "cluster": bench.name}  # fmt: skip
    assert {name: job[name] for name in known} == known
    assert job["labels"] == {
        "namespace": "ml", "kind": "PyTorchJob", "pod": "llama-worker-1", "node": "gpu-3", "pods": "4"}  # fmt: skip
    assert job["started_at"] < job["ended_at"]
    files = {file["name"] for file in bench.full(incident)["log"]["files"]}
    assert sum("/pytorch/0.log" in name for name in files) == 4


def test_each_restart_of_a_jobset_is_an_attempt(bench: Bench, api: ApiServer) -> None:
    first = of_jobset("sim", 0, 2, created=0)
    api.apply(*first)
    for each in first:
        write(api, each, steps(0))
    with bench.watching() as watcher:
        write(api, first[1], raised("ValueError: bad shard 17"))
        api.apply(failed(first[1]))
        until(lambda: watcher.counters.registry.get_sample_value("torchtriage_watcher_logs_total", {"outcome": "read"}))
        until(lambda: bench.handled(watcher, "packed") or _log_is_read(bench, first[0]))
        api.apply(leaving(first[0], 302))
        api.delete(leaving(first[0], 302), failed(first[1]))
        second = of_jobset("sim", 1, 2, created=310)
        for each in second:
            write(api, each, raised(OOM, 320))
        api.apply(*second)
        bench.incidents(1)
        api.apply(*(failed(each, when=330) for each in second))
        zero, one = bench.incidents(2)
    assert [(each["job"]["attempt"], each["job"]["job_id"]) for each in (zero, one)] == [
        (0, uid("jobset", "sim")), (1, uid("jobset", "sim"))]  # fmt: skip
    assert zero["job"]["queue"] == "team-a"
    assert "bad shard" in zero["verdict"]["root_cause"]["exception"]["message"]
    assert zero["verdict"]["root_cause"]["host"] == first[1]["metadata"]["name"]
    assert one["verdict"]["root_cause"]["entry"] == "cuda.oom"
    names = {file["name"] for file in bench.full(zero)["log"]["files"]}
    assert sum("/trainer/0.log" in name for name in names) == 2, "the other pod's log was read before it went away"


def _log_is_read(bench: Bench, told: Json) -> bool:
    return any((bench.folder / "data" / "attempts").rglob(f"*_{told['metadata']['name']}_*/*/0.log"))


def _saved(bench: Bench) -> Json:
    """Returns the logs that an open attempt's folder is known to hold."""
    told = [json.loads(path.read_text()) for path in (bench.folder / "data" / "attempts").rglob("attempt.json")]
    return told[0]["read"] if told else {}


@pytest.mark.slow
def test_an_indexed_job_that_starts_its_failed_pod_again(bench: Bench, api: ApiServer) -> None:
    peer, early = of_job("sweep", 0), of_job("sweep", 3)
    write(api, peer, steps(0))
    write(api, early, raised("KeyError: 'lr'"))
    api.apply(peer, early)
    with bench.watching(settle=1.5):
        api.apply(failed(early))
        bench.incidents(1)
        late = of_job("sweep", 3, created=310)
        write(api, late, raised(OOM, 350))
        api.apply(late)
        api.apply(failed(late, when=351))
        zero, one = bench.incidents(2)
    assert [zero["job"]["attempt"], one["job"]["attempt"]] == [0, 1]
    assert zero["verdict"]["root_cause"]["exception"]["type"] == "KeyError"
    assert one["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert one["job"]["labels"]["pod"] == late["metadata"]["name"]


def test_a_container_that_is_started_again_in_its_pod(bench: Bench, api: ApiServer) -> None:
    told = pod("solo-0", ("kubeflow.org/v1", "PyTorchJob", "solo"))
    api.apply(told)
    with bench.watching():
        write(api, told, raised("RuntimeError: first of all"), 0)
        again = restarted(told, 1, 300)
        write(api, again, steps(0, 2), 1)
        api.apply(again)
        bench.incidents(1)
        more = restarted(again, 1, 360)
        write(api, more, raised(OOM, 350), 1)
        write(api, more, steps(0, 2), 2)
        api.apply(more)
        zero, one = bench.incidents(2)
    assert "first of all" in zero["verdict"]["root_cause"]["exception"]["message"]
    assert (one["verdict"]["root_cause"]["entry"], one["job"]["attempt"]) == ("cuda.oom", 1)
    assert any("/pytorch/1.log" in file["name"] for file in bench.full(one)["log"]["files"])


def test_an_evicted_pod(bench: Bench, api: ApiServer) -> None:
    why = "The node was low on resource: ephemeral-storage. Threshold quantity: 94489280512, available: 88123Ki. "
    told = pod("train-7", ("batch.volcano.sh/v1alpha1", "Job", "train"), node="gpu-7", annotations={
        "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "7", "volcano.sh/job-version": "2",
        "volcano.sh/queue-name": "night", "owner": "zhang"})  # fmt: skip
    write(api, told, steps(7))
    api.apply(told)
    with bench.watching():
        api.events.append(event(told, "Evicted", why, 300))
        api.apply(evicted(told, 300, why))
        (incident,) = bench.incidents(1)
    cause, job = incident["verdict"]["root_cause"], incident["job"]
    assert (cause["entry"], cause["host"]) == ("k8s.evicted", "train-7")
    assert (job["state"], job["exit_code"], job["queue"], job["user"], job["attempt"]) == (
        "Evicted", 137, "night", "zhang", 2)  # fmt: skip
    assert (job["labels"]["kind"], job["labels"]["node"]) == ("VolcanoJob", "gpu-7")


def test_a_pod_that_is_gone_before_its_log_is_read(bench: Bench, api: ApiServer) -> None:
    told = of_pytorchjob("brief", 0)[0]
    api.apply(told)
    with bench.watching() as watcher:
        api.apply(failed(told, 137, "OOMKilled"))
        api.delete(failed(told, 137, "OOMKilled"))
        (incident,) = bench.incidents(1)
        assert bench.handled(watcher, "delivered") == 1
    assert incident["verdict"]["root_cause"]["entry"] == "k8s.oom-killed"
    assert incident["verdict"]["root_cause"]["host"] == "brief-master-0"


def test_another_pod_with_the_name_of_one_that_is_gone_lends_it_no_log(bench: Bench, api: ApiServer) -> None:
    old = of_pytorchjob("twice", 0)[0]
    new = pod(old["metadata"]["name"], ("kubeflow.org/v1", "PyTorchJob", "twice"), created=350, version=1)
    ended = failed(old, 137, "OOMKilled")
    write(api, new, raised("AssertionError: not of this one"))
    api.apply(old)
    api.expire()
    with bench.watching():
        with api.changed:  # all of it between two reads of the watch
            api.apply(ended)
            api.delete(ended)
            api.apply(new)
        (incident,) = bench.incidents(1)
    assert incident["verdict"]["root_cause"]["entry"] == "k8s.oom-killed"
    assert not [file for file in bench.full(incident)["log"]["files"] if "/pytorch/" in file["name"]]


@pytest.mark.slow
def test_a_watcher_that_was_away_reports_what_is_still_there_and_nothing_twice(bench: Bench, api: ApiServer) -> None:
    one, two, three = (of_pytorchjob(name, 0)[0] for name in ("one", "two", "three"))
    for each in (one, two, three):
        write(api, each, raised(OOM))
    api.apply(one, two, three)
    with bench.watching():
        api.apply(failed(one))
        bench.incidents(1)
    api.apply(failed(two))
    with bench.watching():
        bench.incidents(2)
        api.expire()
        api.apply(failed(three))
        assert len(bench.incidents(3)) == 3
    with bench.watching() as watcher:
        last = of_pytorchjob("last", 0)[0]
        write(api, last, raised(OOM))
        api.apply(last, failed(last))
        bench.incidents(4)
        assert bench.handled(watcher, "delivered") == 1


def test_an_attempt_that_was_open_when_the_watcher_ended_is_reported_with_the_logs_it_had(
    bench: Bench, api: ApiServer
) -> None:
    pods = of_pytorchjob("open", 1)
    write(api, pods[0], steps(0))
    write(api, pods[1], raised(OOM))
    api.apply(*pods)
    with bench.watching(settle=600):
        api.apply(failed(pods[1]))
        until(lambda: len(_saved(bench)) == 2)
    api.delete(failed(pods[1]), pods[0])
    with bench.watching():
        (incident,) = bench.incidents(1)
    assert incident["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert len([file for file in bench.full(incident)["log"]["files"] if "/pytorch/" in file["name"]]) == 2


def test_the_service_is_away_and_comes_back(bench: Bench, api: ApiServer, tmp_path_factory: Any) -> None:
    told = of_pytorchjob("patient", 0)[0]
    write(api, told, raised(OOM))
    api.apply(told)
    with bench.watching(url="http://127.0.0.1:9") as watcher:
        api.apply(failed(told))
        until(lambda: bench.handled(watcher, "packed"))
        until(lambda: watcher.counters.registry.get_sample_value("torchtriage_watcher_reports_waiting"))
    with serving_triage(tmp_path_factory.mktemp("back")) as back:
        bench.url = back.url
        with bench.watching() as watcher:
            (incident,) = bench.incidents(1)
            until(lambda: not list((bench.folder / "data" / "spool").iterdir()))
            assert bench.handled(watcher, "packed") == 0
    assert incident["verdict"]["root_cause"]["entry"] == "cuda.oom"


def test_one_namespace_is_refused_and_the_others_are_watched(bench: Bench, api: ApiServer) -> None:
    api.refused.add("secret")
    told = of_pytorchjob("open", 0)[0]
    write(api, told, raised(OOM))
    api.apply(told)
    with bench.watching(namespaces=("ml", "secret")) as watcher:
        api.apply(failed(told))
        bench.incidents(1)
        value = watcher.counters.registry.get_sample_value
        assert value("torchtriage_watcher_watching", {"namespace": "ml"}) == 1
        assert value("torchtriage_watcher_watching", {"namespace": "secret"}) == 0
        api.refused.clear()
        until(lambda: value("torchtriage_watcher_watching", {"namespace": "secret"}))


@pytest.mark.slow
def test_a_watch_that_breaks_off_or_expires_misses_nothing(bench: Bench, api: ApiServer) -> None:
    pods = [of_pytorchjob(f"job-{number}", 0)[0] for number in range(4)]
    for each in pods:
        write(api, each, raised(OOM))
    api.apply(*pods)
    with bench.watching() as watcher:
        api.apply(failed(pods[0]))
        bench.incidents(1)
        api.interrupt()
        api.apply(failed(pods[1]))
        bench.incidents(2)
        api.bookmark()
        api.expire()
        api.apply(failed(pods[2]))
        bench.incidents(3)
        api.down = True
        api.interrupt()
        until(lambda: watcher.counters.registry.get_sample_value(
            "torchtriage_watcher_interruptions_total", {"namespace": "all"}) or 0)  # fmt: skip
        api.apply(failed(pods[3]))
        api.down = False
        bench.incidents(4)


def test_what_is_no_failure_or_not_asked_for_is_not_reported(bench: Bench, api: ApiServer) -> None:
    good, stopped, small, other = (of_pytorchjob(name, 0, gpus)[0] for name, gpus in (
        ("good", 8), ("stopped", 8), ("small", 0), ("marker", 8)))  # fmt: skip
    daemon = pod("agent-x2x3x", ("apps/v1", "DaemonSet", "agent"))
    bare = pod("by-hand", labels={"team": "web"})
    old = pod("old-0", ("kubeflow.org/v1", "PyTorchJob", "old"), created=-90000)
    for each in (good, stopped, small, other, daemon, bare, old):
        write(api, each, raised(OOM))
    api.apply(good, stopped, small, other, daemon, bare, failed(old, when=-86000))
    with bench.watching(least_gpus=1, bare="team=ml") as watcher:
        api.apply(failed(good, 0, "Completed"), failed(leaving(stopped, 290), 143, "Error", 300))
        api.apply(failed(small), failed(daemon), failed(bare))
        until(lambda: bench.handled(watcher, "skipped"))
        api.apply(failed(other))
        (incident,) = bench.incidents(1)
    assert incident["job"]["job_name"] == "marker"


def test_a_bare_pod_with_the_labels_asked_for_is_a_job(bench: Bench, api: ApiServer) -> None:
    told = pod("by-hand", labels={"team": "ml"})
    write(api, told, raised(OOM))
    api.apply(told)
    with bench.watching(bare="team=ml"):
        api.apply(failed(told))
        (incident,) = bench.incidents(1)
    assert (incident["job"]["labels"]["kind"], incident["job"]["job_name"]) == ("Pod", "by-hand")


def test_what_only_follows_from_a_reported_failure_is_not_reported_again(bench: Bench, api: ApiServer) -> None:
    pods = of_pytorchjob("slow", 1)
    write(api, pods[0], steps(0))
    write(api, pods[1], raised(OOM))
    api.apply(*pods)
    with bench.watching(settle=1) as watcher:
        api.apply(failed(pods[1]))
        (incident,) = bench.incidents(1)
        write(api, pods[0], timed_out(0))
        api.apply(failed(pods[0], when=401))
        marker = of_pytorchjob("marker", 0)[0]
        write(api, marker, raised(OOM))
        api.apply(marker, failed(marker))
        bench.incidents(2)
        assert bench.handled(watcher, "packed") == 2
    files = [file["name"] for file in bench.full(incident)["log"]["files"]]
    assert any("slow-master-0" in name for name in files), "the log of what still ran is in the report"


@pytest.mark.slow
def test_the_command_ends_when_it_is_asked_to(bench: Bench, api: ApiServer) -> None:
    told = of_pytorchjob("told", 0)[0]
    write(api, told, raised(OOM))
    api.apply(told)
    with kept_port() as port:
        command = [sys.executable, "-m", "torchtriage.cli.main", "watch-kubernetes", "--url", bench.url,
                   "--cluster", bench.name, "--folder", str(bench.folder / "data"), "--kubeconfig", str(bench.kubeconfig),
                   "--port", str(port), "--settle", "5", "--oldest", "1e9"]  # fmt: skip
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            api.apply(failed(told))
            bench.incidents(1)
            address = f"http://127.0.0.1:{port}"
            assert (
                bench.asking.get(address + "/healthz").status_code
                == bench.asking.get(address + "/readyz").status_code
                == 200
            )
            assert (
                'torchtriage_watcher_failures_total{reason="Error"} 1.0' in bench.asking.get(address + "/metrics").text
            )
        finally:
            process.terminate()
            _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert "PyTorchJob ml/told attempt 0" in said
    assert f"{bench.url}/incidents/" in said
