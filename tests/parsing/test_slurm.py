import pytest

from tests.collected import Collected
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.slurm import Slurm

BAR = " ".join(f"{done:3}%|{'#' * 10}| {done}/100 [00:40<10:00,  6.38s/it]" for done in range(4))


@pytest.mark.parametrize(
    ("text", "host", "rank"),
    [
        ("srun: error: gpu-01: task 3: Killed", "gpu-01", 3),
        ("srun: error: gpu-01: tasks 0-3: Exited with exit code 1", "gpu-01", None),
        ("srun: error: gpu[001-002]: tasks 0-15: Exited with exit code 1", None, None),
        ("srun: error: gpu[001]: task 1: Segmentation fault (core dumped)", "gpu001", 1),
        ("slurmstepd-gpu003: error: Detected 1 oom_kill event in StepId=31.0. Some of the step tasks have been OOM Killed.", "gpu003", None),
        ("slurmstepd: error: *** JOB 31 ON gpu-01 CANCELLED AT 2026-05-01T09:00:00 DUE TO TIME LIMIT ***", "gpu-01", None),
        (f"{BAR}slurmstepd: error: *** JOB 31 ON gpu-01 CANCELLED AT 2026-05-01T09:00:00 DUE TO TIME LIMIT ***", "gpu-01", None),
        ("srun: error: Node failure on gpu-7", "gpu-7", None),
        ("slurmstepd: error: *** JOB 31 ON gpu-[1-2] CANCELLED AT 2026-05-01T09:00:00 DUE TO NODE FAILURE ***", None, None),
        ("srun: error: Task launch for StepId=31.0 failed on node gpu-7: Socket timed out on send/recv operation", "gpu-7", None),
        ("salloc: Prolog failure on node gpu-7", "gpu-7", None),
        ("[2026-05-01T09:00:00.500] [31.0] error: *** STEP 31.0 ON gpu-7 CANCELLED AT 2026-05-01T09:00:00 ***", "gpu-7", None),
        ("slurmstepd: error:  mpi/pmix_v4: pmixp_p2p_send: gpu-7 [0]: pmixp_utils.c:469: send failed", "gpu-7", None),
    ],
)  # fmt: skip
def test_slurms_lines_name_host_and_task(text: str, host: str | None, rank: int | None) -> None:
    scheduler = Collected(Slurm())
    assert scheduler.feed(Line(1, text, text, Position(1, 1)))
    assert (scheduler.events[0].host, scheduler.events[0].rank) == (host, rank)


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: _is_a_lwp: 1 read() attempts on /proc/4711/status failed: No such process",
        "srun: job 31 queued and waiting for resources",
        "srun: job 31 has been allocated resources",
        "srun: Job 31 step creation temporarily disabled, retrying (Requested nodes are busy)",
        "slurmstepd: error: couldn't chdir to `/scratch/run': No such file or directory: going to /tmp instead",
        "slurmstepd: error: TMPDIR [/scratch/tmp] is not writeable",
        "slurmstepd: error: Setting TMPDIR to /tmp",
        "slurmstepd: error: _cgroup_procs_check: failed on path (null)/cgroup.procs: No such file or directory",
        "slurmstepd: error: Cannot write to cgroup.procs for (null)",
        "slurmstepd: error: Unable to move pid 20417 to init root cgroup (null)",
        "slurmstepd: error: NVML: Failed to get Compute running process count(999): Unknown Error",
        "slurmstepd: error: _set_limit: RLIMIT_NOFILE : max:51200 < req:131072",
        "slurmstepd: error: Can't propagate RLIMIT_NOFILE of 131072 from submit host: Operation not permitted",
        "srun: error: unpack_header: protocol_version 65363 not supported",
        "srun: error: wrap_on_data: [203.0.113.7:13610] on_data returned rc: Incompatible versions of client and server code",
    ],
)
def test_what_good_jobs_print_too_is_not_an_event(line: str) -> None:
    assert not Collected(Slurm()).feed(Line(1, line, line, Position(1, 1)))


@pytest.mark.parametrize(
    "raw",
    [
        "[2026-05-01T09:00:00.500] fatal: CLUSTER NAME MISMATCH.",
        "May 01 09:00:00 head-1 slurmctld[2210]: fatal: CLUSTER NAME MISMATCH.",
        "slurm-controller-0 [2026-05-01T09:00:00.500] fatal: CLUSTER NAME MISMATCH.",
    ],
)
def test_a_daemons_last_words_say_whose_they_are(raw: str) -> None:
    scheduler = Collected(Slurm())
    assert scheduler.feed(Line(1, raw, raw[raw.index("fatal") :], Position(1, 1)))
    assert scheduler.events[0].text == "slurm daemon: fatal: CLUSTER NAME MISMATCH."


def test_other_programs_are_fatal_too() -> None:
    line = "fatal: not a git repository (or any of the parent directories): .git"
    assert not Collected(Slurm()).feed(Line(1, line, line, Position(1, 1)))


@pytest.mark.parametrize(
    ("lines", "placed"),
    [
        (["execve(): python: No such file or directory"], [("gpu-2", 3)]),
        (["execve(): /env/bin/torchrun: Permission denied"], [("gpu-2", None)]),  # whose task is a host, not a rank
        (["execve(): python: No such file or directory"] * 2, [(None, None)] * 2),  # which of them left there?
    ],
    ids=["a worker", "an agent", "two of them"],
)
def test_what_did_not_start_is_placed_where_its_task_left(
    lines: list[str], placed: list[tuple[str | None, int | None]]
) -> None:
    scheduler = Collected(Slurm(("torchrun",)))
    for text in [f"slurmstepd: error: {line}" for line in lines] + [
        "srun: error: gpu-2: task 3: Exited with exit code 2"
    ]:
        assert scheduler.feed(Line(1, text, text, Position(1, 1)))
    assert [(event.host, event.rank) for event in scheduler.events[:-1]] == placed


def test_what_did_not_start_is_reported_though_no_one_says_where() -> None:
    scheduler = Collected(Slurm())
    text = "slurmstepd: error: execve(): python: No such file or directory"
    assert scheduler.feed(Line(1, text, text, Position(1, 1)))
    scheduler.close()
    assert [event.text for event in scheduler.events] == [text]


_LEFT = "srun: error: n006: task 0: Exited with exit code 130"
_REVOKED = "salloc: Job allocation 411 has been revoked."


@pytest.mark.parametrize(
    ("above", "text", "expected"),
    [
        ("exit", _LEFT, 0),
        ("bash-4.4$ exit", _LEFT, 0),
        ("$ logout", _LEFT, 0),
        ("+ exit 1", _LEFT, 1),
        ("", _LEFT, 1),
        ("salloc: Relinquishing job allocation 411", _REVOKED, 0),
        ("step 100 loss 2.1", _REVOKED, 1),
    ],
)
def test_a_shell_that_someone_left_is_not_a_failed_task(above: str, text: str, expected: int) -> None:
    scheduler = Collected(Slurm())
    assert scheduler.feed(Line(2, text, text, Position(1, 2)), above)
    assert len(scheduler.events) == expected


@pytest.mark.parametrize(
    "before", ["", " 22%|██▏       | 11/50 [1:57:05<6:54:42, 638.01s/it]", '$ srun hostname || echo "failed"']
)
def test_sruns_word_after_a_line_that_had_not_ended(before: str) -> None:
    scheduler = Collected(Slurm())
    text = f"{before}srun: error: n006: task 3: Exited with exit code 123"
    assert scheduler.feed(Line(2, text, text, Position(1, 2)))
    assert [(event.rank, event.host) for event in scheduler.events] == [(3, "n006")]


def test_what_srun_ended_because_another_task_failed_is_not_a_failure() -> None:
    scheduler = Collected(Slurm())
    ended = "srun: error: n007: task 0: Terminated"
    for number, text in enumerate([ended, "srun: error: n006: task 3: Exited with exit code 1", ended], 1):
        assert scheduler.feed(Line(number, text, text, Position(1, number)))
    assert [event.rank for event in scheduler.events] == [0, 3]


def test_tasks_that_all_got_the_signal_are_reported() -> None:
    scheduler = Collected(Slurm())
    for number, said in enumerate(["Exited with exit code 143", "Terminated"]):
        text = f"srun: error: n007: task {number}: {said}"
        assert scheduler.feed(Line(number + 1, text, text, Position(1, number + 1)))
    assert [event.rank for event in scheduler.events] == [0, 1]
