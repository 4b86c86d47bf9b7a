"""What a line's prefixes tell, form by form, as the launchers, schedulers and collectors of this field write them."""

from typing import NamedTuple

import pytest

from torchtriage.reading.prefixes.known import FIELDS, KNOWN, KnownPrefix, prefix_of
from torchtriage.reading.prefixes.learned import FORMS as LEARNED_FORMS
from torchtriage.reading.prefixes.learned import LABELS, Labels, LearnedLabel, learned_label
from torchtriage.reading.prefixes.strip import learn_labels, strip_prefixes

NONE = Labels()
HEAD = "Traceback (most recent call last):"
CLOCK = "2026-05-01T09:00:00.5Z "


class Form(NamedTuple):
    """A prefix, and what it tells."""

    prefix: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    pod: str | None = None
    node: int | None = None


FORMS = {
    "torch": Form("[rank3]: ", 3),
    "torchrun --tee": Form("[default1]:", None, 1),
    "both": Form("[default1]:[rank5]: ", 5, 1),
    "a role of its own": Form("[trainer1]:", None, 1),
    "a template with rank": Form("[default-rank5]:", 5),
    "a template with both": Form("[default-1-5]:", 5, 1),
    "a template with both, and a bar": Form("[trainer1|5]: ", 5, 1),
    "a template in many brackets": Form("[[[worker-1-5]]:", 5, 1),
    "a template in words": Form("[trainer local_rank=1 rank=5] ", 5, 1),
    "Lightning": Form("[rank: 3] ", 3),
    "Kaggle's viewer": Form("704.7s\t1459\t"),
    "Determined": Form("[2026-05-01T09:00:00.123456Z] 8ddca4c8 [rank=3] || ", 3, time="2026-05-01T09:00:00.123456Z"),
    "Determined, level": Form("[2026-05-01T09:00:00.123456Z] 8ddca4c8 [rank=3] || ERROR: ", 3, time="2026-05-01T09:00:00.123456Z"),
    "Determined, rank alone": Form("[rank=3] ", 3),
    "Determined, container": Form("[8ddca4c8] [rank=3] || ", 3),
    "ParlAI": Form("rank:  3 | ", 3),
    "composer": Form("rank3[1234][MainThread]: ERROR: composer.cli.launcher: ", 3),
    "composer, clock": Form("2026-05-01 09:00:00,123: rank3[1234][MainThread]: ERROR: llmfoundry.train: ", 3, time="2026-05-01T09:00:00.123"),
    "mpirun --tag-output": Form("[1,3]<stderr>:", 3, node=3),
    "mpirun, clock before": Form("Fri May  1 09:00:00 2026[1,3]<stderr>:", 3, time="2026-05-01T09:00:00", node=3),
    "mpirun, blank": Form("[1,3]<stderr>: ", 3, node=3),
    "PRRTE": Form("[prterun-gpu-3-2291@1,3]<stderr>: ", 3, node=3),
    "horovodrun": Form("[3]<stderr>:", 3, node=3),
    "horovodrun, clock": Form("Fri May  1 09:00:00 2026[3]<stderr>:", 3, time="2026-05-01T09:00:00", node=3),
    "SageMaker": Form("[1,mpirank:3,algo-2]<stderr>:", 3, host="algo-2", node=3),
    "Open MPI": Form("[gpu-3:12345] ", host="gpu-3"),
    "a role that is the host": Form("[r10i6n5:3]:", None, 3, "r10i6n5"),
    "host and local rank": Form("[gpu-3:2] ", None, 2, "gpu-3"),
    "host and gpu": Form("[node-12:gpu3] ", None, 3, "node-12"),
    "host and rank": Form("[node-12:rank3] ", 3, None, "node-12"),
    "host, slash, rank": Form("[gpu-7/rank 3] ", 3, None, "gpu-7"),
    "host, bar, rank": Form("[gpu-7|rank=3] ", 3, None, "gpu-7"),
    "rank and host": Form("[rank 3 @ gpu-7] ", 3, None, "gpu-7"),
    "rank, local rank, host": Form("[rank=11 local_rank=3 host=gpu-7] ", 11, 3, "gpu-7"),
    "Ray": Form("(RayTrainWorker pid=410, ip=10.0.0.9) ", host="10.0.0.9"),
    "Ray, this host": Form("(RayTrainWorker pid=410) "),
    "Ray, coloured": Form("\x1b[36m(TorchTrainer pid=410, ip=10.0.0.9)\x1b[0m ", host="10.0.0.9"),
    "Ray, repeated": Form("(RayTrainWorker pid=410, ip=10.0.0.9) [repeated 7x across cluster] ", host="10.0.0.9"),
    "Ray over torch": Form("(RayTrainWorker pid=410, ip=10.0.0.9) [rank3]: ", 3, host="10.0.0.9"),
    "raylet": Form("(raylet, ip=10.0.0.9) ", host="10.0.0.9"),
    "vLLM worker": Form("(VllmWorker rank=1 pid=81) ", 1),
    "vLLM, two": Form("(EngineCore_DP0 pid=77) (Worker_TP1 pid=81) ", 1),
    "vLLM, tensor and expert group": Form("(Worker_TP3_EP3 pid=81) ", 3),
    "SGLang": Form("[2026-05-01 09:00:00 TP3] ", 3, time="2026-05-01T09:00:00"),
    "SGLang, data and expert group": Form("[2026-05-01 09:00:00 DP1 TP3 EP3] ", 3, time="2026-05-01T09:00:00"),
    "SkyPilot head": Form("(head, rank=0, pid=123) ", node=0),
    "SkyPilot worker": Form("(worker1, rank=1, pid=456, ip=10.0.0.9) ", host="10.0.0.9", node=1),
    "SkyPilot task": Form("(llama-sft, pid=123) "),
    "SkyPilot over torch": Form("(worker1, rank=1, pid=456, ip=10.0.0.9) [rank11]: ", 11, host="10.0.0.9", node=1),
    "kubectl --prefix": Form("[pod/train-worker-1/pytorch] ", host="train-worker-1", pod="train-worker-1"),
    "kubectl --prefix --timestamps": Form(f"[pod/train-worker-1/pytorch] {CLOCK}", host="train-worker-1", time="2026-05-01T09:00:00.5Z", pod="train-worker-1"),
    "kail": Form("ml/train-worker-1[pytorch]: ", host="train-worker-1", pod="train-worker-1"),
    "kubectl --timestamps": Form(CLOCK, time="2026-05-01T09:00:00.5Z"),
    "containerd": Form("2026-05-01T09:00:00.123456789Z stderr F ", time="2026-05-01T09:00:00.123456789Z"),
    "logcli": Form('2026-05-01T09:00:00Z {namespace="ml", pod="train-worker-1"} ', host="train-worker-1", time="2026-05-01T09:00:00Z", pod="train-worker-1"),
    "logcli, node": Form('2026-05-01T09:00:00Z {node="gpu-7", pod="train-worker-1"} ', host="gpu-7", time="2026-05-01T09:00:00Z", pod="train-worker-1"),
    "logcli, node name": Form('2026-05-01T09:00:00Z {kubernetes_node_name="gpu-7", kubernetes_pod_name="train-worker-1"} ', host="gpu-7", time="2026-05-01T09:00:00Z", pod="train-worker-1"),
    "docker service": Form("train_worker.3.x7k2p9q1m4n8@gpu-7    | ", host="gpu-7"),
    "journal": Form("May  1 09:00:00 gpu-3 torchrun[41]: ", host="gpu-3", time="--05-01T09:00:00"),
    "journal, iso": Form("2026-05-01T09:00:00+0200 gpu-3 torchrun[41]: ", host="gpu-3", time="2026-05-01T09:00:00+0200"),
    "journal, monotonic": Form("[12345.678901] gpu-3 torchrun[41]: ", host="gpu-3"),
    "syslog, RFC 5424": Form("<14>1 2026-05-01T09:00:00.123Z gpu-3 torchrun 41 - - ", host="gpu-3", time="2026-05-01T09:00:00.123Z"),
    "syslog, priority": Form("<14>May  1 09:00:00 gpu-3 torchrun[41]: ", host="gpu-3", time="--05-01T09:00:00"),
    "ts": Form("May 01 09:00:00 ", time="--05-01T09:00:00"),
    "Jenkins": Form("[2026-05-01T09:00:00.123Z] ", time="2026-05-01T09:00:00.123Z"),
    "GitHub": Form("2026-05-01T09:00:00.1234567Z ##[error]", time="2026-05-01T09:00:00.1234567Z"),
    "ts, epoch": Form("1777626000.123456 ", time="2026-05-01T09:00:00.123456Z"),
    "epoch in brackets": Form("[1777626000.123] ", time="2026-05-01T09:00:00.123000Z"),
    "epoch, thousandths": Form("1777626000123 ", time="2026-05-01T09:00:00.123000Z"),
    "clock in brackets": Form("[2026-05-01 09:00:00] ", time="2026-05-01T09:00:00"),
    "clock in brackets, slashes": Form("[2026/05/01 09:00:00] ", time="2026-05-01T09:00:00"),
    "PALS": Form("x3001c0s13b0n0.hsn.cm 3: ", 3, host="x3001c0s13b0n0.hsn.cm", node=3),
    "clock, kubectl, tee, torch": Form(f"[pod/train-worker-1/pytorch] {CLOCK}[default1]:[rank5]: ", 5, 1, "train-worker-1", "2026-05-01T09:00:00.5Z", "train-worker-1"),
    "clock, mpirun, torch": Form(f"{CLOCK}[1,3]<stderr>:[rank3]: ", 3, time="2026-05-01T09:00:00.5Z"),
    "journal, mpirun": Form("May  1 09:00:00 gpu-3 mpirun[41]: [1,3]<stderr>:", 3, host="gpu-3", time="--05-01T09:00:00", node=3),
    "BuildKit": Form("#12 34.567 "),
    "rank in angles": Form("<rank3> ", 3),
    "rank in parentheses": Form("(rank 3) ", 3),
    "rank of": Form("[Rank 3/16] ", 3),
    "rank, bare": Form("rank3: ", 3),
    "rank, small r": Form("r3: ", 3),
    "gpu": Form("[GPU3] ", None, 3),
    "local rank": Form("[local_rank 3] ", None, 3),
    "a logger over torch": Form("2026-05-01 09:00:00,678 - launcher - INFO - [rank3]: ", 3, time="2026-05-01T09:00:00.678"),
    "a level over torch": Form("INFO - [rank3]: ", 3),
    "a level in brackets over torch": Form("[INFO] [rank3]: ", 3),
    "logging's own form over torch": Form("ERROR:root:[rank3]: ", 3),
    "a logger over torchrun": Form("INFO:agent:[default1]:[rank5]: ", 5, 1),
    "loguru over torch": Form("2026-05-01 09:00:00.678 | ERROR    | launch:pump:31 - [rank3]: ", 3, time="2026-05-01T09:00:00.678"),
    "glog over torch": Form("I0501 09:00:00.678901 1234 pump.py:31] [rank3]: ", 3, time="--05-01T09:00:00.678901"),
    "a colour that lost its escape": Form(" [36m(RayTrainWorker pid=410, ip=10.0.0.9) [0m [rank3]: ", 3, host="10.0.0.9"),
    "a colour that was spelled": Form("\\x1b[36m(RayTrainWorker pid=410, ip=10.0.0.9)\\x1b[0m ", host="10.0.0.9"),
    "a colour in caret form": Form("^[[31m[rank3]: ^[[0m", 3),
    "srun -l": Form("3: ", 3, node=3),
    "srun -l over torchrun": Form("3: [default1]:", None, 1, node=3),
    "srun -l over torch": Form("1: [rank3]: ", 3),
    "mpirun over torchrun": Form("[1,3]<stderr>:[default1]:[rank5]: ", 5, 1, node=3),
    "srun -l in a logger": Form("2026-05-01 09:00:00,678 - launcher - INFO - 3: ", 3, time="2026-05-01T09:00:00.678", node=3),
    "grep -rn": Form("logs/rank_3.log:101:", 3),
    "grep -rn, context": Form("logs/rank_3.log-101-", 3),
    "grep -r": Form("gpu-3.out:", host="gpu-3"),
    "rank behind a clock": Form("[2026-05-01 09:00:00] [rank3] ", 3, time="2026-05-01T09:00:00"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_prefix_comes_off_and_shows(name: str) -> None:
    form = FORMS[name]
    sample = [f"{form.prefix}step {at} loss 0.5" for at in range(20)]
    known = learn_labels([strip_prefixes(line, NONE).text for line in sample])
    origin = strip_prefixes(form.prefix + HEAD, known)
    assert origin.text == HEAD
    assert (origin.rank, origin.local_rank, origin.host, origin.time, origin.pod, origin.node) == form[1:]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-05-01T11:00:00.5+02:00 INFO x", "2026-05-01T11:00:00.5+02:00"),
        ("[2026-05-01 09:00:00,351] [INFO] x", "2026-05-01T09:00:00.351"),
        (" [2026-05-01 09:00:00.351] iteration        5/     100 |", "2026-05-01T09:00:00.351"),
        ("2026-05-01 09:00:00.351 | ERROR    | __main__:main:12 - no", "2026-05-01T09:00:00.351"),
        ("2026/05/01 09:00:00 ERROR no", "2026-05-01T09:00:00"),
        ("05/01/2026 09:00:00 - ERROR - __main__ - no", "2026-05-01T09:00:00"),
        ("E0501 09:00:00.037000 1001 torch/distributed/elastic/multiprocessing/api.py:1002] no", "--05-01T09:00:00.037000"),
        ("Fri May  1 09:00:00 2026", "2026-05-01T09:00:00"),
        ("Started at Fri May  1 09:00:00 CEST 2026", "2026-05-01T09:00:00"),
        ("05/01 09:00:00 - mmengine - ERROR - no", "--05-01T09:00:00"),
        ("[05/01 09:00:00 d2.engine.train_loop]: no", "--05-01T09:00:00"),
        ("[NeMo E 2026-05-01 09:00:00 nemo_logging:417] no", "2026-05-01T09:00:00"),
        ("INFO 05-01 09:00:00 worker.py:12] no", "--05-01T09:00:00"),
        ("ERROR 05-01 09:00:00 [core.py:366] no", "--05-01T09:00:00"),
        ("  time      : 2026-05-01_09:00:00", "2026-05-01T09:00:00"),
        ("May  1 09:00:00 gpu-3 torchrun[41]: 2026-05-01 11:00:00,123 no", "2026-05-01T09:00:00"),
        ("slurmstepd: error: *** JOB 31 ON gpu-3 CANCELLED AT 2026-05-01T09:00:00 ***", "2026-05-01T09:00:00"),
        ("2026-05-01 09:00:00,351 - __main__ - INFO - no", "2026-05-01T09:00:00.351"),
        ("ratio 3:4:5 at step 12", None),
        ("12/31 9:00", None),
    ],
)  # fmt: skip
def test_the_time_of_a_line_in_the_forms_of_loggers(text: str, time: str | None) -> None:
    assert strip_prefixes(text, NONE).time == time


def test_a_loggers_fields_are_not_syslog_header() -> None:
    origin = strip_prefixes("2026-05-01 09:00:00,351 - __main__ - INFO - step 1", NONE)
    assert (origin.text, origin.host) == ("- __main__ - INFO - step 1", None)


@pytest.mark.parametrize("prefix", KNOWN, ids=lambda prefix: prefix.name)
def test_the_example_of_a_known_prefix_shows_it_and_no_other_one(prefix: KnownPrefix) -> None:
    found = prefix_of(f"{prefix.example}{'' if prefix.example.endswith('>:') else 'x'}")
    assert found is not None
    assert found[0].strip()
    assert prefix.example.startswith(found[0])
    fields = [name for name, group in FIELDS[found.lastgroup] if found[group]]
    assert all(f"(?P<{name}>" in prefix.regex for name in fields)
    assert bool(fields) == ("(?P<" in prefix.regex)


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.name)
def test_the_example_of_a_learned_label_shows_it(label: LearnedLabel) -> None:
    found = LEARNED_FORMS[label.name].match(f"{label.example}x")
    assert found is not None
    assert found[0] == label.example


@pytest.mark.parametrize(("names", "label"), [(("gpu-7", "gpu-8"), "host"), (("Epoch", "batch"), None)])
def test_what_a_loop_counts_is_no_host(names: tuple[str, str], label: str | None) -> None:
    lines = [f"{name}: {count}/10, loss: {count / 7:.4f}" for count in range(6) for name in names]
    assert learned_label(lines) == label
