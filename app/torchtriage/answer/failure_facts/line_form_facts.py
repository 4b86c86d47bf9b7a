"""Facts that single lines of the log show, found with the vocabulary's line forms. For each fact the most certain line
counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line, Position
from torchtriage.facts import progress
from torchtriage.facts.line_forms import MOMENT, PROCESS, LineForms, LineValue
from torchtriage.runs import context_lines
from torchtriage.runs.findings import Finding

_PROGRESS_OF = "progress_of"
_MAX_FINDINGS = 64
_MAX_LINES = 12  # lines of one event
_MAX_FORMS = 600  # searches in lines that match a form: a limit for logs with very many such lines
# Lines above the failure: for a changing value, an older line of the rank is worth less than another rank's.
_NEAR = 500
_OWN, _SAME_RANK, _NEARLY, _OTHER_RANK, _FAR, _BELOW, _EARLIER, _LATER = range(8)  # how certain a line is


class _Candidate(NamedTuple):
    """A line that may show a fact. A lower `sure` is more certain. `far` is the distance from the failure."""

    sure: int
    far: tuple[int, int]
    line: Line
    rank: int | None
    attempt: int


class _FoundValue(NamedTuple):
    """What a line shows."""

    value: LineValue
    place: _Candidate
    form: int


def line_form_facts(failure: Failure) -> Iterator[Fact]:
    """Yields the facts of the lists `line-facts-…`. The failure's own lines come first, then lines of the same rank
    above it, newest first, then lines of other ranks. A fact about the moment must be above the failure. A fact about a
    process must come from that process."""
    forms = failure.reading.matcher.patterns.line_forms
    candidates = sorted(_candidates(failure), key=lambda one: (one.sure, one.far))
    found: dict[str, _FoundValue] = {}
    left = _MAX_FORMS
    for place, pointed in zip(candidates, forms.pointed([one.line.text for one in candidates]), strict=True):
        for form in sorted(pointed):
            if left and _counts(forms.subject_of(form), place, failure) and not forms.names(form) <= found.keys():
                left -= 1
                for value in forms.read(form, place.line.text):
                    found.setdefault(value.name, _FoundValue(value, place, form))
    yield from _facts(found, forms, failure)


def _facts(found: dict[str, _FoundValue], forms: LineForms, failure: Failure) -> Iterator[Fact]:
    """Yields the facts without secrets. Secrets are removed from the whole line, because a value is recognized by the
    name before it."""
    plain = _without_secrets({one.place.line.text for one in found.values()}, failure)
    for name, (value, place, form) in found.items():
        if name == _PROGRESS_OF and ("progress" not in found or found["progress"].place.line != place.line):
            continue  # the name of another bar
        shown = plain[place.line.text]
        if shown != place.line.text:
            again = next((other for other in forms.read(form, shown) if other.name == name), None)
            if again is None:
                continue
            value = again
        own = failure.root.captured.get(name)
        if own is not None and own != str(value.value):
            continue  # The failure's own message gives another value.
        line = place.line
        yield Fact(name, value.value, value.unit, line.number, line.file, place.rank, place.attempt or None)


def _without_secrets(texts: Iterable[str], failure: Failure) -> dict[str, str]:
    whole = list(texts)
    shown = failure.shown("\n".join(whole)).split("\n")
    if len(shown) != len(whole):
        shown = [failure.shown(text) for text in whole]
    return dict(zip(whole, shown, strict=True))


def _counts(subject_of: str, place: _Candidate, failure: Failure) -> bool:
    """Returns whether a form's fact in a line applies to this failure."""
    if subject_of == MOMENT:
        return place.sure <= _FAR
    if subject_of == PROCESS:
        own = place.rank is not None and place.rank == failure.root.rank and place.attempt == failure.root.attempt
        return place.sure == _OWN or own
    return True


def _candidates(failure: Failure) -> Iterator[_Candidate]:
    """Yields the available lines that may show a fact, each once."""
    known: set[tuple[Position, str]] = set()  # One line can contain the output of several writers.
    for line, rank, attempt, own in _lines(failure):
        if (line.position, line.text) not in known:
            known.add((line.position, line.text))
            yield _located(line, rank, attempt, own, failure)


def _located(line: Line, rank: int | None, attempt: int, own: bool, failure: Failure) -> _Candidate:
    root, failed = failure.root, failure.finding.position
    above = line.position <= failed
    away = abs(failed.file - line.position.file), abs(failed.line - line.position.line)
    if own:
        sure = _OWN
    elif attempt != root.attempt:
        sure = _EARLIER if attempt < root.attempt else _LATER
    elif not above:
        sure = _BELOW
    elif away > (0, _NEAR):
        sure = _FAR
    elif rank is None or root.rank is None:
        sure = _NEARLY
    else:
        sure = _SAME_RANK if rank == root.rank else _OTHER_RANK
    return _Candidate(sure, away, line, rank, attempt)


def _lines(failure: Failure) -> Iterator[tuple[Line, int | None, int, bool]]:
    """Yields lines with their ranks and attempts, and whether they are the failure's own."""
    chosen, reading = failure.finding, failure.reading
    yield from _of_finding(chosen, own=True)
    live = [finding for finding in failure.choice.live if finding is not chosen]
    near = sorted(live, key=lambda finding: abs(finding.position.line - chosen.position.line))
    for finding in near[:_MAX_FINDINGS]:
        yield from _of_finding(finding, own=False)
    lines = [*reading.facts.progress_lines, *reading.facts.deferred_lines]
    lines += context_lines.above(reading.above, failure.begins)
    if reading.paste is not None:
        lines += [line for line in reading.paste if line.position not in reading.claimed]
    else:
        lines += reading.head
        lines += [line for end in reading.file_ends for line, claimed in end if not claimed]
    for line in lines:
        redrawn = line.text.count("%|") > 1
        newest = line._replace(text=progress.newest(line.text)) if redrawn else line
        yield newest, line.rank, line.attempt, False


def _of_finding(finding: Finding, own: bool) -> Iterator[tuple[Line, int | None, int, bool]]:
    for event in (finding.event, *finding.samples):
        # Above the line that names an exception there is code, which shows no facts.
        raised = (line for one in event.chain for line in one.lines if line.position >= one.lines[0].position)
        for line in [*event.lines, *raised][:_MAX_LINES]:
            yield line, event.rank if line.rank is None else line.rank, finding.attempt, own and event is finding.event
