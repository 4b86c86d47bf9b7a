"""Calls one function in separate processes, within limits of time and memory.

If a process dies or takes too long, only its own call fails, and the next call starts a new process.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import LifoQueue
from typing import Any

from torchtriage.errors import TriageError

LARGE = 64 << 20  # bytes; the triage of a larger log takes long
_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
_START = 120  # seconds within which a new process must be ready
_NICE = 10  # lower priority than the owner, which answers requests
_GONE = 5  # seconds within which a killed process must be gone
# Allocations between two garbage collections; Python's default of 700 is reached in a few lines of a log.
_GARBAGE = 10_000

Make = Callable[..., Callable[..., Any]]


def slots_for_large_logs(threads: int) -> int:
    """Returns how many of the threads may handle large logs, so that the others have room."""
    return max(1, threads // 2 - 1)


class CallFailed(TriageError):
    """The call did not end normally: it ran out of time or memory, or its process died."""

    code = "triage_failed"


class Killed(CallFailed):
    """The process was killed by SIGKILL, as the kernel does when memory runs out."""


class Interrupted(TriageError):
    """The service is stopping, and the call was ended. The same call can succeed in another process."""

    status = 503
    code = "stopping"


class NotStarted(Interrupted):
    """No process could be started. The same call can succeed later."""

    code = "not_started"


class SubprocessPool:
    """At most `count` processes, started when needed. Thread-safe."""

    def __init__(self, make: Make, arguments: tuple[Any, ...], count: int, seconds: float | None, memory: int) -> None:
        """Each process calls `make(*arguments)` once, which returns the function to call. A call may take `seconds`
        (None: no limit) and `memory` bytes. The arguments are pickled now, until `renew` replaces them."""
        self._make, self._arguments = make, pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL)
        self._seconds, self._memory = seconds, memory
        # Last in, first out: if few processes are needed, the others never start.
        self._idle: LifoQueue[_Process | None] = LifoQueue()
        self._busy: set[_Process] = set()
        self._interrupted = False
        self._count = count
        # Two callers that each have some of the processes would wait for each other forever.
        self._gathering = threading.Lock()
        for _ in range(count):
            self._idle.put(None)

    def renew(self, arguments: tuple[Any, ...]) -> None:
        """Calls `make` with other arguments from now on. Running calls end with the old ones."""
        self._arguments = pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL)

    def call(self, *arguments: Any) -> Any:
        """Waits for a free process and returns the function's result.

        Raises CallFailed, Interrupted and the errors of the function.
        """
        return self._called(arguments, self._idle.get())

    def call_alone(self, *arguments: Any) -> Any:
        """Like `call`, but waits until all running calls have ended, and runs without other processes."""
        with self._gathering:
            process, *others = [self._idle.get() for _ in range(self._count)]
        for other in others:
            if other is not None:
                other.end()
        try:
            return self._called(arguments, process)
        finally:
            for _ in others:
                self._idle.put(None)

    def _called(self, arguments: tuple[Any, ...], process: _Process | None) -> Any:
        """Calls the function in an idle or new process, and puts the process back."""
        try:
            self._check_interrupted()
            if process is not None and process.made_with is not self._arguments:
                process.end()
                process = None
            if process is None or not process.is_alive():
                process = _Process(self._make, self._arguments, self._memory)
            self._busy.add(process)
            self._check_interrupted()
            answer = process.ask(arguments, self._seconds)
        except BaseException as error:
            if process is not None:
                process.end()
                self._busy.discard(process)
            process = None
            if isinstance(error, CallFailed):
                self._check_interrupted()  # the interruption may be the reason of the failure
            raise
        finally:
            self._idle.put(process)
        self._busy.discard(process)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def warm(self) -> None:
        """Starts a process if none is idle, so that the next call need not wait. Ignores errors."""
        process = self._idle.get()
        try:
            if process is None:
                process = _Process(self._make, self._arguments, self._memory)
        except TriageError:
            return  # the next call gets the same error and reports it
        finally:
            self._idle.put(process)

    def interrupt(self) -> None:
        """Ends running calls and refuses new ones."""
        self._interrupted = True
        for process in list(self._busy):
            process.kill()

    def close(self) -> None:
        """Ends all processes after their calls have ended."""
        for _ in range(self._count):
            process = self._idle.get()
            if process is not None:
                process.end()

    def _check_interrupted(self) -> None:
        if self._interrupted:
            raise Interrupted("the service is shutting down") from None


class _Process:
    def __init__(self, make: Make, arguments: bytes, memory: int) -> None:
        """Raises NotStarted if the process does not start, and the errors of `make`."""
        self.made_with = arguments
        self._line, end = _SPAWN.Pipe()
        self._process: SpawnProcess = _SPAWN.Process(
            target=_serve, args=(end, make, memory), name="triage", daemon=True
        )
        try:
            with _starting, _block_interrupts():
                self._process.start()
        except OSError as error:  # the system has no resources for another process
            self._line.close()
            raise NotStarted(f"cannot start a triage process: {error.strerror}") from error
        finally:
            end.close()
        try:
            self._make(arguments)
        except BaseException as error:
            self.end()
            if isinstance(error, CallFailed):
                raise NotStarted(f"cannot start a triage process: {error.message}") from error
            raise

    def _make(self, arguments: bytes) -> None:
        """Creates the function in the process. Raises CallFailed and the errors of `make`."""
        # If the process does not read its arguments, send_bytes blocks until the process is killed.
        patience = threading.Timer(_START, self.kill)
        patience.start()
        try:
            self._line.send_bytes(arguments)
        except OSError:
            raise self._exit_error() from None
        finally:
            patience.cancel()
        problem = self._receive(_START, "start")
        if isinstance(problem, Exception):
            raise problem

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def ask(self, arguments: tuple[Any, ...], seconds: float | None) -> Any:
        """Returns the function's result, or the exception that it raised. Raises CallFailed."""
        try:
            self._line.send(arguments)
        except OSError:
            raise self._exit_error() from None
        return self._receive(seconds, "triage")

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self._line.close()  # an idle process ends when its pipe is closed
        self._process.kill()
        self._process.join(_GONE)

    def _receive(self, seconds: float | None, what: str) -> Any:
        try:
            if self._line.poll(seconds):
                return self._line.recv()
        except (EOFError, OSError):
            raise self._exit_error() from None
        raise CallFailed(f"the {what} took longer than {seconds:g} seconds and was ended")

    def _exit_error(self) -> CallFailed:
        self._process.join(_GONE)
        code = self._process.exitcode
        if code is not None and code < 0:
            message = f"the triage process was killed by {signal.Signals(-code).name}"
            return Killed(message) if code == -signal.SIGKILL else CallFailed(message)
        return CallFailed(f"the triage process exited with code {code}")


_starting = threading.Lock()  # multiprocessing starts one process at a time


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Blocks Ctrl-C (SIGINT) for processes started meanwhile, until they can ignore it."""
    resource_tracker.ensure_running()  # starting it later would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(line: Connection, make: Make, memory: int) -> None:
    """Runs in the other process until the pipe is closed, by its owner or by the owner's death."""
    # Ctrl-C goes to all processes of a terminal; the service ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.nice(_NICE)
    # Set first, because loaded modules count, too.
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        arguments = line.recv()
    except (EOFError, OSError):  # the owner died before or while it sent the arguments
        return
    function = result_or_error(make, arguments, memory)
    if isinstance(function, Exception):
        line.send(function)
        return
    # What was loaded stays until the end. Garbage collections of all of it took a tenth of each call.
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    with suppress(EOFError, OSError):
        line.send(None)
        while True:
            line.send(result_or_error(function, line.recv(), memory))


def result_or_error(function: Callable[..., Any], arguments: tuple[Any, ...], memory: int) -> Any:
    """Returns the function's result, or an exception that can be pickled."""
    try:
        return function(*arguments)
    except TriageError as error:
        return error
    except MemoryError:
        return CallFailed(f"the triage used more memory than the limit of {memory >> 20} MiB")
    except Exception as error:  # noqa: BLE001  the caller reports any error
        return CallFailed(f"the triage failed: {type(error).__name__}: {error}")
