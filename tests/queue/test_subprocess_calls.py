from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from torchtriage.errors import UnreadableLog
from torchtriage.queue.subprocess_calls import CallFailed, Killed, NotStarted, SubprocessPool

MIB = 1 << 20


def make(offset: int) -> Callable[[str, Any], Any]:
    """Returns what the tests ask of the other process."""
    kept = bytearray()

    def do(what: str, value: Any = None) -> Any:
        match what:
            case "add":
                return value + offset
            case "pid":
                return os.getpid()
            case "die":
                os.kill(os.getpid(), value)
            case "exit":
                os._exit(value)
            case "sleep":
                time.sleep(value)
            case "fill":
                kept.extend(bytes(value))
            case "refuse":
                raise UnreadableLog("it can't be read", where="here")
            case "break":
                raise ZeroDivisionError("by zero")
        return None

    return do


def searched_for_garbage() -> Callable[[], bool]:
    loaded = [object()]
    return lambda: any(one is loaded for one in gc.get_objects())


def refuse_to_start() -> Callable[..., Any]:
    raise UnreadableLog("no knowledge")


@pytest.fixture
def processes() -> Iterator[SubprocessPool]:
    opened = SubprocessPool(make, (1,), 2, 60, 512 * MIB)
    yield opened
    opened.close()


def test_loaded_objects_are_excluded_from_garbage_collection() -> None:
    processes = SubprocessPool(searched_for_garbage, (), 1, 60, 512 * MIB)
    try:
        assert processes.call() is False
    finally:
        processes.close()


def test_a_call_has_its_result_from_another_process_which_is_used_again(processes: SubprocessPool) -> None:
    assert processes.call("add", 2) == 3
    pid = processes.call("pid")
    assert pid != os.getpid()
    assert processes.call("pid") == pid


def test_the_functions_exception_reaches_the_caller(processes: SubprocessPool) -> None:
    with pytest.raises(UnreadableLog) as raised:
        processes.call("refuse")
    assert (raised.value.message, raised.value.detail) == ("it can't be read", {"where": "here"})
    with pytest.raises(CallFailed, match="the triage failed: ZeroDivisionError: by zero"):
        processes.call("break")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("die", signal.SIGKILL), "the triage process was killed by SIGKILL"),
        (("exit", 3), "the triage process exited with code 3"),
        (("fill", 1 << 30), "the triage used more memory than the limit of 512 MiB"),
    ],
)
def test_a_call_that_does_not_come_back_fails_alone(
    processes: SubprocessPool, asked: tuple[Any, ...], told: str
) -> None:
    with pytest.raises(CallFailed, match=told):
        processes.call(*asked)
    assert processes.call("add", 2) == 3


def test_a_killed_process_is_distinguished_from_one_that_crashed(processes: SubprocessPool) -> None:
    with pytest.raises(Killed):
        processes.call("die", signal.SIGKILL)
    with pytest.raises(CallFailed) as raised:
        processes.call("die", signal.SIGSEGV)
    assert not isinstance(raised.value, Killed)


def test_a_call_that_takes_too_long_is_ended() -> None:
    processes = SubprocessPool(make, (1,), 1, 2, 512 * MIB)
    with pytest.raises(CallFailed, match=r"longer than 2 seconds"):
        processes.call("sleep", 600)
    assert processes.call("add", 2) == 3
    processes.close()


def test_a_process_that_died_between_two_calls_is_replaced(processes: SubprocessPool) -> None:
    pid = processes.call("pid")
    os.kill(pid, signal.SIGKILL)
    while alive(pid):
        time.sleep(0.01)
    assert processes.call("pid") != pid


def test_renewed_arguments_use_new_processes_and_lose_no_call(processes: SubprocessPool) -> None:
    pid = processes.call("pid")
    processes.renew((10,))
    assert processes.call("add", 2) == 12
    assert processes.call("pid") != pid
    assert not alive(pid)


def test_many_threads_share_the_processes(processes: SubprocessPool) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda number: processes.call("add", number), range(100))) == list(range(1, 101))


def test_a_process_that_cannot_start_says_why() -> None:
    processes = SubprocessPool(refuse_to_start, (), 1, 60, 512 * MIB)
    for _ in range(2):
        with pytest.raises(UnreadableLog, match="no knowledge"):
            processes.call()
    processes.close()


def killed_at_the_start() -> Callable[..., Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def greedy_at_the_start() -> Callable[..., Any]:
    return bytearray(1 << 30).hex


def asleep_at_the_start() -> Callable[..., Any]:
    time.sleep(60)
    raise AssertionError


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (killed_at_the_start, "the triage process was killed by SIGKILL"),
        (greedy_at_the_start, "the triage used more memory than the limit of 512 MiB"),
        (asleep_at_the_start, "the start took longer than 2 seconds and was ended"),
    ],
)
def test_a_process_that_does_not_come_up_is_no_fault_of_the_call(
    make: Callable[..., Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchtriage.queue.subprocess_calls._START", 2 if make is asleep_at_the_start else 120)
    processes = SubprocessPool(make, (), 1, 60, 512 * MIB)
    with pytest.raises(NotStarted, match=f"^cannot start a triage process: {told}$"):
        processes.call()
    processes.close()


class StopsItsReader:
    """Arrives in the other process before its arguments do, and stops it."""

    def __call__(self, *_: Any) -> Any:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return stop_here, ()


def stop_here() -> StopsItsReader:
    os.kill(os.getpid(), signal.SIGSTOP)
    return StopsItsReader()


def test_a_process_that_hangs_before_reading_its_arguments_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtriage.queue.subprocess_calls._START", 2)
    processes = SubprocessPool(StopsItsReader(), (bytes(8 * MIB),), 1, 60, 512 * MIB)
    with pytest.raises(NotStarted):
        processes.call()
    processes.close()


class InterruptsItsReader:
    """Arrives in the other process while that starts, as a Ctrl-C at the service's terminal does."""

    def __call__(self) -> Callable[[], str]:
        return str

    def __reduce__(self) -> tuple[Any, ...]:
        return interrupted_here, ()


def interrupted_here() -> InterruptsItsReader:
    os.kill(os.getpid(), signal.SIGINT)
    return InterruptsItsReader()


def test_ctrl_c_during_a_start_is_handled_by_the_service() -> None:
    processes = SubprocessPool(InterruptsItsReader(), (), 1, 60, 512 * MIB)
    assert processes.call() == ""
    processes.close()


@pytest.mark.parametrize("sent", ["b''", "struct.pack('!i', 1000) + b'cut short'"], ids=["nothing", "a part"])
def test_a_process_whose_owner_dies_while_sending_arguments_ends_silently(sent: str) -> None:
    program = (
        "import multiprocessing, os, struct\n"
        "from torchtriage.queue.subprocess_calls import _serve\n"
        "line, owner = multiprocessing.Pipe()\n"
        f"os.write(owner.fileno(), {sent})\n"
        "owner.close()\n"
        "_serve(line, str, 512 << 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_call_alone_runs_beside_no_other(processes: SubprocessPool) -> None:
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(processes.call if number % 5 else processes.call_alone, "add", number) for number in range(60)
        ]
        assert [call.result(120) for call in calls] == list(range(1, 61))


def test_it_ends_with_the_process_that_started_it() -> None:
    program = (
        "import os, signal\n"
        "from torchtriage.queue.subprocess_calls import SubprocessPool\n"
        "from tests.queue.test_subprocess_calls import make\n"
        "if __name__ == '__main__':\n"
        "    print(SubprocessPool(make, (1,), 1, 60, 512 << 20).call('pid'), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    waiting = threading.Event()
    while alive(int(done.stdout)):
        waiting.wait(0.01)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


def test_a_warmed_process_is_the_one_that_answers(tmp_path: Path) -> None:
    processes = SubprocessPool(make_noting, (tmp_path / "made",), 2, 60, 2**30)
    processes.warm()
    assert (tmp_path / "made").read_text() == "made\n"
    processes.warm()
    assert processes.call() == "made\n"
    processes.close()


def make_noting(path: Path) -> Callable[[], str]:
    with path.open("a") as file:
        file.write("made\n")
    return path.read_text
