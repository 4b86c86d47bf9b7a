"""Writes the log of one failure as different jobs would: other ranks, hosts, users, folders, numbers and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.logs import BANNER, agent, report, steps, traceback


@dataclass(frozen=True)
class Job:
    """What differs from job to job. `failing` is the rank that fails first, of `ranks`."""

    ranks: int
    failing: int
    host: str
    home: str
    env: str
    pid: int
    number: int
    size: float
    hour: int
    steps: int
    uuid: str

    @property
    def peers(self) -> list[int]:
        return [rank for rank in range(self.ranks) if rank != self.failing]

    @property
    def time(self) -> str:
        return f"{self.hour:02d}:{self.number % 60:02d}:{self.pid % 60:02d}"


def _job(ranks: int, place: float, **rest: object) -> Job:
    return Job(ranks=ranks, failing=int(place * ranks), **rest)  # type: ignore[arg-type]


JOBS = st.builds(
    _job,
    ranks=st.integers(2, 9),
    place=st.floats(0, 0.99),
    host=st.sampled_from(["gpu-7", "gpu-021.rack3.local", "node-a", "ip-10-0-3-7", "dgx01"]),
    home=st.sampled_from(
        ["/home/ann/vit", "/scratch/b.ob/run_12", "/tmp/tmpk3v_x9/job", "/mnt/fs1/users/李/code", "."]
    ),
    env=st.sampled_from(["/opt/conda/envs/pt", "/home/ann/.venv", "/usr", "/tmp/ray/session_3/env"]),
    pid=st.integers(2, 4_000_000),
    number=st.integers(0, 10**7),
    size=st.floats(0.01, 900).map(lambda size: round(size, 2)),
    hour=st.integers(0, 23),
    steps=st.integers(1, 60),
    uuid=st.uuids().map(str),
)
Blocks = list[list[str]]  # of lines; nothing of another writer stands inside of one


def _frames(job: Job, file: str, function: str) -> list[tuple[str, int, str, str]]:
    library = f"{job.env}/lib/python3.11/site-packages/torch/nn/modules/module.py"
    return [
        (f"{job.home}/train.py", 10 + job.number % 90, "<module>", "main()"),
        (f"{job.home}/{file}", 3 + job.pid % 90, function, "out = self.step(batch)"),
        (library, 1000 + job.pid % 700, "_call_impl", "return forward_call(*args, **kwargs)"),
    ]


def begin(job: Job) -> Blocks:
    """Returns what stands before the failure: a launcher's banner and steps that went well."""
    return [[BANNER], *([line] for line in steps(range(job.ranks), count=job.steps))]


def _peers(job: Job) -> Blocks:
    closed = f"RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.{job.pid % 250}]:{job.pid % 60000}"
    return [traceback(closed, _frames(job, "train.py", "step"), f"[rank{rank}]: ") for rank in job.peers]


def _raised(message: str, file: str, function: str) -> Callable[[Job], Blocks]:
    """Returns a failure by an exception in the user's code; `{…}` in its message are the job's."""

    def failure(job: Job) -> Blocks:
        told = message.format(job=job, path=f"{job.home}/data/shard-{job.number}.tar")
        own = traceback(told, _frames(job, file, function), f"[rank{job.failing}]: ")
        codes = [(rank, -15) for rank in job.peers]
        return [own, *_peers(job), [agent(1, job.failing, job.pid)], report((job.failing, 1), codes, job.host)]

    return failure


def _killed(code: int) -> Callable[[Job], Blocks]:
    def failure(job: Job) -> Blocks:
        codes = [(rank, 1) for rank in job.peers]
        return [*_peers(job), [agent(code, job.failing, job.pid)], report((job.failing, code), codes, job.host)]

    return failure


def _watchdog(job: Job) -> Blocks:
    return [
        [
            f"[rank{rank}]:[E501 {job.time}.{job.number % 1000} ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective "
            f"operation timeout: WorkNCCL(SeqNum={job.number}, OpType=ALLREDUCE, NumelIn={job.pid}, NumelOut={job.pid}, "
            f"Timeout(ms)=600000) ran for {600000 + job.pid % 900} milliseconds before timing out."
        ]
        for rank in job.peers
    ]


def _spawned(job: Job) -> Blocks:
    inner = traceback("ZeroDivisionError: integer division or modulo by zero", _frames(job, "sampler.py", "per_epoch"))
    head = traceback(
        f"torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process {job.failing} terminated with the following error:",
        [(f"{job.env}/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", 90, "join", "raise")],
    )
    return [[*head, *inner]]


# One failure each: all of them differ in their fingerprints.
FAILURES: dict[str, Callable[[Job], Blocks]] = {
    "missing key": _raised("KeyError: 'image'", "dataset.py", "__getitem__"),
    "same key elsewhere": _raised("KeyError: 'image'", "dataset.py", "collate"),
    "same key, other file": _raised("KeyError: 'image'", "video.py", "__getitem__"),
    "other key": _raised("KeyError: 'label'", "dataset.py", "__getitem__"),
    "sample": _raised("ValueError: bad sample {job.number} of {path} on {job.host}:{job.pid}", "dataset.py", "__getitem__"),
    "other type": _raised("TypeError: bad sample {job.number} of {path}", "dataset.py", "__getitem__"),
    "unknown": _raised("frobnicate.errors.WidgetJammed: spindle {job.number} of job {job.uuid}: {job.size} GiB", "w.py", "turn"),
    "other unknown": _raised("frobnicate.errors.WidgetLost: spindle {job.number}", "w.py", "turn"),
    "out of memory": _raised(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {job.size} GiB. GPU {job.failing} has a total capacity of "
        "79.15 GiB of which {job.size} MiB is free. Process {job.pid} has {job.size} GiB memory in use.", "model.py", "forward"
    ),
    "shapes": _raised(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied ({job.ranks}x{job.pid} and {job.number}x10)", "model.py", "forward"
    ),
    "shapes elsewhere": _raised(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied ({job.ranks}x{job.pid} and {job.number}x10)", "model.py", "embed"
    ),
    "disk full": _raised("OSError: [Errno 28] No space left on device: '{path}'", "train.py", "save"),
    "killed": _killed(-9),
    "segmentation fault": _killed(-11),
    "time-out": _watchdog,
    "spawned": _spawned,
}  # fmt: skip
