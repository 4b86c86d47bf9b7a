"""Made jobs: what goes wrong in each is known, so that it is known too what another attempt would have come to.

A world is asked for one attempt after another, with the hosts that are left out of it, and answers with what a verdict
would show. Steps are shown as logs print them, every `prints` steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from torchtriage.decision.failure import Failure
from torchtriage.domain.decision import AttemptRecord

STEPS = 10_000
HOSTS = tuple(f"gpu-{number:03}" for number in range(16))


@dataclass
class Job:
    """A run of STEPS steps with a checkpoint every `saves`; `goes_wrong` is asked for each attempt that starts at a
    step -> the step that it ends at and what the log says of that, or None where it runs to its end."""

    kind: str
    goes_wrong: Callable[[Job, int, frozenset[str]], tuple[int, Seen] | None]
    saves: int = 500
    prints: int = 10
    at: int = 0  # the step of the newest checkpoint
    attempts: int = 0
    excluded: frozenset[str] = frozenset()

    def attempt(self) -> Failure | None:
        """Returns how the next attempt fails; None where it ends well."""
        number, self.attempts = self.attempts, self.attempts + 1
        found = self.goes_wrong(self, self.at, self.excluded)
        if found is None:
            self.at = STEPS
            return None
        step, seen = found
        shown = step // self.prints * self.prints
        if step >= self.at:
            self.at = max(self.at, step // self.saves * self.saves)
        started = step >= 0 and shown > 0
        return seen.failure(number, shown if started else None, f"/ckpt/step-{self.at}" if self.at else None)


@dataclass(frozen=True)
class Seen:
    """What the verdict on a failure says."""

    entry: str | None
    retry: str
    advice: str
    confidence: str = "certain"
    host: str | None = None
    rank: int | None = None
    hosts: tuple[str, ...] = ()
    fingerprint: str | None = None
    outcome: str = field(default="explained")

    def failure(self, attempt: int, step: int | None, checkpoint: str | None) -> Failure:
        mark = self.fingerprint or f"v1:{self.entry}"
        outcome = self.outcome if self.entry else "unexplained"
        record = AttemptRecord(attempt, outcome, self.entry, mark, step, self.host, self.rank)
        known = self.confidence if self.entry else None
        return Failure(record, True, known, self.retry, self.advice, self.hosts, checkpoint, several_hosts=True)


def always(seen: Seen, step: int) -> Callable[[Job, int, frozenset[str]], tuple[int, Seen]]:
    """A bug that every attempt meets at the same step."""
    return lambda job, start, excluded: (max(step, start), seen)


def sometimes(
    chance: random.Random, share: float, seen: Callable[[], Seen], near: int = STEPS
) -> Callable[[Job, int, frozenset[str]], tuple[int, Seen] | None]:
    """What strikes at random, in this share of the attempts, at most `near` steps after their start."""

    def strike(job: Job, start: int, excluded: frozenset[str]) -> tuple[int, Seen] | None:
        if chance.random() >= share:
            return None
        return chance.randint(start, min(start + near, STEPS)), seen()

    return strike


def on_host(
    chance: random.Random, bad: str, seen: Callable[[str], Seen], at_once: bool
) -> Callable[[Job, int, frozenset[str]], tuple[int, Seen] | None]:
    """A host that breaks every attempt that it is part of."""

    def strike(job: Job, start: int, excluded: frozenset[str]) -> tuple[int, Seen] | None:
        if bad in excluded:
            return None
        return (start if at_once else chance.randint(start, min(start + 900, STEPS))), seen(bad)

    return strike


def made(seed: int) -> Job:
    """Returns one job of some kind, the same for the same seed."""
    chance = random.Random(seed)
    kinds = list(_KINDS.items())
    kind, make = kinds[seed % len(kinds)]
    job = Job(kind, make(chance), saves=chance.choice((50, 500, 2000)), prints=chance.choice((1, 10, 100)))
    return job


def _rank(chance: random.Random) -> int:
    return chance.randrange(64)


_KINDS: dict[str, Callable[[random.Random], Callable[[Job, int, frozenset[str]], tuple[int, Seen] | None]]] = {
    # What is in the job, and certain: at its start, or deep in it.
    "bug": lambda c: always(Seen("usage.python-error", "no", "fix-first"), -1),
    "out of memory": lambda c: always(Seen("cuda.oom", "no", "fix-first", rank=_rank(c)), c.randint(1, STEPS)),
    # What is in the job, but the verdict is not sure of it.
    "likely bug": lambda c: always(Seen("data.missing", "no", "fix-first", "likely"), c.randint(-1, 5000)),
    # A sample that breaks every attempt, which the entry takes for transient until it comes back.
    "bad sample": lambda c: always(Seen("process.sigsegv", "once", "fix-first", rank=_rank(c)), c.randint(100, STEPS)),
    "hang at a sample": lambda c: _hang(c, c.randrange(64), c.randint(100, STEPS)),
    # What passes by itself.
    "preempted": lambda c: sometimes(c, 0.8, lambda: Seen("slurm.preempted", "yes", "retry"), 1500),
    "flaky network": lambda c: sometimes(
        c, 0.5, lambda: Seen("network.http-service", "once", "retry", host=c.choice(HOSTS), rank=_rank(c)), 700
    ),
    "flaky at start": lambda c: sometimes(c, 0.5, lambda: Seen("env.hub-download", "once", "fix-first"), 0),
    "time-out": lambda c: sometimes(
        c, 0.5, lambda: Seen("nccl.timeout", "once", "retry", c.choice(("likely", "certain")), rank=_rank(c)), 400
    ),
    "outage": lambda c: _outage(c.randint(1, 3)),
    # What the verdict takes for a bug though it passes: never certain, as certain ones are right.
    "misread": lambda c: sometimes(
        c, 0.5, lambda: Seen("usage.python-error", "no", "fix-first", c.choice(("likely", "possible"))), 300
    ),
    # Hosts: named as broken, only first to fail, or not told by the log.
    "broken host": lambda c: on_host(
        c, c.choice(HOSTS), lambda host: Seen("cuda.ecc", "yes", "retry-elsewhere", host=host, hosts=(host,)), True
    ),
    "first on a host": lambda c: on_host(
        c, c.choice(HOSTS), lambda host: Seen("nccl.remote-error", "once", "retry", host=host, rank=3), False
    ),
    "same step on a host": lambda c: on_host(
        c, c.choice(HOSTS), lambda host: Seen("nccl.remote-error", "once", "retry", host=host, rank=3), True
    ),
    "host not told": lambda c: sometimes(c, 0.6, lambda: Seen("xid.other", "once", "retry-elsewhere"), 200),
    # What nobody knows.
    "unexplained bug": lambda c: always(Seen(None, "once", "none"), c.randint(-1, STEPS)),
    "unexplained flake": lambda c: sometimes(c, 0.4, lambda: Seen(None, "once", "none"), 500),
}


def _hang(chance: random.Random, rank: int, step: int) -> Callable[[Job, int, frozenset[str]], tuple[int, Seen]]:
    """Every attempt hangs at one sample; the rank that reads it stays, the host changes."""
    return lambda job, start, excluded: (
        max(step, start),
        Seen("nccl.timeout", "once", "retry", rank=rank, host=chance.choice(HOSTS)),
    )


def _outage(attempts: int) -> Callable[[Job, int, frozenset[str]], tuple[int, Seen] | None]:
    """A file system that is away for some attempts."""
    return lambda job, start, excluded: (
        (-1, Seen("slurm.time-limit", "yes", "retry")) if job.attempts <= attempts else None
    )
