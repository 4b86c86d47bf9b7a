"""What the engine answers about one run; `as_dict` gives the JSON form that outsiders rely on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from torchtriage.domain.host import exclusion


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim line of the log, redacted; `line` counts from 1 in `file` (None where the run is one file)."""

    line: int
    text: str
    file: str | None = None

    def as_dict(self) -> dict[str, Any]:
        known = {"line": self.line, "text": self.text}
        return known if self.file is None else known | {"file": self.file}


_SOUGHT = frozenset({"missing", "few", "behind"})  # reasons that name ranks


@dataclass(frozen=True, slots=True)
class RootCause:
    """What explains the other events of the run and is explained by none. `entry` is None where no entry names it."""

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
    exception: dict[str, Any] | None = None
    causes: tuple[str, ...] = ()
    fixes: tuple[dict[str, Any], ...] = ()
    checks: tuple[str, ...] = ()
    prevent: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    owner: str | None = None
    captured: dict[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    because: tuple[tuple[str, dict[str, Any]], ...] = ()  # the reasons as names and values, to be told in any language

    @property
    def words(self) -> str:
        return words_of(self.exception, (line.text for line in self.evidence))

    @property
    def sought(self) -> str | None:
        """The ranks to look at first where none is named: those that the others waited for, or that stand apart."""
        told = (str(values["ranks"]) for name, values in self.because if name in _SOUGHT)
        return next(told, None) if self.rank is None else None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"evidence": [line.as_dict() for line in self.evidence]}


def words_of(exception: dict[str, Any] | None, evidence: Iterable[str]) -> str:
    """-> what a failure says of itself: its exception's type and message, and the lines that show it."""
    raised = [f"{exception.get('type')}: {exception.get('message')}"] if exception else []
    return "\n".join((*raised, *evidence))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A guess below `possible`, or an entry that lost to the root cause."""

    entry: str
    score: float
    title: str


@dataclass(frozen=True, slots=True)
class Cascade:
    """Something that happened because of another; `ranks` are folded to ranges ("0-169,171-511")."""

    entry: str | None
    ranks: str
    line: int
    because_of: str | None
    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class RankMark:
    """What became of some ranks (folded to ranges) in the root cause's attempt, and the line that shows it.

    `kind`: first (failed first), missing (the others waited for it in vain), failed (on its own, later), waited (for
    ranks that were gone), stopped (by the launcher), ended (only its exit status is told), silent (it shows no
    failure). `time` begins with `--` where the log tells no year; `until` is the latest of several times; `waited` is
    how many seconds it had waited by then.
    """

    ranks: str
    kind: str
    line: int | None
    file: str | None = None
    time: str | None = None
    until: str | None = None
    entry: str | None = None
    waited: float | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What a machine should do: `advice` is retry, retry-elsewhere, fix-first or none; `retry` yes, no or once."""

    retry: str
    advice: str
    exclude_hosts: tuple[str, ...]
    reason: str

    @property
    def exclusion(self) -> str:
        """The option of sbatch and srun that leaves the hosts out; empty where there is none."""
        return exclusion(self.exclude_hosts)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt of a launch failed of: the entry, None where none names it, and the line that says so."""

    attempt: int
    entry: str | None
    line: int | None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that stands before the last one in the same file."""

    outcome: str
    entry: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the log tells of the run itself; None where it does not.

    `versions` are printed ones; `versions_inferred` holds ranges (`>=2.3,<2.5`) that the forms of lines leave open.
    `phase` is what the run did when its root cause happened; `seconds_after_failure` is the time from there to the
    last line that tells one.
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


@dataclass(frozen=True, slots=True)
class Stats:
    """How much was read: bytes and lines after decompression, and wall-clock seconds."""

    bytes: int = 0
    lines: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The engine's answer. `outcome` is explained, unexplained or healthy."""

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

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain lists, dicts and scalars."""
        return asdict(self) | {"root_cause": self.root_cause.as_dict() if self.root_cause else None}
