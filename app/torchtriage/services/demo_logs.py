"""Logs for a demonstration: returns the text that a launch with a given failure would have printed.

A seed determines everything about the launch. The messages come from the vocabulary list demo-messages, in which each
line names the program that writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

LOCAL = 8  # GPUs per host
_STEP = timedelta(seconds=7)
_SHOWN_WAITING = 96  # maximum ranks that print a timeout
_SHOWN_ALIKE = 16  # maximum ranks that print an exception that all of them raise
SCHEDULERS = ("slurm", "kubernetes")
_RAISED_IN = {  # for each writer: file, function and code line
    "model": ("model.py", "forward", "logits = self.head(self.blocks(hidden))"),
    "loader": ("data/loader.py", "collate", "batch = [self.dataset[index] for index in indices]"),
    "loop": ("train/loop.py", "train_step", "loss = self.forward_backward(batch)"),
    "save": ("train/checkpoint.py", "save", "torch.save(state, path)"),
    "start": ("train/setup.py", "build", "model = load_model(config)"),
}


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of a job, by torchrun or by `srun -l`, which begins each line with the task number (`12: `)."""

    script: str
    hosts: tuple[str, ...]
    began: datetime
    steps: int
    srun: bool
    torch: str
    job: str = "4711"

    @property
    def world(self) -> int:
        return LOCAL * len(self.hosts)

    @property
    def failed(self) -> datetime:
        return self.began + timedelta(minutes=3) + self.steps * _STEP


def fits(message: str, scheduler: str) -> bool:
    """Returns whether a run under this scheduler can print the message."""
    writers = _writers(message)
    return not any(other in writers for other in SCHEDULERS if other != scheduler)


def ends_at_start(message: str) -> bool:
    """Returns whether a run that prints the message fails before its first step."""
    return "start" in _writers(message)


def log_of(launch: Launch, message: str | None, rank: int, chance: Random) -> str:
    """Returns the log of a launch in which `rank` failed with this message. None means that the run completed."""
    lines = [*_start(launch), *_training(launch, chance)]
    if message is None:
        lines += [_say(launch, 0, f"{_at(launch.failed)} | Training completed, model saved to /ckpt/final")]
        return "\n".join(lines) + "\n"
    pid = chance.randrange(4200, 60000)
    for writer, text in _parts(message):
        lines += _written(launch, rank, writer, _filled(launch, rank, pid, text), chance)
    if any(scheduler in _writers(message) for scheduler in SCHEDULERS):
        return "\n".join(lines) + "\n"  # the scheduler ended the run, so no rank waited
    if not ends_at_start(message):
        lines += _waiting(launch, rank)
    return "\n".join([*lines, *_report(launch, rank, pid)]) + "\n"


def _parts(message: str) -> Iterator[tuple[str, str]]:
    for line in message.split("\n"):
        writer, _, text = line.partition(":")
        yield writer, text.removeprefix(" ")


def _writers(message: str) -> set[str]:
    return {writer for writer, _ in _parts(message)}


def _filled(launch: Launch, rank: int, pid: int, text: str) -> str:
    """Fills the slots. Does not use str.format, because messages contain braces of their own."""
    slots = {"host": launch.hosts[rank // LOCAL], "first": launch.hosts[0], "rank": rank, "local": rank % LOCAL}
    slots |= {"pid": pid, "job": launch.job, "step": launch.steps, "time": f"{launch.failed:%Y-%m-%dT%H:%M:%S}"}
    for name, value in slots.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _written(launch: Launch, rank: int, writer: str, text: str, chance: Random) -> Iterator[str]:
    host = launch.hosts[rank // LOCAL]
    if writer == "silent":
        return
    if writer in _RAISED_IN:
        ranks = range(min(launch.world, _SHOWN_ALIKE)) if writer == "start" else [rank]
        lines = _traceback(launch, writer, text, chance)
        for one in ranks:
            yield from (_say(launch, one, line, raised=True) for line in lines)
    elif writer == "worker":
        yield _say(launch, rank, text)
    elif writer == "nccl":
        yield _say(launch, rank, f"{host}:{4101 + rank % LOCAL}:{4390 + rank % LOCAL} [{rank % LOCAL}] {text}")
    elif writer == "kernel":
        yield f"{launch.failed:%Y-%m-%dT%H:%M:%S} {host} kernel: {text}"
    else:
        yield text


def _traceback(launch: Launch, writer: str, text: str, chance: Random) -> list[str]:
    file, function, code = _RAISED_IN[writer]
    return [
        "Traceback (most recent call last):",
        f'  File "/work/{launch.script}", line {chance.randrange(60, 400)}, in <module>',
        "    main()",
        f'  File "/work/{file}", line {chance.randrange(20, 300)}, in {function}',
        f"    {code}",
        text,
    ]


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


def _waiting(launch: Launch, rank: int) -> Iterator[str]:
    """Yields what the other ranks print: each waits for a collective that never ends."""
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


def _report(launch: Launch, rank: int, pid: int) -> Iterator[str]:
    ended = launch.failed + timedelta(minutes=10, seconds=4)
    host = launch.hosts[rank // LOCAL]
    if launch.srun:
        yield f"srun: error: {host}: task {rank}: Exited with exit code 1"
        step, first = f"{launch.job}.0", launch.hosts[0]
        yield f"slurmstepd: error: *** STEP {step} ON {first} CANCELLED AT {ended:%Y-%m-%dT%H:%M:%S} ***"
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
