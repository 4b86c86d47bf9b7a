"""Who started the workers, how many of them, and with which status they ended: texts in, facts out."""

from __future__ import annotations

from torchtriage.facts.patterns import Shown, Sign

# The first of these that a log shows: the outer ones, which a person typed, stand before those that they use.
_LAUNCHERS = (
    ("accelerate", Sign(r"accelerate/commands/launch\.py|\baccelerate launch\b")),
    ("deepspeed", Sign(r"\[(?:launch|runner)\.py:\d+:(?:main|sigkill_handler)\]|deepspeed/launcher/")),
    ("torch.distributed.launch", Sign(
        r"torch/distributed/launch\.py|-m torch\.distributed\.launch\b|(?i:torch\.distributed\.launch is deprecated)")),
    ("torchrun", Sign(
        r"torch/distributed/run\.py|torch\.distributed\.run\b|distributed/elastic|torch\.distributed\.elastic|\btorchrun\b")),
    ("lightning", Sign(r"lightning(?:_fabric|/fabric|/pytorch)?/strategies/launchers/subprocess_script\.py|Initializing distributed: GLOBAL_RANK: ")),
    ("ray", Sign(r"ray::|raylet|ray\.exceptions|Started a local Ray instance")),
    ("mpirun", Sign(r"\b(?:mpirun|mpiexec|prterun|orterun)\b")),
    ("torch.multiprocessing.spawn", Sign(r"torch/multiprocessing/spawn\.py")),
    ("srun", Sign(r"^srun: |slurmstepd")),
    ("kubernetes", Sign(r"\bPyTorchJob\b|\bpytorchjobs?\.kubeflow\.org|\bTrainJob\b|\bjobset\.sigs\.k8s\.io|\bMPIJob\b|\bvcjob\b")),
    ("python", Sign(r"^(?:\++ |\$ )(?:\S*/)?python3? (?:-u )?\S+\.py\b")),
)  # fmt: skip
_ORDER = {name: place for place, (name, _) in enumerate(_LAUNCHERS)}
WORLD = Sign(
    r"(?i)\b(?:dist_|global_)?world[_ ]?size['\"]?\s?[=:]\s?(\d{1,6})\b|distributed init \(rank \d+, world (\d+)\)"
    r"|MEMBER: \d+/(\d{1,6})|Starting with (\d{1,6}) processes|\bNum processes: (\d{1,6})|completed store-based barrier for .{1,80} with (\d{1,6}) nodes"
)
EXIT = Sign(
    r"(?i)\bexit(?:ed|s|ing)? (?:with )?(?:exit |return |status |error )?(?:code|status)\s?[:=]?\s?(-?\d{1,3})\b"
    r"|\bexit[_ ]?code['\"]?\s?[:=]\s?['\"]?(-?\d{1,3})\b|returned non-zero exit status (\d{1,3})\b|returned? (?:code|status) ?[:=] ?(-?\d{1,3})\b"
)
SIGNS = (*(sign for _, sign in _LAUNCHERS), WORLD, EXIT)


def launcher(shown: Shown) -> str | None:
    """-> the outermost launcher that a line shows."""
    return next((name for name, sign in _LAUNCHERS if sign in shown), None)


def outer(first: str | None, second: str | None) -> str | None:
    """-> of two launchers the one that starts the other."""
    return min((name for name in (first, second) if name), key=_ORDER.__getitem__, default=None)


def world_size(text: str, shown: Shown) -> int | None:
    """-> the number of workers that a line tells."""
    found = WORLD.regex.search(text) if WORLD in shown else None
    return int(next(part for part in found.groups() if part)) or None if found else None


def exit_code(text: str, shown: Shown) -> int | None:
    """-> the exit status that a line speaks of, where it is not 0."""
    found = EXIT.regex.search(text) if EXIT in shown else None
    return int(next(part for part in found.groups() if part)) or None if found else None
