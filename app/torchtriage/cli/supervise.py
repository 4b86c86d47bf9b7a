"""Runs a command in its own process group. Its output passes through unchanged, and a bounded copy is kept.

Signals to this process are forwarded to the whole group. On a terminal the group becomes the foreground group, as a
shell would do it, so that Ctrl-C and Ctrl-Z reach it.
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

_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_FORWARDED = {*_STOP_SIGNALS, signal.SIGUSR1, signal.SIGUSR2}
_WAITED = {*_FORWARDED, signal.SIGCHLD, signal.SIGWINCH}
# SIGTTOU, because this process takes the terminal back while it is in the background.
_BLOCKED = {*_WAITED, signal.SIGTTOU}
_PR_SET_PDEATHSIG = 1


class NotKept(Exception):
    """The copy of the output cannot be created."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    `status` is its exit status, or the negative number of a signal. `stopped` is true if a signal asked it to end, so
    it did not fail by itself. `log` is the copy of its output. `group` is its process group. `open` are the streams
    that other processes of the command still hold open.
    """

    status: int
    stopped: bool
    log: tuple[Member, ...]
    group: int
    open: tuple[Stream, ...]

    def kill_the_rest(self) -> None:
        """Kills the processes that the command left in its group, because they could disturb the next attempt."""
        with contextlib.suppress(OSError):
            os.killpg(self.group, signal.SIGKILL)


def hold_signals() -> None:
    """Blocks signals until `supervise` or `wait_for_stop_signal` takes them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)


def release_signals() -> None:
    """Unblocks the signals."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)


def wait_for_stop_signal(seconds: float) -> bool:
    """Waits up to `seconds`. Returns whether a signal asked this process to end, during or before the wait."""
    return signal.sigtimedwait(_STOP_SIGNALS, seconds) is not None


def supervise(command: Sequence[str], environment: Mapping[str, str], folder: str) -> Ended:
    """Runs a command to its end and returns how it ended. The copy of its output goes to `folder`; of long output, only
    the beginning and the end are kept. Raises NotKept before the command starts, and OSError if it cannot be
    started."""
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
    status, stopped = _wait(child.pid, outputs, terminal)
    child.returncode = status
    terminal.take()
    still = tuple(stream for stream in outputs if not stream.finish())
    stopped = stopped or status in (-signal.SIGINT, 128 + signal.SIGINT)
    return Ended(status, stopped, tuple(_member(stream) for stream in outputs), child.pid, still)


def _wait(pid: int, outputs: Sequence[Stream], terminal: _Terminal) -> tuple[int, bool]:
    stopped = False
    while True:
        number = signal.sigwait(_WAITED)
        if number == signal.SIGCHLD:
            changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if changed and os.WIFSTOPPED(status):
                terminal.suspend(pid)
            elif changed:
                return os.waitstatus_to_exitcode(status), stopped
            continue
        if number == signal.SIGWINCH:
            for stream in outputs:
                stream.resize()
        stopped = stopped or number in _STOP_SIGNALS
        with contextlib.suppress(OSError):
            os.killpg(pid, number)


class _Terminal:
    """The terminal on standard input, if this process is in its foreground group."""

    def __init__(self) -> None:
        self._ours = False
        with contextlib.suppress(OSError):
            self._ours = os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()

    def start_of_child(self) -> Callable[[], None]:
        """Returns what the child process runs before it executes the command."""
        ours, prctl = self._ours, _prctl()

        def prepare() -> None:
            os.setpgid(0, 0)
            if ours:
                os.tcsetpgrp(0, os.getpid())
            if prctl is not None:
                prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # end the command if this process is killed
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)

        return prepare

    def take(self) -> None:
        if self._ours:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())

    def suspend(self, group: int) -> None:
        """Stops this process when the command stops, so that the shell gets the terminal. Continues both together."""
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
    """Returns the copy of one output stream. If the stream is redirected to a file, returns what the command wrote to
    that file."""
    try:
        if stream.where is not None:
            path, start = stream.where
            return whole_file(stream.name, path, start)
        return ring_member(stream.folder, stream.name)
    except OSError:
        return Member(stream.name, [])
