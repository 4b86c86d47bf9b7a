"""Runs a command in a process group of its own: what it writes passes through unchanged, and a bounded copy is kept.

Signals that reach this process go on to the whole group. On a terminal the group is the foreground one, as a shell
would have it, so that Ctrl-C and Ctrl-Z reach it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torchtriage.client.torchtriage_client import Member, Stream, ring_member, streams, whole_file

_TOLD_TO_END = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_FORWARDED = {*_TOLD_TO_END, signal.SIGUSR1, signal.SIGUSR2}
_WAITED = {*_FORWARDED, signal.SIGCHLD, signal.SIGWINCH}
_BLOCKED = {*_WAITED, signal.SIGTTOU}  # the latter: a group in the background takes the terminal back
_PR_SET_PDEATHSIG = 1


class NotKept(Exception):
    """There is no place for a copy of the output."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its status, negative for a signal; whether somebody told it to end, rather than it failing;
    what it wrote. The streams that processes of its own still hold are `open`."""

    status: int
    told: bool
    log: tuple[Member, ...]
    group: int
    open: tuple[Stream, ...]

    def kill_the_rest(self) -> None:
        """Ends what the command left behind in its group, which would be in the way of the next attempt."""
        with contextlib.suppress(OSError):
            os.killpg(self.group, signal.SIGKILL)


def hold_signals() -> None:
    """From here on signals wait for `supervise` and `told_to_end` to take them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)


def release_signals() -> None:
    """They come as before."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)


def told_to_end(seconds: float) -> bool:
    """Waits -> whether somebody told this process to end meanwhile, or before."""
    return signal.sigtimedwait(_TOLD_TO_END, seconds) is not None


def supervise(command: Sequence[str], environment: Mapping[str, str], folder: str) -> Ended:
    """Runs a command to its end -> how that was. `folder` is for the copy of its output, which holds the beginning and
    the end where it is long. Raises NotKept before the command is started, OSError where it can't be.
    """
    try:
        outputs = streams(tempfile.mkdtemp(dir=folder))
    except OSError as error:
        raise NotKept(str(error)) from error
    terminal = _Terminal()
    child = subprocess.Popen(
        command,
        env=environment,
        stdout=outputs[0].child,
        stderr=outputs[-1].child,
        preexec_fn=terminal.start_of_child(),
    )
    for stream in outputs:
        stream.start()
    status, told = _wait(child.pid, outputs, terminal)
    child.returncode = status
    terminal.take()
    still = tuple(stream for stream in outputs if not stream.finish())
    told = told or status in (-signal.SIGINT, 128 + signal.SIGINT)
    return Ended(status, told, tuple(_member(stream) for stream in outputs), child.pid, still)


def _wait(pid: int, outputs: Sequence[Stream], terminal: _Terminal) -> tuple[int, bool]:
    told = False
    while True:
        number = signal.sigwait(_WAITED)
        if number == signal.SIGCHLD:
            changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if changed and os.WIFSTOPPED(status):
                terminal.suspend(pid)
            elif changed:
                return os.waitstatus_to_exitcode(status), told
            continue
        if number == signal.SIGWINCH:
            for stream in outputs:
                stream.resize()
        told = told or number in _TOLD_TO_END
        with contextlib.suppress(OSError):
            os.killpg(pid, number)


class _Terminal:
    """The terminal on standard input, where this process is in its foreground."""

    def __init__(self) -> None:
        self._ours = False
        with contextlib.suppress(OSError):
            self._ours = os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()

    def start_of_child(self) -> Callable[[], None]:
        """-> what the child does before it becomes the command."""
        ours, prctl = self._ours, _prctl()

        def prepare() -> None:
            os.setpgid(0, 0)
            if ours:
                os.tcsetpgrp(0, os.getpid())
            if prctl is not None:
                prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # where this process is killed
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)

        return prepare

    def take(self) -> None:
        if self._ours:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())

    def suspend(self, group: int) -> None:
        """Stops with the command, so that the shell above gets the terminal, and goes on with it."""
        if not self._ours:
            return
        self.take()
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, group)
            os.killpg(group, signal.SIGCONT)


def _prctl() -> Callable[..., int] | None:
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None


def _member(stream: Stream) -> Member:
    """-> what was kept of an output; of a file, what stands in it from where the command began."""
    try:
        if stream.where is not None:
            path, start = stream.where
            return whole_file(stream.name, path, start)
        return ring_member(stream.folder, stream.name)
    except OSError:
        return Member(stream.name, [])
