import pytest

from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins

ONE_HOST = ["none_x1/attempt_0/0/stderr.log", "none_x1/attempt_0/1/stderr.log", "none_x1/attempt_1/0/stderr.log"]
TWO_HOSTS = ["gpu-7/none_x1/attempt_0/0/stderr.log", "gpu-8/none_y2/attempt_0/0/stderr.log"]


@pytest.mark.parametrize(
    ("name", "rank", "local_rank", "attempt", "host"),
    [
        ("none_x1/attempt_1/3/stderr.log", 3, 3, 1, None),
        ("attempt_0/3/error.json", 3, 3, 0, None),
        ("out/123456_3.out", 3, None, 0, None),
        ("123456-3.err", 3, None, 0, None),
        ("llama-123456-gpu-7-3.err", 3, None, 0, "gpu-7"),
        ("llama_123456_gpu021_3.out", 3, None, 0, "gpu021"),
        ("llama-123456-gpu-7.out", None, None, 0, "gpu-7"),
        ("llama-123456-3.err", 3, None, 0, None),
        ("123456_3_log.err", 3, None, 0, None),
        ("123456-3-gpu021.out", 3, None, 0, "gpu021"),
        ("proc_3.log", 3, None, 0, None),
        ("process-3.stderr", 3, None, 0, None),
        ("llama-sft/algo-2-1777626000.log", None, None, 0, "algo-2"),
        ("slurm-123456_3.out", None, None, 0, None),
        ("2026-05-01.log", None, None, 0, None),
        ("train-2026-05-01.out", None, None, 0, None),
        ("rank_3.log", 3, None, 0, None),
        ("gpu-7.rank3.log", 3, None, 0, "gpu-7"),
        ("logs/gpu-7_rank_3.log", 3, None, 0, "gpu-7"),
        ("logs/20260501_rank3.log", 3, None, 0, None),
        ("log_rank3.txt", 3, None, 0, None),
        ("1/rank.03/stdout", 3, None, 0, None),
        ("nemo_log_globalrank-11_localrank-3.txt", 11, 3, 0, None),
        ("user_logs/std_log_process_03.txt", 3, None, 0, None),
        ("pods/ml_train-worker-1_0f1e2d3c-aaaa-bbbb-cccc-0123456789ab/pytorch/2.log", None, None, 2, "train-worker-1"),
        ("containers/train-worker-1_ml_pytorch-" + "0" * 64 + ".log", None, None, 0, "train-worker-1"),
        ("train-worker-1.log", None, None, 0, "train-worker-1"),
        ("node-3.log", None, None, 0, "node-3"),
        ("gpu-021/train.log", None, None, 0, "gpu-021"),
        ("session_latest/logs/worker-0f1e2d-01000000-4711.err", None, None, 0, None),
        ("train.log", None, None, 0, None),
    ],
)
def test_what_a_path_shows(name: str, rank: int | None, local_rank: int | None, attempt: int, host: str | None) -> None:
    where = FileOrigins([name]).of(name, several=True)
    assert (where.rank, where.local_rank, where.attempt, where.host) == (rank, local_rank, attempt, host)


def test_the_path_of_a_single_file_shows_nothing() -> None:
    assert FileOrigins().of("rank_3.log", several=False) == FileOrigin(None)


def test_with_one_host_the_local_rank_is_the_rank_and_with_more_it_is_not() -> None:
    assert FileOrigins(ONE_HOST).of(ONE_HOST[1], several=True).rank == 1
    second = FileOrigins(TWO_HOSTS).of(TWO_HOSTS[1], several=True)
    assert (second.rank, second.local_rank, second.host) == (None, 0, "gpu-8")


def test_old_launchers_name_node_and_local_rank() -> None:
    where = FileOrigins().of("logs/node_1_local_rank_3_stderr", several=True)
    assert (where.node, where.local_rank, where.rank) == (1, 3, None)


@pytest.mark.parametrize(
    "form",
    ["worker-{}.out", "log.{}", "train_{}.log", "w/{}/out.txt", "local_{}.log", "train-77.{}.err", "rank={}.log"],
)
def test_the_only_number_in_which_names_differ_counts_processes(form: str) -> None:
    names = [form.format(number) for number in range(4)]
    assert [FileOrigins(names).of(name, several=True).rank for name in names] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "names",
    [
        ["slurm-77_0.out", "slurm-77_1.out"],
        ["run_0.log", "run_1.log"],
        ["a.1.log", "a.2.log"],
        ["a0/b0.log", "a1/b1.log"],
        ["train-20260501.log", "train-20260502.log"],
        ["one_0.log"],
    ],
)
def test_other_numbers_count_no_processes(names: list[str]) -> None:
    assert {FileOrigins(names).of(name, several=True).rank for name in names} == {None}
