"""Logs for a demonstration: a launch and what went wrong in it in, the text that it would have printed out.

Everything about the launch is made up from a seed; the messages are the examples of the knowledge base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from torchtriage.domain.entry import Entry, Role
from torchtriage.lazy_regex import lazy_regex

LOCAL = 8  # GPUs of a host
_OF_HOSTS = ("platform", "hardware")
_RAISED = lazy_regex(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Warning|Interrupt)\b.*")
_RANK = lazy_regex(r"(?i)rank\W{0,2}_?\d")  # that a message names, which may not be the one that fails here
_STEP = timedelta(seconds=7)
_SHOWN_WAITING = 96  # ranks that print that they waited


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of a job on some hosts, by `srun -l`, which marks lines with `12: `, or by torchrun."""

    script: str
    hosts: tuple[str, ...]
    began: datetime
    steps: int
    srun: bool
    torch: str

    @property
    def world(self) -> int:
        return LOCAL * len(self.hosts)

    @property
    def failed(self) -> datetime:
        return self.began + timedelta(minutes=3) + self.steps * _STEP


def log_of(launch: Launch, entry: Entry | None, rank: int, chance: Random) -> str:
    """-> the log of a launch in which `rank` failed as `entry` says; None is one that completed."""
    lines = [*_start(launch), *_training(launch, chance)]
    if entry is None:
        lines += [_say(launch, 0, f"{_at(launch.failed)} | Training completed, model saved to /ckpt/final")]
        return "\n".join(lines) + "\n"
    # A worker raises what is its own fault; what hits it from outside is told by others.
    own = entry.owner not in _OF_HOSTS and Role.PROCESS_END not in entry.roles
    known = entry.messages() or tuple(case.example for case in entry.cases if case.example)
    told = [example for example in known if not _RANK.search(example)] or list(known)
    told = [example for example in told if bool(_RAISED.match(example)) == own] or told
    message = chance.choice(told).rstrip("\n").split("\n")
    of_host = entry.owner in _OF_HOSTS and not _RAISED.match(message[0])
    lines += _of_host(launch, rank, message) if of_host else _of_worker(launch, rank, message, chance)
    lines += _waiting(launch, rank)
    return "\n".join([*lines, *_report(launch, rank, chance)]) + "\n"


def _start(launch: Launch) -> Iterator[str]:
    if not launch.srun:
        yield (
            f"W{launch.began:%m%d %H:%M:%S}.104000 4101 torch/distributed/run.py:874] Setting OMP_NUM_THREADS "
            "environment variable for each process to be 1 in default, to avoid your system being overloaded"
        )
    yield _say(launch, 0, f"{_at(launch.began)} | torch {launch.torch}, world size {launch.world}")
    for number, host in enumerate(launch.hosts):
        yield _say(
            launch, number * LOCAL, f"{host}:{5100 + number}:{5100 + number} [0] NCCL INFO Bootstrap: Using eth0"
        )


def _training(launch: Launch, chance: Random) -> Iterator[str]:
    shown = sorted({0, *range(max(0, launch.steps - 12), launch.steps)})
    for step in shown:
        at = launch.began + timedelta(minutes=3) + step * _STEP
        loss = 10.8 / (1 + step / 90) + chance.uniform(0, 0.1)
        yield _say(
            launch,
            0,
            f"{_at(at)} | step {step} | loss {loss:.4f} | lr 3.0e-04 | grad norm {chance.uniform(0.2, 1):.3f}",
        )


def _of_host(launch: Launch, rank: int, message: list[str]) -> Iterator[str]:
    host = launch.hosts[rank // LOCAL]
    for line in message:
        notice = line.startswith(("srun:", "slurmstepd:"))
        yield line if notice else f"{launch.failed:%Y-%m-%dT%H:%M:%S} {host} kernel: {line}"


def _of_worker(launch: Launch, rank: int, message: list[str], chance: Random) -> Iterator[str]:
    if _RAISED.match(message[0]):
        module, function = chance.choice(_PLACES)
        message = [
            "Traceback (most recent call last):",
            f'  File "/work/{launch.script}", line {chance.randrange(60, 400)}, in <module>',
            "    main()",
            f'  File "/work/{module}.py", line {chance.randrange(20, 300)}, in {function}',
            f"    return self.{function}_inner(batch)",
            *message,
        ]
    for line in message:
        yield _say(launch, rank, line, raised=True)


_PLACES = (("model", "forward"), ("data/loader", "collate"), ("train/loop", "train_step"), ("optim/step", "update"))


def _waiting(launch: Launch, rank: int) -> Iterator[str]:
    """What the others print: each waits for a collective that never ends."""
    stamp = (launch.failed + timedelta(minutes=10)).strftime("%m%d %H:%M:%S")
    number = launch.steps * 4 + 1
    for other in [known for known in range(launch.world) if known != rank][:_SHOWN_WAITING]:
        yield _say(
            launch,
            other,
            f"[rank{other}]:[E{stamp}.{other:03}000000 ProcessGroupNCCL.cpp:616] [Rank {other}] Watchdog caught "
            f"collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=25165824, "
            f"NumelOut=25165824, Timeout(ms)=600000) ran for 600{other:03} milliseconds before timing out.",
        )


def _report(launch: Launch, rank: int, chance: Random) -> Iterator[str]:
    ended = launch.failed + timedelta(minutes=10, seconds=4)
    pid, host = chance.randrange(4200, 60000), launch.hosts[rank // LOCAL]
    if launch.srun:
        yield f"srun: error: {host}: task {rank}: Exited with exit code 1"
        yield f"slurmstepd: error: *** STEP {pid}.0 ON {launch.hosts[0]} CANCELLED AT {ended:%Y-%m-%dT%H:%M:%S} ***"
        return
    yield (
        f"E{ended:%m%d %H:%M:%S}.220000 4101 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
        f"(exitcode: 1) local_rank: {rank % LOCAL} (pid: {pid}) of binary: /usr/bin/python3"
    )
    rule, dashes = "=" * 60, "-" * 60
    yield from (rule, f"{launch.script} FAILED", dashes, "Failures:", "  <NO_OTHER_FAILURES>", dashes)
    yield from ("Root Cause (first observed failure):", "[0]:", f"  time      : {ended:%Y-%m-%d_%H:%M:%S}")
    yield from (f"  host      : {host}", f"  rank      : {rank} (local_rank: {rank % LOCAL})")
    yield from (f"  exitcode  : 1 (pid: {pid})", "  error_file: <N/A>", rule)


def _say(launch: Launch, rank: int, text: str, raised: bool = False) -> str:
    if launch.srun:
        return f"{rank:>{len(str(launch.world - 1))}}: {text}"
    return f"[default{rank % LOCAL}]:{f'[rank{rank}]: ' if raised else ''}{text}"


def _at(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")
