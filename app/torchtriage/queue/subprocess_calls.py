"""One function, called in processes of their own: arguments in, its result out, within limits of time and memory.

A process that dies or takes too long ends nothing but its own call, and the next call starts another.
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

LARGE = 64 << 20  # bytes of a log whose triage takes a while
_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy the locks that other threads hold
_START = 120  # seconds in which a new process must be ready
_NICE = 10  # the owner, which answers people and senders, goes first
_GONE = 5  # seconds in which a process that was told to end does
_GARBAGE = 10_000  # objects that are made between two searches for garbage; Python's 700 are some lines of a log

Make = Callable[..., Callable[..., Any]]


def places_of_large(threads: int) -> int:
    """-> how many of them may have large logs in hand: as many as leave the others room."""
    return max(1, threads // 2 - 1)


class CallFailed(TriageError):
    """The call did not come back: out of time, out of memory, or its process died."""

    code = "triage_failed"


class Killed(CallFailed):
    """Its process was ended by SIGKILL, as the kernel does where memory runs out."""


class Interrupted(TriageError):
    """The service ends, and the call with it; the same call can work in another."""

    status = 503
    code = "stopping"


class NotStarted(Interrupted):
    """No process came up for the call, which is no fault of the call; the same call can work later."""

    code = "not_started"


class SubprocessPool:
    """At most `count` processes, started when they are needed. Safe to call from many threads."""

    def __init__(self, make: Make, arguments: tuple[Any, ...], count: int, seconds: float | None, memory: int) -> None:
        """`make(*arguments)` is called once in each process, and gives the function; a call may take `seconds`, or any
        time, and `memory` bytes. All processes get the arguments as they are now, until `renew`.
        """
        self._make, self._arguments = make, pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL)
        self._seconds, self._memory = seconds, memory
        # The one that was used last comes first, so that where few are needed the others are never started.
        self._idle: LifoQueue[_Process | None] = LifoQueue()
        self._busy: set[_Process] = set()
        self._interrupted = False
        self._count = count
        self._gathering = threading.Lock()  # two that each held some of the processes would wait for ever
        for _ in range(count):
            self._idle.put(None)

    def renew(self, arguments: tuple[Any, ...]) -> None:
        """Has `make` called with other arguments from now on; calls under way end with the ones before."""
        self._arguments = pickle.dumps(arguments, protocol=pickle.HIGHEST_PROTOCOL)

    def call(self, *arguments: Any) -> Any:
        """-> what the function returns, once a process is free.

        Raises CallFailed, Interrupted, and what the function raises.
        """
        return self._called(arguments, self._idle.get())

    def call_alone(self, *arguments: Any) -> Any:
        """The same, once all calls under way have come back, and with no other process beside it."""
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
        """Calls in an idle process, or a new one, and puts it back."""
        try:
            self._go_on()
            if process is not None and process.made_with is not self._arguments:
                process.end()
                process = None
            if process is None or not process.is_alive():
                process = _Process(self._make, self._arguments, self._memory)
            self._busy.add(process)
            self._go_on()
            answer = process.ask(arguments, self._seconds)
        except BaseException as error:
            if process is not None:
                process.end()
                self._busy.discard(process)
            process = None
            if isinstance(error, CallFailed):
                self._go_on()  # it may have failed because it was interrupted
            raise
        finally:
            self._idle.put(process)
        self._busy.discard(process)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def warm(self) -> None:
        """Starts a process where none is idle, so that the next call need not; says nothing where it can't."""
        process = self._idle.get()
        try:
            if process is None:
                process = _Process(self._make, self._arguments, self._memory)
        except TriageError:
            return  # the next call meets the same, and tells it
        finally:
            self._idle.put(process)

    def interrupt(self) -> None:
        """Ends the calls under way, and refuses those that come."""
        self._interrupted = True
        for process in list(self._busy):
            process.kill()

    def close(self) -> None:
        """Ends all processes, once their calls have come back."""
        for _ in range(self._count):
            process = self._idle.get()
            if process is not None:
                process.end()

    def _go_on(self) -> None:
        if self._interrupted:
            raise Interrupted("the service is shutting down") from None


class _Process:
    def __init__(self, make: Make, arguments: bytes, memory: int) -> None:
        """Raises NotStarted where it doesn't come up, and what `make` raises."""
        self.made_with = arguments
        self._line, end = _SPAWN.Pipe()
        self._process: SpawnProcess = _SPAWN.Process(
            target=_serve, args=(end, make, memory), name="triage", daemon=True
        )
        try:
            with _starting, _undisturbed():
                self._process.start()
        except OSError as error:  # the system has no room for one more
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
        """Has the function made. Raises CallFailed, and what `make` raises."""
        # What does not read what it is given holds up its giver, until it is ended.
        patience = threading.Timer(_START, self.kill)
        patience.start()
        try:
            self._line.send_bytes(arguments)
        except OSError:
            raise self._death() from None
        finally:
            patience.cancel()
        problem = self._receive(_START, "start")
        if isinstance(problem, Exception):
            raise problem

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def ask(self, arguments: tuple[Any, ...], seconds: float | None) -> Any:
        """-> what the function returned, or the exception that it raised. Raises CallFailed."""
        try:
            self._line.send(arguments)
        except OSError:
            raise self._death() from None
        return self._receive(seconds, "triage")

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self._line.close()  # an idle one ends by that
        self._process.kill()
        self._process.join(_GONE)

    def _receive(self, seconds: float | None, what: str) -> Any:
        try:
            if self._line.poll(seconds):
                return self._line.recv()
        except (EOFError, OSError):
            raise self._death() from None
        raise CallFailed(f"the {what} took longer than {seconds:g} seconds and was ended")

    def _death(self) -> CallFailed:
        self._process.join(_GONE)
        code = self._process.exitcode
        if code is not None and code < 0:
            message = f"the triage process was killed by {signal.Signals(-code).name}"
            return Killed(message) if code == -signal.SIGKILL else CallFailed(message)
        return CallFailed(f"the triage process exited with code {code}")


_starting = threading.Lock()  # multiprocessing starts one process at a time


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A process that is started meanwhile holds back Ctrl-C until it can ignore it."""
    resource_tracker.ensure_running()  # whose start would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(line: Connection, make: Make, memory: int) -> None:
    """What runs in the other process, until the pipe is closed: by its owner, or by the owner's death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the service ends them
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.nice(_NICE)
    # Set before anything is loaded: what is loaded counts too.
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        arguments = line.recv()
    except (EOFError, OSError):  # the owner died before it began to give them, or while it did
        return
    function = result_or_error(make, arguments, memory)
    if isinstance(function, Exception):
        line.send(function)
        return
    # What was loaded stays until the end. To search all of it for garbage again and again took a tenth of each call.
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    with suppress(EOFError, OSError):
        line.send(None)
        while True:
            line.send(result_or_error(function, line.recv(), memory))


def result_or_error(function: Callable[..., Any], arguments: tuple[Any, ...], memory: int) -> Any:
    """-> what the function returns, or an exception that can travel to another process."""
    try:
        return function(*arguments)
    except TriageError as error:
        return error
    except MemoryError:
        return CallFailed(f"the triage used more memory than the limit of {memory >> 20} MiB")
    except Exception as error:  # noqa: BLE001  whatever it is, it is told where the call came from
        return CallFailed(f"the triage failed: {type(error).__name__}: {error}")
