"""What the engine answers about one run; `as_dict` gives the JSON form that outsiders rely on.

No slots here: each verdict goes from one process to another, which takes several times as long where there are.
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
    """A verbatim line of the log, redacted; `line` counts from 1 in `file` (None where the run is one file)."""

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
    """The exception of the root cause: dotted type, whole message, frames with the outermost first."""

    type: str
    message: str
    frames: tuple[StackFrame, ...] = ()


@dataclass(frozen=True)
class SuggestedFix:
    """A fix of the entry, for this run: commands are filled with what the log tells.

    `applies` names the versions that it is for; `shown` is the version of this run that decides, and `fits` whether it
    is one of them, None where the log tells none.
    """

    title: str
    detail: str
    commands: tuple[str, ...]
    applies: str
    shown: str | None = None
    fits: bool | None = None


@dataclass(frozen=True)
class Reason:
    """Why the verdict is what it is: the name of a reason and the values of its sentence, for any language."""

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
        """-> what the OpenAPI document says about it."""
        return schema_of(tuple[str, dict[str, Any]])


_OF_SUSPECTS = frozenset({"missing", "few", "behind", "dumps"})  # reasons that name ranks


@dataclass(frozen=True)
class RootCause:
    """What explains the other events of the run and is explained by none. `entry` is None where no entry names it;
    `pack` is the name and version of the pack that the entry came from, None where it came from none."""

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
    because: tuple[Reason, ...] = ()  # the same reasons, to be put into sentences of any language
    pack: str | None = None

    @property
    def words(self) -> str:
        """What the failure says about itself: its exception's type and message, and the lines that show it."""
        raised = [f"{self.exception.type}: {self.exception.message}"] if self.exception else []
        return "\n".join((*raised, *(line.text for line in self.evidence)))

    @property
    def suspects(self) -> str | None:
        """The ranks to look at first where none is named: those that the others waited for, or that stand apart."""
        named = (str(reason.values.get("ranks")) for reason in self.because if reason.name in _OF_SUSPECTS)
        return next(named, None) if self.rank is None else None


@dataclass(frozen=True)
class Candidate:
    """A guess below `possible`, or an entry that lost to the root cause."""

    entry: str
    score: float
    title: str


@dataclass(frozen=True)
class Cascade:
    """Something that happened because of another, on these ranks."""

    entry: str | None
    ranks: RankSet
    line: int
    because_of: str | None
    text: str
    file: str | None = None


@dataclass(frozen=True)
class RankMark:
    """What became of some ranks in the root cause's attempt, and the line that shows it.

    `kind`: first (failed first), missing (the others timed out waiting for it), failed (on its own, later), waited (for
    ranks that were gone), stopped (by the launcher), ended (only its exit status is told), silent (it shows no
    failure). `time` begins with `--` where the log tells no year; `until` is the latest of several times; `waited` is
    how many seconds it had waited by then.
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
    """Something other than progress that lines of the run tell, once for all ranks that showed an equal one.

    `kind` is who speaks: kernel, scheduler, watchdog, launcher, exit (a process ended) or program. `standing` is what
    it is to the verdict: cause, consequence, survived (the run went on), or unknown (no sign knows it). `until` is the
    latest of several times; times are written as a RankMark's. `host` is told where it is one. `count` is how often the
    same was told, and `text` the first of its lines, without secrets and cut.
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
    """The last progress that ranks showed before the run ended: those that came to the same step, and the last of their
    lines."""

    ranks: RankSet
    step: int | None
    line: int
    file: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Action:
    """What a machine should do: `advice` is retry, retry-elsewhere, fix-first or none; `retry` yes, no or once."""

    retry: str
    advice: str
    exclude_hosts: tuple[str, ...]
    reason: str

    @property
    def retry_word(self) -> str:
        """What each page and chat says of a retry: yes, no, once or elsewhere."""
        return retry_word(self.retry, self.advice)

    @property
    def exclusion(self) -> str:
        """The option of sbatch and srun that leaves the hosts out; empty where there is none."""
        return exclusion(self.exclude_hosts)


@dataclass(frozen=True)
class Attempt:
    """Why one attempt of a launch failed: the entry, None where none names it, and the line that says so."""

    attempt: int
    entry: str | None
    line: int | None
    file: str | None = None


@dataclass(frozen=True)
class EarlierRun:
    """A run that precedes the last one in the same file."""

    outcome: str
    entry: str | None
    line: int | None


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that the run wrote to its end: where, at which step and when, and the line that says so."""

    path: str | None
    step: int | None
    time: str | None
    line: int
    file: str | None = None


@dataclass(frozen=True)
class ProgressCurve:
    """How a run went on: lines of progress spread over it, from the first to the last, one column a kind of value.

    All columns are as long as `lines`, with None where a line does not tell. `values` holds those that lines tell, by
    the names of their facts (`last_loss`, `grad_norm`, `seconds_per_step` …; docs/facts.md); a loss that is no number
    is None too.
    """

    file: str | None
    lines: tuple[int, ...]
    times: tuple[str | None, ...]
    steps: tuple[int | None, ...]
    values: dict[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ClockOffset:
    """How far the clock of `host` is ahead of that of `reference`, in seconds; below 0 it is behind. `events` is on how
    many common steps that rests, and `spread` how many seconds these differ at most."""

    host: str
    seconds: float
    reference: str
    events: int
    spread: float


@dataclass(frozen=True)
class RunFacts:
    """What the log says about the run itself; None where it does not.

    `versions` are printed ones; `versions_inferred` holds ranges (`>=2.3,<2.5`) that the forms of lines leave open.
    `phase` is what the run did when its root cause happened; `seconds_after_failure` is the time from there to the
    last line that tells one. `checkpoints` are the newest that were written before the root cause, `checkpoint` is the
    last of them. `progress` is how the run went on, of the rank that tells the most. `last_progress` is how far each
    rank came, told of short logs only, and `host_ranks` which ranks ran on a host, as far as lines tell.
    `clock_offsets` are those of hosts whose clocks are known to be wrong against most others'.
    `suspect_ranks` are held responsible, by dumps, stacks or the log; empty where that is not known. `sources` is what
    each file was taken for. `waits` is where the ranks stand in a hang, as dumps, stacks and reports show it.
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
    """One thing to do now, and the command or code for it where there is one; no slot is open."""

    do: str
    run: str | None = None


@dataclass(frozen=True)
class Answer:
    """What a reader sees first: what failed in this run, what to do, and what the log does not show.

    `case` is the case of the root cause's entry that speaks, None where none holds. `form` is the form of the message
    that speaks in its place, where the entry does not know the message itself. `values` are what its sentences are
    filled with, so that they can be said in another language later; `facts` those of them that lines tell. `pack` is
    the name and version of the pack that added the case to the entry, None where none did.
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
    """The engine's answer. `outcome` is explained, unexplained, healthy, or inconclusive: neither a failure nor a good
    end is seen, and `answer` says what is missing. Older versions called that healthy too, without an answer.
    `provisional`: the run went on when its log was read."""

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
        """Whether the others waited in vain for the rank of the root cause: its time is then that of their reports."""
        rank = self.root_cause.rank if self.root_cause else None
        gone = (mark.ranks for mark in self.timeline if mark.kind == "missing" and mark.time is None)
        return rank is not None and any(rank in ranks for ranks in gone)

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain lists, dicts and scalars."""
        return fields_form(self)
