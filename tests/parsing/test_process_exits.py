import pytest

from tests.collected import Collected
from torchtriage.domain.event import Where
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.process_exits import ProcessExits


def read(*texts: str) -> Collected:
    processes = Collected(ProcessExits())
    for number, text in enumerate(texts, 1):
        processes.feed(Line(number, text, text, Position(1, number)))
    processes.close()
    return processes


def test_a_cpp_exception_and_its_words_are_one_event() -> None:
    thrown = "terminate called after throwing an instance of 'c10::Error'"
    for texts in ([thrown, "  what():  CUDA error: unknown error"], [f"{thrown} what(): CUDA error: unknown error"]):
        assert [event.text for event in read(*texts).events] == [
            "terminate called: c10::Error: CUDA error: unknown error"
        ]


@pytest.mark.parametrize(
    "text",
    [
        "libc++abi: terminating due to uncaught exception of type std::runtime_error: no such stage",
        "libc++abi.dylib: terminating with uncaught exception of type std::runtime_error: no such stage",
    ],
)
def test_what_clangs_library_shows_of_an_exception_has_the_same_form(text: str) -> None:
    assert [event.text for event in read(text).events] == ["terminate called: std::runtime_error: no such stage"]


def test_a_terminate_without_words_still_counts() -> None:
    assert [event.text for event in read("terminate called without an active exception").events] == [
        "terminate called: std::exception: "
    ]


def test_how_a_spawned_process_ended_has_the_canonical_form_and_its_rank() -> None:
    texts = (
        "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL",
        "Exception: process 1 terminated with exit code 7",
        "Process 2 exit with status code 137.",
        "ERROR:composer.cli.launcher:Rank 5 crashed with exit code -6",
        "Global rank 0 (PID 5094) exited with code -7",
        "Global rank 1 (PID 5095) exited with code -15",
        "Container rank 4 status failed cmd ['python', '-u', 'train.py'] code -9 log log/workerlog.4",
        "ERROR launch_utils.py:604] ABORT!!! Out of all 8 trainers, the trainer process with rank=[6] was aborted.",
        "ERROR:  One or more process (first noticed rank 11) terminated with signal 9",
    )
    lines = [(event.where, event.text, event.rank, event.exit_code) for event in read(*texts).events]
    assert lines == [
        (Where.EXIT, "exitcode -9 SIGKILL rank 3", 3, -9),
        (Where.EXIT, "exitcode 7 rank 1", 1, 7),
        (Where.EXIT, "exitcode 137 rank 2", 2, 137),
        (Where.EXIT, "exitcode -6 SIGABRT rank 5", 5, -6),
        (Where.EXIT, "exitcode -7 SIGBUS rank 0", 0, -7),
        (Where.EXIT, "exitcode -9 SIGKILL rank 4", 4, -9),
        (Where.EXIT, "exitcode 1 rank 6", 6, 1),
        (Where.EXIT, "exitcode -9 SIGKILL rank 11", 11, -9),
    ]


def test_a_process_that_ended_with_0_is_not_a_failure() -> None:
    container = "Container rank 4 status failed cmd ['python', '-u', 'train.py'] code 0 log log/workerlog.4"
    assert read("Process 2 exit with status code 0.", container).events == []


def test_of_several_aborted_trainers_none_is_reported_as_the_first() -> None:
    assert read("ABORT!!! Out of all 8 trainers, the trainer process with rank=[2, 6] was aborted.").events == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[12-16 14:27:10] Exit code: -9", ["exitcode -9 SIGKILL"]),
        ("ERROR 07-04 23:23:23 pool.py:120] Worker pid 3283517 died, exit code: -11", ["exitcode -11 SIGSEGV"]),
        ("Worker pid 3283517 died, exit code: -15", []),  # stopped by its parent
        ("exit code: -99", []),
        ("exit code: 1", []),
        ("failed (exit code: -9) local_rank: 1 (pid: 7)", []),  # torchelastic's, read elsewhere
    ],
)
def test_a_signal_that_a_parent_shows_as_a_status(text: str, expected: list[str]) -> None:
    assert [event.text for event in read(text).events] == expected


def test_the_old_launchers_last_words_show_how_many_workers_there_were() -> None:
    line = "subprocess.CalledProcessError: Command '['/usr/bin/python', '-u', 'train.py', '--local_rank=3']' returned non-zero exit status 1."
    assert read(line).workers == 4
    assert read("step 3 loss 0.1").workers is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("train-worker-3 exited with code 137", -9),
        ("train-worker-1 exited with code 139", -11),
        ("train.service: Main process exited, code=killed, status=9/KILL", -9),
        ("train.service: Main process exited, code=dumped, status=6/ABRT", -6),
        ("Execution failed. User process '/opt/conda/bin/python' exited with status code 139.", -11),
        ("User process '/opt/conda/bin/python' exited with status code -11.", -11),
        ("unexpected failure of trial after restart 2/5: container failed with non-zero exit code: 137", -9),
        ("The replica workerpool0-0 exited with a non-zero status of 137. Termination reason: Error.", -9),
        ("Error for Training job bert-7: Failed. Reason: AlgorithmError: Exit Code: 139", -11),
        ("The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error.", None),
        ("Exit code: 137", -9),
        ("  Exit code:    139", -11),
        ("train-worker-3 exited with code 143", None),
        ("train-worker-3 exited with code 1", None),
        ("train.service: Main process exited, code=exited, status=1/FAILURE", None),
    ],
)
def test_what_containers_and_services_show_of_a_signal(text: str, code: int | None) -> None:
    assert [event.exit_code for event in read(text).events] == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["  Process name: [[29973,1],3]", "  Exit code:    1"], ("exitcode 1 rank 3", 3, None, None, 1)),
        (["   Process name: [prterun-gpu-1-4711@1,3]", "   Exit code:    6"], ("exitcode 6 rank 3", 3, None, None, 6)),
        (["Process name: 2", "Exit code: 139"], ("exitcode -11 SIGSEGV rank 2", 2, None, None, -11)),
        (["Process name: gpu-1[3]", "Exit code: 137"], ("exitcode -9 SIGKILL", None, 3, "gpu-1", -9)),
        (["09:00 || Exit code: 1", "09:00 || Process name: 1"], ("exitcode 1 rank 1", 1, None, None, 1)),
    ],
)
def test_who_left_first_is_next_to_its_status(texts: list[str], expected: tuple[object, ...]) -> None:
    event = read(*texts).events[-1]
    assert (event.text, event.rank, event.local_rank, event.host, event.exit_code) == expected


@pytest.mark.parametrize(
    "texts", [["Process name: 2"], ["Exit code: 1"], ["Process name: 2", "step 3", "Exit code: 1"]]
)
def test_a_name_without_a_status_shows_of_no_end(texts: list[str]) -> None:
    assert read(*texts).events == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Command terminated by signal 9", -9),
        ("2026-05-01 10:00:00,123 INFO exited: train (terminated by SIGKILL; not expected)", -9),
        ("INFO exited: train (terminated by SIGSEGV (core dumped); not expected)", -11),
        ("PM2 | App [train:0] exited with code [0] via signal [SIGABRT]", -6),
        ("        Signal: 11 (SEGV)", -11),
        ("	(0) Abnormal termination (signal 9)", -9),
        ("4411.0            train                 hpc         32     FAILED      0:9", -9),
        ("4411.0            train                 hpc         32     FAILED      1:0", None),
        ("Process 4471 (python3) of user 1000 terminated abnormally with signal 7/BUS, processing...", -7),
        ("Process 4471 (nginx) of user 0 terminated abnormally with signal 7/BUS, processing...", None),
        ("Command terminated by signal 15", None),
        ("App [train:0] exited with code [0] via signal [SIGINT]", None),
        ("INFO exited: train (terminated by SIGTERM; not expected)", None),
    ],
)
def test_what_those_who_wait_for_a_program_show_of_a_signal(text: str, code: int | None) -> None:
    assert [event.exit_code for event in read(text).events] == ([code] if code else [])
