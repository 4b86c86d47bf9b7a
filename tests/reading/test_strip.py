import pytest

from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import learn_labels, strip_prefixes

NONE = Labels()
HEAD = "Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("raw", "text", "rank", "local_rank", "host"),
    [
        # torch, torchrun and trainers
        ("[rank3]: KeyError: 'x'", "KeyError: 'x'", 3, None, None),
        ("[rank3]:[W1120 16:35:22.5 reducer.cpp:1529] no", "[W1120 16:35:22.5 reducer.cpp:1529] no", 3, None, None),
        ("[default1]:[rank5]: KeyError: 'x'", "KeyError: 'x'", 5, 1, None),
        (f"[default2]:{HEAD}", HEAD, None, 2, None),
        (f"[trainer1]:{HEAD}", HEAD, None, 1, None),
        ("[rank: 3] Child process with PID 9 terminated with code -9.", "Child process with PID 9 terminated with code -9.", 3, None, None),
        # mpirun
        ("[1,7]<stderr>:Killed", "Killed", 7, None, None),
        ("[1,7]<stdout>: Killed", "Killed", 7, None, None),
        ("[1,mpirank:3,algo-2]<stderr>:Killed", "Killed", 3, None, "algo-2"),
        ("[prterun-gpu-3-2291@1,3]<stderr>: Killed", "Killed", 3, None, None),
        ("[gpu-3:2]AttributeError: no", "AttributeError: no", None, 2, "gpu-3"),
        ("[gpu-3:12345] *** Process received signal ***", "*** Process received signal ***", None, None, "gpu-3"),
        # Ray, vLLM
        ("(WorkerDict pid=410, ip=10.0.0.9) ValueError: no", "ValueError: no", None, None, "10.0.0.9"),
        ("(RayTrainWorker pid=410, ip=10.0.0.9) [rank1]: boom", "boom", 1, None, "10.0.0.9"),
        ("\x1b[36m(RayTrainWorker pid=410)\x1b[0m boom", "boom", None, None, None),
        ("[36m(RayTrainWorker pid=410)[0m boom", "boom", None, None, None),
        ("[m[31mboom", "boom", None, None, None),
        ("[mpiexec@node1] boom", "[mpiexec@node1] boom", None, None, None),  # no colour
        ("(EngineCore_0 pid=77) boom", "boom", None, None, None),
        ("(EngineCore_DP0 pid=77) (Worker_TP1 pid=81) boom", "boom", 1, None, None),
        ("(VllmWorker rank=1 pid=81) boom", "boom", 1, None, None),
        ("(pid=81, ip=10.0.0.9) boom", "boom", None, None, "10.0.0.9"),
        ("(raylet, ip=10.0.0.9) A worker died", "A worker died", None, None, "10.0.0.9"),
        ("ERROR 01-11 13:09:40 engine.py:366] ValueError: no", "ValueError: no", None, None, None),
        ("(EngineCore_0 pid=7) ERROR 11-21 13:09:40 [core.py:366] ValueError: no", "ValueError: no", None, None, None),
        # containers
        ("[pod/train-worker-1/pytorch] 2026-05-01T09:00:00.5Z [rank1]: boom", "boom", 1, None, "train-worker-1"),
        ("2026-05-01T09:00:00.123456789Z [rank1]: boom", "boom", 1, None, None),
        ("2026-05-01T09:00:00.123456789Z stderr F [rank1]: boom", "boom", 1, None, None),
        ("2026-05-01T09:00:00.123456Z 01E [rank1]: boom", "boom", 1, None, None),
        ('2026-05-01T09:00:00Z {namespace="ml", pod="train-worker-1"} [rank1]: boom', "boom", 1, None, "train-worker-1"),
        # journal, syslog, ts
        ("May  1 09:00:00 gpu-3 torchrun[41]: [rank0]: boom", "boom", 0, None, "gpu-3"),
        ("May  1 09:00:00 gpu-3 kernel: NVRM: Xid", "NVRM: Xid", None, None, "gpu-3"),
        ("May  1 09:00:00.123456 gpu-3 torchrun[41]: boom", "boom", None, None, "gpu-3"),
        ("May 01 09:00:00 [rank0]: boom", "boom", 0, None, None),
        ("May 01 09:00:00 ValueError: boom", "ValueError: boom", None, None, None),
        ("2026-05-01T09:00:00+0200 gpu-3 torchrun[41]: boom", "boom", None, None, "gpu-3"),
        ("2026-05-01T09:00:00.123456+02:00 gpu-3 slurmstepd[41]: boom", "boom", None, None, "gpu-3"),
        ("2026-05-01T09:00:00.123456+02:00 gpu-3 kernel: NVRM: Xid", "NVRM: Xid", None, None, "gpu-3"),
        ("Fri 2026-05-01 09:00:00 UTC gpu-3 torchrun[41]: boom", "boom", None, None, "gpu-3"),
        ("[12345.678901] gpu-3 torchrun[41]: boom", "boom", None, None, "gpu-3"),
        # continuous integration
        ("2026-05-01T09:00:00.1234567Z ##[error]boom", "boom", None, None, None),
        ("[2026-05-01T09:00:00.123Z] [rank1]: boom", "boom", 1, None, None),
        # what is the program's own
        ("\x1b[31m[rank2]: boom\x1b[0m", "boom", 2, None, None),
        ("INFO no prefix at all", "INFO no prefix at all", None, None, None),
        ("[3] is a list", "[3] is a list", None, None, None),
        ("3: Killed", "3: Killed", None, None, None),
        ("    x = y[3]", "    x = y[3]", None, None, None),
    ],
)  # fmt: skip
def test_prefixes_come_off_and_show(
    raw: str, text: str, rank: int | None, local_rank: int | None, host: str | None
) -> None:
    origin = strip_prefixes(raw, NONE)
    assert (origin.text, origin.rank, origin.local_rank, origin.host) == (text, rank, local_rank, host)


@pytest.mark.parametrize(
    ("raw", "rank"),
    [
        ("[2026-05-01 09:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 3] step=1", 3),
        ("[2026-05-01 09:00:00,123][INFO][Rank 3] step=1", 3),
        ("[rank 3] step 1", 3),
        ("Rank 3: step 1", 3),
        ("INFO:root:[rank=3] step 1", 3),
        ("I0501 09:00:00.123456 140001 train.py:12] loss 3", None),
        ("2026-05-01 09:00:00.123 | ERROR    | __main__:main:12 - no", None),
        ("2026/05/01 09:00:00 INFO mlflow.tracking: no", None),
        ("ranking 3 candidates", None),
    ],
)
def test_a_rank_that_the_writer_names_is_heard_and_the_text_stays(raw: str, rank: int | None) -> None:
    origin = strip_prefixes(raw, NONE)
    assert origin.rank == rank
    assert raw.endswith(origin.text.split("] ")[-1])


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        ("2026-05-01T09:00:00.5Z stderr F 2026-05-01 11:00:00,123 INFO x", "2026-05-01T09:00:00.5Z"),
        ("2026-05-01 11:00:00,123 INFO x", "2026-05-01T11:00:00.123"),
        ("[2026-05-01 11:00:00,123] [INFO] x", "2026-05-01T11:00:00.123"),
        ("E0501 09:10:00.200000 41 api.py:1002] failed", "--05-01T09:10:00.200000"),
        ("2026/05/01 09:00:00 INFO mlflow.tracking: no", "2026-05-01T09:00:00"),
        ("no time", None),
    ],
)
def test_the_outermost_clock_counts(raw: str, time: str | None) -> None:
    assert strip_prefixes(raw, NONE).time == time


LABELLED = {
    "srun -l": ("{rank}: ", "rank"),
    "srun -l, aligned": ("{rank:>3}: ", "rank"),
    "mpiexec -l": ("[{rank}] ", "rank"),
    "pdsh": ("gpu-{rank}: ", "host"),
    "clush": ("node{rank}: ", "host"),
    "docker compose": ("trainer-{rank}  | ", "host"),
    "stern": ("train-worker-{rank} pytorch ", "host"),
    "kubetail": ("[train-worker-{rank}] ", "host"),
    "kubetail, containers": ("[train-worker-{rank} pytorch] ", "host"),
}


@pytest.mark.parametrize("outer", ["", "2026-05-01T09:00:00.5Z ", "[pod/launcher-0-abcde/main] "])
@pytest.mark.parametrize("inner", ["", "[default1]:", "[default1]:[rank7]: "])
@pytest.mark.parametrize("form", LABELLED)
def test_a_label_on_most_lines_comes_off_alone_and_between_others(form: str, inner: str, outer: str) -> None:
    label, tells = LABELLED[form]
    sample = [f"{outer}{label.format(rank=number % 4)}{inner}step {number} loss 0.5" for number in range(20)]
    origin = strip_prefixes(
        f"{outer}{label.format(rank=3)}{inner}{HEAD}", learn_labels([strip_prefixes(one, NONE).text for one in sample])
    )
    assert origin.text == HEAD
    assert origin.local_rank == (1 if inner else None)
    if tells == "rank":
        # torchrun is what the task is then, on one node.
        assert (origin.rank, origin.node) == ((7, 3) if "rank7" in inner else (None, 3) if inner else (3, 3))
    elif not outer.startswith("[pod"):
        assert origin.host is not None
        assert origin.host in label.format(rank=3)


def test_labels_in_one_another() -> None:
    known = learn_labels(
        [f"gpu-{number % 2}: {number % 8}: [default{number % 4}]:step {number}" for number in range(24)]
    )
    origin = strip_prefixes("gpu-1: 5: [default1]:Killed", known)
    assert (origin.text, origin.host, origin.node, origin.local_rank) == ("Killed", "gpu-1", 5, 1)
    twice = learn_labels([f"{number % 16}: {number % 4}: step {number}" for number in range(32)])
    assert strip_prefixes("12: 3: Killed", twice).text == "Killed"
    assert strip_prefixes("12: 3: Killed", twice).rank == 12


def test_host_labels_part_the_streams_of_two_hosts() -> None:
    known = learn_labels([f"gpu-{number % 2}: step {number}" for number in range(10)])
    first, second = strip_prefixes("gpu-0: boom", known), strip_prefixes("gpu-1: boom", known)
    assert (first.host, second.host) == ("gpu-0", "gpu-1")
    assert first.stream != second.stream


def test_a_log_stream_before_each_line_is_a_label() -> None:
    sample = [f"train/default/7f{number % 2}e1b step {number}" for number in range(20)]
    assert strip_prefixes(f"train/default/7f0e1b {HEAD}", learn_labels(sample)).text == HEAD


PREAMBLE = ["+ module load cuda/12.4", "Loading cuda/12.4", "1: lo: <LOOPBACK,UP> mtu 65536", "MASTER_ADDR=gpu-01"] * 3
NUMBERED = {
    "a traceback": [f" 2: {HEAD}", ' 2:   File "/job/train.py", line 3, in <module>', " 2:     main()"],
    "a traceback among others' lines": [f"2: {HEAD}", "0: step 4", '2:   File "/job/train.py", line 3, in <module>'],
    "tasks that write again and again": [f"{number % 4}: loading shard {number // 4}" for number in range(48)],
}


@pytest.mark.parametrize("form", NUMBERED)
def test_task_numbers_are_labels_in_a_file_that_has_them_on_some_lines_only(form: str) -> None:
    known = learn_labels(PREAMBLE + NUMBERED[form] + ["srun: error: gpu-01: task 2: Exited with exit code 1"])
    origin = strip_prefixes(" 2: ERROR trainer: no shard", known)
    assert (origin.text, origin.rank) == ("ERROR trainer: no shard", 2)


@pytest.mark.parametrize(
    "lines",
    [
        [
            f"{number}: {HEAD if number == 20 else 'print(step)'}" for number in range(1, 30)
        ],  # as grep -n shows a script
        [f"{number}: NVIDIA H100 80GB HBM3" for number in range(8)],
        [f"2: {HEAD}", "  file missing", '3:   File "/job/train.py", line 3, in <module>'],
    ],
    ids=["numbered lines", "a list", "two numbers"],
)
def test_other_numbers_before_some_lines_are_not_labels(lines: list[str]) -> None:
    assert learn_labels([*lines, *["# nothing here is of a task"] * 24]) == NONE


@pytest.mark.parametrize(
    "sample",
    [
        ["srun: error: Task launch failed"] * 6,
        [f"RuntimeError: {number}" for number in range(6)],
        [f"epoch {number} | loss 0.5" for number in range(20)],
        [f"train.py: step {number}" for number in range(20)],
        [f"[{number}] loss 0.5" for number in range(20)],
        [f"torch {number % 3} loaded in 0.5 s" for number in range(20)],
        ["one", "two"],
    ],
)
def test_what_a_program_says_on_every_line_is_not_a_label(sample: list[str]) -> None:
    assert learn_labels(sample) == NONE


def test_a_plain_number_is_a_label_only_where_most_lines_have_one() -> None:
    known = learn_labels([f"{rank}: step 1" for rank in range(8)])
    assert strip_prefixes("3: Killed", known).rank == 3


def test_a_word_and_a_number_without_a_blank_between_are_not_hosts_label() -> None:
    assert learn_labels([f"step:{number}/1000 train_loss:2.1" for number in range(20)]).forms == ()


def test_a_table_of_a_logs_viewer_is_a_label_with_the_time() -> None:
    raw = [f"  | 2026-08-23T22:22:{number:02d}.879Z | {'worker left' * number}" for number in range(20)]
    result = strip_prefixes(raw[1], learn_labels(raw))
    assert (result.text, result.time) == ("worker left", "2026-08-23T22:22:01.879Z")
