"""What a log tells of the run itself: launcher, world size, hosts, versions, steps, phase, how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from app.domain.line import Line

MOST_HOSTS = 4096
_LAUNCHERS = (
    ("torchrun", re.compile(r"torch/distributed/run\.py|torch\.distributed\.run|distributed/elastic|bin/torchrun")),
    ("torch.distributed.launch", re.compile(r"torch/distributed/launch\.py|torch\.distributed\.launch\b")),
    ("deepspeed", re.compile(r"\[(?:launch|runner)\.py:\d+:(?:main|sigkill_handler)\]|deepspeed/launcher/")),
    ("accelerate", re.compile(r"accelerate/commands/launch\.py|\baccelerate launch\b")),
    ("ray", re.compile(r"ray::|raylet|ray\.exceptions|Started a local Ray instance")),
    ("mpirun", re.compile(r"\b(?:mpirun|mpiexec|prterun|orterun)\b")),
    ("torch.multiprocessing.spawn", re.compile(r"torch/multiprocessing/spawn\.py")),
    ("srun", re.compile(r"^srun: |slurmstepd")),
)
_WORLD = re.compile(r"(?i)\bworld[_ ]size['\"]?\s?[=:]\s?(\d{1,6})\b|distributed init \(rank \d+, world (\d+)\)")
_VERSIONS = {
    "torch": re.compile(r"(?i)\b(?:py)?torch(?: version)?['\"]?\s?(?:==|[:=])\s?v?(\d+\.\d+\.\d+[\w.+]*)"),
    "cuda": re.compile(r"(?i)\bcuda(?: runtime| toolkit)?(?: version)?['\"]?\s?[:=]\s?(\d+\.\d+)"),
    "nccl": re.compile(r"(?i)NCCL version[:=]? ?(\d+\.\d+\.\d+)"),
    "python": re.compile(
        r"(?i)\bpython(?: version)?['\"]?\s?[:=]\s?(3\.\d+(?:\.\d+)?)|/python(3\.\d+)/(?:site|dist)-packages"
    ),
    "transformers": re.compile(r"(?i)\btransformers(?: version)?['\"]?\s?(?:==|[:=])\s?(\d+\.\d+\.\d+)"),
    "deepspeed": re.compile(r"DeepSpeed info: version=(\d+\.\d+\.\d+)"),
}
_VERSION_HINT = re.compile(r"(?i)version|torch|python|transformers|cuda")
# `epoch 3`, `step: 120/1000`, `| 12/100 [`, `loss 0.5`; not `epochs: 300`, which is a setting.
PROGRESS = re.compile(
    r"(?i)(?:\b|_)(?:step|iter|iteration|epoch|batch|update|it)\b['\"]?[ :=\[#/]{0,4}(\d+)"
    r"|\b(?:steps|iters|epochs)\b[ :=]{0,3}(\d+) ?/ ?\d+"
    r"|\d+%\|[^|\n]{0,400}\| ?(\d+)/\d+ \["
    r"|\bloss['\"]?[ :=]{1,3}-?\d"
)
# A scheduler counts steps too, but those are of the job.
_SCHEDULER = re.compile(r"\*\*\* (?:STEP|JOB) |\bjob step\b|StepId=")
_WELL = re.compile(
    r"(?i)exits successfully|\bsuccessfully (?:installed|completed|finished)\b|training (?:is )?(?:done|finished|complete[d]?)\b|finished training"
    r"|training completed|'train_runtime'|\"train_runtime\"|COMMAND_EXIT_CODE=\"0\"|exit(?:ed)? (?:with )?(?:code|status) 0\b"
    r"|View run .{0,120} at:|ENDING TIMING RUN|Max accuracy:|job (?:finished|completed) successfully|all done\b|completed: true"
    r"|max_steps.{0,20} reached"
)
# Printed at the end of good runs, and by clean-up code right after a failure as well.
_WOUND_UP = re.compile(r"(?i)train(?:ing)? time[: ]")
_BEGIN = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|nohup: ignoring input|^Script started on "
    r"|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
)
_PHASES = (
    (
        "save",
        re.compile(r"(?i)\bsav(?:e|ing)[ _](?:model|checkpoint|state)|torch/serialization\.py\", line \d+, in save"),
    ),
    (
        "load",
        re.compile(r"(?i)loading (?:checkpoint|state|model|weights)|load_state_dict|from_pretrained|in torch\.load"),
    ),
    ("evaluate", re.compile(r"(?i)\b(?:evaluat|validat)(?:e|ing|ion)\b|\bTest: ")),
)
_FIELD = re.compile(
    r"(?i)\btorch|\bcuda\b|nccl|gloo|\brank\b|\bgpus?\b|slurm|srun:|deepspeed|\bepoch\b|traceback \(|Signals\.|SIG[A-Z]{3,4}\b"
    r"|xid|k8s|kubelet|\bpod\b|megatron|transformers|\bmpi|dataloader|\bhccl|npu|exitcode|\.py\b"
)
# Programs whose logs are not this field's, by the forms that only they print.
_FOREIGN = re.compile(
    r"^\s+at [\w$.<>]+\([\w.]+(?::\d+)?\)|\borg\.apache\.(?!spark)|\bnpm (?:ERR!|error|info|verb)|^\d+ (?:verbose|silly|info) "
    r"|^error\[E\d{4}\]|^\s+--> [\w/.-]+\.rs:\d+|^(?:LOG|STATEMENT|DETAIL|HINT):  |\bterraform\b|Terraform|^\d+\.\d+\.\d+\.\d+ - - \["
    r"|^goroutine \d+ \[|\bpanic: runtime error|\bnginx\b|\[maven|\bgradle\b"
)


@dataclass(frozen=True, slots=True)
class _Told:
    """What one line's text tells, wherever it stands. Ranks print the same lines, so this is kept per text."""

    launcher: str | None
    world_size: int | None
    versions: tuple[tuple[str, str], ...]
    phase: str | None
    progress: bool
    step: int | None
    well: bool
    wound_up: bool
    foreign: bool
    of_field: bool


@dataclass(slots=True)
class Environment:
    """Feed it every kept line, and `sample` now and then; it collects facts and never claims a line.

    `progress` and `well` hold the orders of lines that show progress, and that say the run ended well; `wound_up`
    those of lines that clean-up code prints after a failure as well.
    """

    launcher: str | None = None
    world_size: int | None = None
    hosts: dict[str, None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    started: str | None = None
    ended: str | None = None
    step: int | None = None
    phase: str | None = None
    progress: list[int] = field(default_factory=list)
    well: list[int] = field(default_factory=list)
    wound_up: list[int] = field(default_factory=list)
    foreign: int = 0
    of_field: int = 0

    def feed(self, line: Line, claimed: bool) -> None:
        """`claimed`: the line belongs to a traceback or a report, where `step = 5` is code and no progress."""
        if line.time:
            self.started, self.ended = self.started or line.time, line.time
        if line.host and len(self.hosts) < MOST_HOSTS:
            self.hosts.setdefault(line.host)
        told = _told(line.text[:2000])
        self.launcher = self.launcher or told.launcher
        self.world_size = self.world_size or told.world_size
        for name, version in told.versions:
            self.versions.setdefault(name, version)
        self.phase = told.phase or self.phase
        if told.progress and not claimed:
            self._progressed(line.order, told.step)
        if told.well:
            self.well.append(line.order)
        if told.wound_up:
            self.wound_up.append(line.order)
        self.foreign += told.foreign
        self.of_field += told.of_field

    def sample(self, order: int, text: str) -> None:
        """Looks for progress in a piece of the log that goes by unkept; `order` is that of its last line."""
        numbers = _counted(text)
        if numbers:
            self._progressed(order, _highest(numbers))

    @staticmethod
    def begins_at(text: str) -> bool:
        """-> whether a launch begins with this line."""
        return bool(_BEGIN.search(text[:400]))

    def _progressed(self, order: int, step: int | None) -> None:
        if not self.progress or self.progress[-1] != order:
            self.progress.append(order)
        if step is not None:
            self.step, self.phase = step, "train"


def _counted(text: str) -> list[str | None]:
    """-> the step of each sign of progress in a text; None where the sign has none."""
    if _SCHEDULER.search(text):
        return []
    return [found[1] or found[2] or found[3] for found in PROGRESS.finditer(text)]


def _highest(numbers: list[str | None]) -> int | None:
    return max((int(number) for number in numbers if number and len(number) < 10), default=None)


@lru_cache(maxsize=4096)
def _told(text: str) -> _Told:
    size = _WORLD.search(text)
    versions: tuple[tuple[str, str], ...] = ()
    if _VERSION_HINT.search(text):
        hits = ((name, sign.search(text)) for name, sign in _VERSIONS.items())
        versions = tuple((name, next(filter(None, hit.groups()))) for name, hit in hits if hit)
    numbers = _counted(text)
    return _Told(
        launcher=next((name for name, sign in _LAUNCHERS if sign.search(text)), None),
        world_size=int(size[1] or size[2]) or None if size else None,
        versions=versions,
        phase=next((name for name, sign in _PHASES if sign.search(text)), None),
        progress=bool(numbers),
        step=_highest(numbers),
        well=bool(_WELL.search(text)),
        wound_up=bool(_WOUND_UP.search(text)),
        foreign=bool(_FOREIGN.search(text)),
        of_field=bool(_FIELD.search(text)),
    )
