"""Which logs are made: faults and a seed in, one draw for each log out."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.corpus.cases import SUCCESS
from tests.corpus.kit.launch_faults import LAUNCH_FAULTS, LaunchFault
from tests.corpus.kit.launchers import LAUNCHERS
from tests.log_wrappings import WRAPPINGS

# How people hand over a log; the plain one most often.
FORMS = (
    *["as it is"] * 6,
    "docker",
    "CRI",
    "kubectl --prefix",
    "kubectl --prefix --timestamps",
    "pdsh",
    "stern",
    "docker compose",
    "journalctl",
    "script",
    "a terminal's line ends",
    "colours",
    "gzip",
)
assert set(FORMS) - {"gzip"} <= set(WRAPPINGS)
AS_IT_IS = "as it is"


@dataclass(frozen=True)
class JobFault:
    """A fault of a job, as its program lists it (`job/faults.py` says what each field means)."""

    name: str
    causes: tuple[str, ...]
    says: tuple[str, ...]
    at: str
    ranks: str
    retry: tuple[str, ...]
    since: str
    around: str
    run: str

    @classmethod
    def of(cls, listed: dict[str, Any]) -> JobFault:
        """-> the fault of one object of the program's list."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in listed.items()
        }
        return cls(**fields)


WELL = JobFault("well", (SUCCESS,), (), "step", "all", ("no", "once", "yes"), "2.1", "", "")


@dataclass(frozen=True)
class Draw:
    """One log to be made. `launcher` is empty for a fault of the launch, which brings its own command."""

    name: str
    fault: JobFault | LaunchFault
    launcher: str
    torch: str
    form: str
    ranks: int
    victim: int


def held_back(fault: str) -> bool:
    """-> whether the fault is of the third that nobody tunes the knowledge to, by a hash of its name."""
    return int(hashlib.sha256(fault.encode()).hexdigest()[:8], 16) % 3 == 0


def release(version: str) -> tuple[int, ...]:
    """-> "2.13.0+cpu" as (2, 13)."""
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2])


def draws(faults: Sequence[JobFault], packages: dict[str, set[str]], count: int, seed: int) -> list[Draw]:
    """-> `count` draws, each fault once before any comes again. `packages` are those that each version of torch has
    beside it. The same arguments draw the same."""
    dice = random.Random(seed)
    there = set().union(*packages.values())
    launches = [fault for fault in LAUNCH_FAULTS if fault.command and (not fault.needs or fault.needs in there)]
    pool: list[JobFault | LaunchFault] = [*faults, *launches, *[WELL] * 8]
    chosen: list[Draw] = []
    while len(chosen) < count:
        for fault in dice.sample(pool, len(pool)):
            chosen.append(_draw(fault, packages, dice, len(chosen)))
    return chosen[:count]


def _draw(fault: JobFault | LaunchFault, packages: dict[str, set[str]], dice: random.Random, number: int) -> Draw:
    needs = fault.needs if isinstance(fault, LaunchFault) else ""
    launcher = "" if isinstance(fault, LaunchFault) else dice.choice(_launchers(fault, packages))
    if launcher:
        needs = LAUNCHERS[launcher].needs
    fitting = [
        version
        for version, beside in sorted(packages.items())
        if release(version) >= release(fault.since) and (not needs or needs in beside)
    ]
    in_files = bool(launcher) and (LAUNCHERS[launcher].tree or LAUNCHERS[launcher].folder)
    ranks = 1 if launcher and LAUNCHERS[launcher].alone else dice.choice((2, 2, 3))
    return Draw(
        f"{number:03d}-{fault.name}",
        fault,
        launcher,
        dice.choice(fitting),
        AS_IT_IS if in_files else dice.choice(FORMS),
        ranks,
        dice.randrange(ranks),
    )


def _launchers(fault: JobFault, packages: dict[str, set[str]]) -> list[str]:
    """-> the launchers under which the fault can be made."""
    beside = set().union(*packages.values())
    known = [name for name, each in LAUNCHERS.items() if not each.needs or each.needs in beside]
    if fault.around:  # What stands around a launcher does not reach what Slurm and Ray start.
        known = [name for name in known if not LAUNCHERS[name].slurm and name != "ray"]
    if fault.run == "faults_collective":
        known = [name for name in known if not LAUNCHERS[name].alone]
    return known
