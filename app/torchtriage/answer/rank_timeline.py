"""Builds marks that show what happened to each rank after the first failure, in the order of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from torchtriage.causality.root_cause import Choice
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import Position
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark, RootCause
from torchtriage.lazy_regex import lazy_regex
from torchtriage.runs.findings import Finding, FirstSeen
from torchtriage.runs.run_reading import Reading

MAX_OWN_MARKS = 64  # ranks that get their own marks; if there are more, ranks of one kind share a mark
_ROOT = ("first", "missing")
_STOPPED = frozenset({-15, 143})  # SIGTERM, which launchers send to the other processes
_RAN_FOR = lazy_regex(r"\bran for (\d{1,12}) (?:milliseconds|ms)\b")


@dataclass(frozen=True, slots=True)
class _Mark:
    """What one rank showed. `exit` is true if it comes from the rank's exit status, which is less informative than the
    rank's own output."""

    rank: int
    kind: str
    place: FirstSeen
    entry: str | None
    waited: float | None
    exit: bool


def timeline(choice: Choice, reading: Reading, root: RootCause | None) -> tuple[RankMark, ...]:
    """Returns the first informative mark of each rank in the root cause's attempt, in the order of the log. Ranks that
    showed nothing come last."""
    if choice.root is None or root is None:
        return ()
    best: dict[int, _Mark] = {}
    for mark in _finding_marks(choice, reading, root):
        known = best.get(mark.rank)
        if known is None or _strength(mark) < _strength(known):
            best[mark.rank] = mark
    marks = sorted(best.values(), key=lambda mark: (mark.kind not in _ROOT, mark.place.position))
    shared = len(marks) > MAX_OWN_MARKS
    shown = list(_shared(marks, reading) if shared else (_merged_mark([mark], reading) for mark in marks))
    if silent := reading.ranks - best.keys():
        shown.append(RankMark(RankSet.of(silent), "silent", None))
    return tuple(shown)


def _finding_marks(choice: Choice, reading: Reading, root: RootCause) -> Iterable[_Mark]:
    """Yields what each rank showed, once per finding."""
    chosen = choice.root
    assert chosen is not None
    live = {id(finding) for finding in choice.live}
    if root.rank is not None:
        line = chosen.event.line
        # If only other ranks report it, the rank itself wrote no line, so there is no line and no time.
        missing = bool(chosen.places) and root.rank not in chosen.places
        shown = FirstSeen(line.position, line.number, line.file, None if missing else chosen.event.time)
        place = chosen.places.get(root.rank, shown)
        yield _Mark(root.rank, "missing" if missing else "first", place, chosen.entry, None, False)
    for finding in reading.findings:
        exit_code = finding.event.exit_code if finding.event.where is Where.EXIT else None
        counts = id(finding) in live or exit_code in _STOPPED
        weak = finding.match is not None and finding.match.weak and exit_code is None
        if not counts or weak or finding.attempt != chosen.attempt or finding.event.source is EventSource.LAUNCHER:
            continue
        waited = _RAN_FOR.search(finding.event.text)
        seconds = int(waited[1]) / 1000 if waited else None
        for rank, place in finding.places.items():
            yield _Mark(rank, _kind(finding), place, finding.entry, seconds, exit_code is not None)


def _kind(finding: Finding) -> str:
    """Returns the kind of a finding: waited (the rank noticed that others were gone), stopped (the launcher ended it),
    ended (only its exit status is known) or failed (its own failure)."""
    event, match = finding.event, finding.match
    if event.where is Where.EXIT:
        return "stopped" if event.exit_code in _STOPPED else "ended"
    echo = match is not None and (finding.has_role(Role.DISTRIBUTED_SYMPTOM) or match.entry.kind is Kind.CONSEQUENCE)
    return "waited" if echo else "failed"


def _strength(mark: _Mark) -> tuple[bool, bool, Position]:
    return mark.kind not in _ROOT, mark.exit, mark.place.position


def _shared(marks: list[_Mark], reading: Reading) -> Iterable[RankMark]:
    """Yields one mark for all ranks with the same kind and entry."""
    alike: dict[tuple[str, str | None], list[_Mark]] = {}
    for mark in marks:
        alike.setdefault((mark.kind, mark.entry), []).append(mark)
    return (_merged_mark(part, reading) for part in alike.values())


def _merged_mark(marks: list[_Mark], reading: Reading) -> RankMark:
    """Returns one mark for several marks of one kind. The earliest one gives the line and the time."""
    first = marks[0]
    times = sorted(filter(None, (reading.facts.span.dated(mark.place.time) for mark in marks)))
    result = RankMark(
        RankSet.of(mark.rank for mark in marks),
        first.kind,
        first.place.number,
        first.place.file,
        time=reading.facts.span.dated(first.place.time),
        entry=first.entry,
        waited=first.waited,
    )
    return replace(result, until=times[-1]) if len(times) > 1 else result
