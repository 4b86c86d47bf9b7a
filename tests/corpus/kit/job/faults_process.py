"""How a rank's process ends without a word from Python."""

# mypy: ignore-errors

import ctypes
import os
import signal

from faults import ONCE, fault


def _die(number):
    os.kill(os.getpid(), number)


@fault(
    ("process.oom-killed", "k8s.oom-killed", "slurm.oom"),
    ("exitcode: -9", "exitcode  : -9", "SIGKILL", "signal 9", "Killed"),
    retry=ONCE,
)
def killed(job):
    _die(signal.SIGKILL)


@fault(
    "process.sigsegv", ("exitcode: -11", "exitcode  : -11", "SIGSEGV", "Segmentation fault", "signal 11"), retry=ONCE
)
def segv(job):
    _die(signal.SIGSEGV)


@fault(
    "process.sigsegv", ("exitcode: -11", "exitcode  : -11", "SIGSEGV", "Segmentation fault", "signal 11"), retry=ONCE
)
def null_read(job):
    ctypes.string_at(0)


@fault("process.sigsegv", "Fatal Python error: Segmentation fault", retry=ONCE)
def segv_with_stacks(job):
    import faulthandler

    faulthandler.enable()
    ctypes.string_at(0)


@fault(
    ("process.sigbus", "dataloader.shm-bus-error"),
    ("exitcode: -7", "exitcode  : -7", "SIGBUS", "Bus error", "signal 7"),
    retry=ONCE,
)
def bus(job):
    _die(signal.SIGBUS)


@fault(
    "process.sigfpe", ("exitcode: -8", "exitcode  : -8", "SIGFPE", "Floating point exception", "signal 8"), retry=ONCE
)
def fpe(job):
    _die(signal.SIGFPE)


@fault(
    "process.illegal-instruction",
    ("exitcode: -4", "exitcode  : -4", "SIGILL", "Illegal instruction", "signal 4"),
    retry=ONCE,
)
def illegal(job):
    _die(signal.SIGILL)


@fault("process.sigabrt", ("exitcode: -6", "exitcode  : -6", "SIGABRT", "Aborted", "signal 6"), retry=ONCE)
def aborted(job):
    os.abort()


@fault(
    ("elastic.sigterm", "slurm.cancelled", "slurm.preempted"),
    ("exitcode: -15", "exitcode  : -15", "SIGTERM", "Terminated", "signal 15"),
    retry=ONCE,
)
def terminated(job):
    _die(signal.SIGTERM)


@fault(
    ("process.fork-bomb", "host.cpu-overload"),
    ("RuntimeError: can't start new thread", "Resource temporarily unavailable"),
    retry=("no", "once"),
)
def threads_refused(job):
    import resource
    import threading

    if os.getuid() == 0:
        os.setuid(65534)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    for _ in range(8):
        threading.Thread(target=signal.pause, daemon=True).start()
