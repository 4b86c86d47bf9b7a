"""The answer of the engine about one run. `as_dict` returns the public JSON form.

These classes have no slots: verdicts are sent between processes, and slots make that several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torchtriage.domain.evidence import RankState, Source
from torchtriage.domain.fact import Fact
from torchtriage.domain.host import exclusion
from torchtriage.domain.json_form import Scalar, fields_form
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.retry import retry_word

Outcome = Literal["explained", "unexplained", "healthy", "inconclusive"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
FAILED: tuple[Outcome, ...] = ("explained", "unexplained")  # those of runs that failed


@dataclass(frozen=True)
class Evidence:
    """A line of the log with secrets removed. `line` counts from 1 in `file` (None if the run is one file)."""

    line: int
    text: str
    file: str | None = None

    def to_json(self) -> dict[str, Any]:
        known: dict[str, Any] = {"line": self.line, "text": self.text}
        return known if self.file is None else known | {"file": self.file}


@dataclass(frozen=True)
class StackFrame:
    """One frame of the exception's traceback; `user_code` is False for installed packages and the standard library."""

    file: str
    line: int
    function: str
    code: str = ""
    user_code: bool = True


@dataclass(frozen=True)
class ExceptionFact:
    """The exception of the root cause: its dotted type, whole message, and frames with the outermost first."""

    type: str
    message: str
    frames: tuple[StackFrame, ...] = ()


@dataclass(frozen=True)
class SuggestedFix:
    """A fix of the entry for this run, with commands that are filled with values from the log.

    `applies` names the versions that it is for. `shown` is this run's version, and `fits` says whether it is one of
    them, or is None if the log does not show the version.
    """

    title: str
    detail: str
    commands: tuple[str, ...]
    applies: str
    shown: str | None = None
    fits: bool | None = None


@dataclass(frozen=True)
class Reason:
    """A reason for the verdict: the name of the reason, and the values for its sentence in any language."""

    name: str
    values: dict[str, Scalar] = field(default_factory=dict)

    def to_json(self) -> list[Any]:
        return [self.name, self.values]

    @classmethod
    def from_json(cls, data: Any) -> Reason:
        """Raises ValueError, TypeError."""
        name, values = data
        if not isinstance(name, str) or not isinstance(values, dict):
            raise TypeError("is not a name with its values")
        return cls(name, values)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, schema_of: Callable[[Any], Any]) -> Any:
        """Returns the schema for the OpenAPI document."""
        return schema_of(tuple[str, dict[str, Any]])


_OF_SUSPECTS = frozenset({"missing", "few", "behind", "dumps"})  # reasons that name ranks


@dataclass(frozen=True)
class RootCause:
    """The event that explains the other events of the run and is explained by none. `entry` is None if no entry names
    it. `pack` is the name and version of the pack that the entry came from, or None."""

    entry: str | None
    title: str
    confidence: str
    score: float
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int = 0
    time: str | None = None
    evidence: tuple[Evidence, ...] = ()
    exception: ExceptionFact | None = None
    causes: tuple[str, ...] = ()
    fixes: tuple[SuggestedFix, ...] = ()
    checks: tuple[str, ...] = ()
    prevent: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    owner: str | None = None
    captured: dict[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    because: tuple[Reason, ...] = ()  # the same reasons, from which sentences in any language are made
    pack: str | None = None

    @property
    def words(self) -> str:
        """The failure's own words: the type and message of its exception, and the lines that show it."""
        raised = [f"{self.exception.type}: {self.exception.message}"] if self.exception else []
        return "\n".join((*raised, *(line.text for line in self.evidence)))

    @property
    def suspects(self) -> str | None:
        """The ranks to look at first if no rank is named: those that the others waited for, or that differ from the
        rest."""
        named = (str(reason.values.get("ranks")) for reason in self.because if reason.name in _OF_SUSPECTS)
        return next(named, None) if self.rank is None else None


@dataclass(frozen=True)
class Candidate:
    """A guess with a confidence below `possible`, or an entry that is less likely than the root cause."""

    entry: str
    score: float
    title: str


@dataclass(frozen=True)
class Cascade:
    """A failure that happened because of another one, on these ranks."""

    entry: str | None
    ranks: RankSet
    line: int
    because_of: str | None
    text: str
    file: str | None = None


@dataclass(frozen=True)
class RankMark:
    """What happened to some ranks in the attempt of the root cause, and the line that shows it.

    `kind`: first (failed first), missing (the others timed out waiting for it), failed (by itself, later), waited (lost
    contact with another rank), stopped (by the launcher), ended (only its exit status is known), silent (it shows no
    failure). `time` begins with `--` if the log gives no year. `until` is the latest of several times. `waited` is how
    many seconds it had waited by then.
    """

    ranks: RankSet
    kind: str
    line: int | None
    file: str | None = None
    time: str | None = None
    until: str | None = None
    entry: str | None = None
    waited: float | None = None


_NO_RANKS = RankSet()


@dataclass(frozen=True)
class RunEvent:
    """An event other than progress that lines of the run show, once for all ranks with an equal event.

    `kind` is the source: kernel, scheduler, watchdog, launcher, exit (a process ended) or program. `standing` is its
    relation to the verdict: cause, consequence, survived (the run continued), or unknown (it matches no sign). `until`
    is the latest of several times; times have the form of RankMark's. `host` is set if there is only one. `count` is
    the number of equal events, and `text` is the first of the lines, cut and without secrets.
    """

    kind: str
    standing: str
    line: int
    text: str
    file: str | None = None
    time: str | None = None
    until: str | None = None
    ranks: RankSet = _NO_RANKS
    host: str | None = None
    entry: str | None = None
    attempt: int = 0
    count: int = 1


@dataclass(frozen=True)
class LastProgress:
    """The last progress of ranks before the run ended: the ranks that reached the same step, and the last of their
    lines."""

    ranks: RankSet
    step: int | None
    line: int
    file: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Action:
    """What a machine should do. `advice` is retry, retry-elsewhere, fix-first or none; `retry` is yes, no or once."""

    retry: str
    advice: str
    exclude_hosts: tuple[str, ...]
    reason: str

    @property
    def retry_word(self) -> str:
        """The word for a retry that each page and chat uses: yes, no, once or elsewhere."""
        return retry_word(self.retry, self.advice)

    @property
    def exclusion(self) -> str:
        """The option of sbatch and srun that leaves the hosts out, or an empty text."""
        return exclusion(self.exclude_hosts)


@dataclass(frozen=True)
class Attempt:
    """Why one attempt of a launch failed: the entry, or None if no entry names it, and the line that shows it."""

    attempt: int
    entry: str | None
    line: int | None
    file: str | None = None


@dataclass(frozen=True)
class EarlierRun:
    """A run that comes before the last one in the same file."""

    outcome: str
    entry: str | None
    line: int | None


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was written completely: its path, step and time, and the line that shows it."""

    path: str | None
    step: int | None
    time: str | None
    line: int
    file: str | None = None


@dataclass(frozen=True)
class ProgressCurve:
    """The course of a run: progress lines from the first to the last, with a column for each kind of value.

    All columns have the length of `lines`, with None if a line has no value. `values` are the values in the lines by
    the names of their facts (`last_loss`, `grad_norm`, `seconds_per_step` …; see docs/facts.md). A loss that is not a
    number is None too.
    """

    file: str | None
    lines: tuple[int, ...]
    times: tuple[str | None, ...]
    steps: tuple[int | None, ...]
    values: dict[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ClockOffset:
    """How many seconds the clock of `host` is ahead of that of `reference`, or behind if negative. `events` is how many
    common steps this is based on, and `spread` is the largest difference between them in seconds."""

    host: str
    seconds: float
    reference: str
    events: int
    spread: float


@dataclass(frozen=True)
class RunFacts:
    """What the log shows about the run itself. Unknown values are None.

    `versions` are printed in the log; `versions_inferred` are ranges (`>=2.3,<2.5`) that follow from the forms of
    lines. `phase` is what the run did when its root cause happened; `seconds_after_failure` is the time from then to
    the last line with a time. `checkpoints` are the newest that were written before the root cause, and `checkpoint` is
    the last of them. `progress` is the course of the run, from the rank that shows the most. `last_progress` is how far
    each rank came, for short logs only. `host_ranks` are the ranks that ran on each host, as far as lines show it.
    `clock_offsets` are those of hosts whose clocks are known to differ from most others. `suspect_ranks` are
    responsible according to dumps, stacks or the log, or empty if unknown. `sources` are the forms of the files.
    `waits` are the states of the ranks in a hang, according to dumps, stacks and reports.
    """

    launcher: str | None = None
    world_size: int | None = None
    hosts: tuple[str, ...] = ()
    attempts: int = 1
    phase: str | None = None
    step: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    versions_inferred: dict[str, str] = field(default_factory=dict)
    started: str | None = None
    ended: str | None = None
    exit_code: int | None = None
    seconds_after_failure: float | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    checkpoint: Checkpoint | None = None
    progress: ProgressCurve | None = None
    last_progress: tuple[LastProgress, ...] = ()
    host_ranks: dict[str, RankSet] = field(default_factory=dict)
    suspect_ranks: tuple[int, ...] = ()
    sources: tuple[Source, ...] = ()
    waits: tuple[RankState, ...] = ()
    clock_offsets: tuple[ClockOffset, ...] = ()


@dataclass(frozen=True)
class AnswerStep:
    """One thing to do now, possibly with a command or code. All slots are filled."""

    do: str
    run: str | None = None


@dataclass(frozen=True)
class Answer:
    """What a reader sees first: what failed in this run, what to do, and what the log does not show.

    `case` is the case of the root cause's entry that answers, or None. `form` is the message form that answers instead
    if the entry does not know the message. `values` fill the sentences, so that these can be shown in another language
    later; `facts` are those of the values that lines show. `pack` is the name and version of the pack that added the
    case to the entry, or None.
    """

    case: str | None
    says: str
    steps: tuple[AnswerStep, ...] = ()
    unknown: str | None = None
    facts: tuple[Fact, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    form: str | None = None
    pack: str | None = None


@dataclass(frozen=True)
class Stats:
    """How much was read: bytes and lines after decompression, and wall-clock seconds."""

    bytes: int = 0
    lines: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """The engine's answer. `outcome` is explained, unexplained, healthy or inconclusive. Inconclusive means that the
    log shows neither a failure nor a good end, and `answer` says what is missing; older versions called this healthy,
    without an answer. `provisional`: the run was still going when its log was read."""

    source: str
    outcome: str
    signature: str | None
    fingerprint: str | None
    root_cause: RootCause | None
    candidates: tuple[Candidate, ...]
    cascades: tuple[Cascade, ...]
    action: Action
    run: RunFacts
    attempts: tuple[Attempt, ...]
    earlier_runs: tuple[EarlierRun, ...]
    warnings: tuple[str, ...]
    stats: Stats
    engine: str
    knowledge: str
    timeline: tuple[RankMark, ...] = ()
    events: tuple[RunEvent, ...] = ()
    facts: tuple[Fact, ...] = ()
    answer: Answer | None = None
    provisional: bool = False

    @property
    def never_arrived(self) -> bool:
        """Whether the others waited in vain for the rank of the root cause. Its time is then the time of their
        reports."""
        rank = self.root_cause.rank if self.root_cause else None
        gone = (mark.ranks for mark in self.timeline if mark.kind == "missing" and mark.time is None)
        return rank is not None and any(rank in ranks for ranks in gone)

    def as_dict(self) -> dict[str, Any]:
        """The verdict as lists, dicts and scalars."""
        return fields_form(self)
