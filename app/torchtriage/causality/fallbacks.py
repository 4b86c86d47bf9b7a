"""Tries further searches, in this order, if no event says why a run failed. Each adds events to the reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from torchtriage.causality.clock_offsets import clock_offsets
from torchtriage.causality.consequences import unexplained
from torchtriage.causality.file_order import infer_times, order_by_failure
from torchtriage.causality.hang_evidence import with_evidence
from torchtriage.causality.issue_titles import heading, title
from torchtriage.causality.quoted_errors import alarming_lines, passages, quoted_errors, without_ignored_exceptions
from torchtriage.causality.quoting_documents import without_quotes
from torchtriage.causality.survived import reports_process_failure
from torchtriage.causality.thresholds import HANG_BEATS, HANG_FORMS, HANG_SECONDS
from torchtriage.causality.trailing_errors import trailing_errors
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line, Position
from torchtriage.matching.masking import mask_all
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.runs.findings import Finding
from torchtriage.runs.read_runs import ReadRuns
from torchtriage.runs.run_reading import Reading

# Sources whose lines may show more when they are read again.
_REREAD = frozenset({EventSource.MATCHED_LINE, EventSource.CUT_TRACEBACK})
# Sources that report only that something ended, such as launchers and schedulers.
_NO_CAUSE = frozenset(
    {
        EventSource.SLURM,
        EventSource.MATCHED_LINE,
        EventSource.CUT_TRACEBACK,
        EventSource.LAUNCHER,
        EventSource.ELASTIC_AGENT,
        EventSource.FIRST_FAILURE,
        EventSource.OTHER_FAILURE,
    }
)


@dataclass(frozen=True, slots=True)
class Fallback:
    """One search. `events` yields what it finds, or nothing if it does not apply. `replaces`: its event replaces what
    was read from the same line. `ends`: if it finds something, no later search runs."""

    name: str
    events: Callable[[Reading], Iterable[Event]]
    replaces: bool = False
    ends: bool = False


def completed(read: ReadRuns) -> tuple[Reading, ...]:
    """Returns the readings of a log, the newest last. Adds the results of the fallbacks, times from nearby lines, and
    for the newest reading what dumps and stacks show. Also orders its files by their first failures."""
    readings = [infer_times(with_fallbacks(without_quotes(reading)), read.clock) for reading in read.readings]
    if len(readings) > 1 and readings[-1].is_empty:
        readings.pop()  # The banner of a launcher that was printed late; it begins no run of its own.
    last = readings.pop()
    last = replace(last, clock_offsets=clock_offsets(last.facts, read.evidence))
    last = order_by_failure(last, read.clock)
    facts = last.facts if read.launcher is None else last.facts.with_launcher(read.launcher)
    last = replace(last, facts=facts, warnings=read.warnings, evidence=read.evidence)
    last = replace(last, report_findings=read.report_findings, forms=read.forms, reports_alone=read.alone)
    return (*readings, with_evidence(last))


def with_fallbacks(reading: Reading) -> Reading:
    """Returns the reading, with what the fallbacks find if no event says why the run failed."""
    if not _says_no_cause(reading, _title_of(reading)):
        return reading
    for fallback in FALLBACKS:
        events = tuple(fallback.events(reading))
        reading = reading.with_events(events, events[0].line if events and fallback.replaces else None)
        if events and fallback.ends:
            break
    return reading


def _title_of(reading: Reading) -> Event | None:
    return title(reading.head, pasted=reading.paste is not None)


def _says_no_cause(reading: Reading, except_for: Event | None) -> bool:
    """Returns whether all events, except those in the title's lines, report only that something ended."""
    return all(event.source in _NO_CAUSE for event in reading.other_events(except_for))


def _title(reading: Reading) -> Iterator[Event]:
    """Applies if a person put a title that names an exception above a log that does not show this exception."""
    if (found := _title_of(reading)) is not None:
        yield found


def _quoted_errors(reading: Reading) -> Iterator[Event]:
    """Applies to a short paste without a good end. It finds messages of entries that are quoted in sentences.

    Lines that launchers printed do not count. If the run trained, lines above its last step do not count either.
    """
    if not reading.paste or reading.facts.good_ends:
        return
    progress = reading.facts.progress
    since = progress[-1] if progress else START
    launchers = (finding.event for finding in reading.findings if finding.event.source not in _REREAD)
    known = {line.position for event in launchers for line in event.lines}
    known |= reading.claimed if known else set()  # The traceback of a launcher quotes the launcher's own code.
    rest = [line for line in _paste(reading) if line.position > since and line.position not in known]
    for event in quoted_errors(rest, reading.matcher.document_regexes):
        if reading.matcher.matches_complete_sign(event) and not reading.matcher.is_only_warning(event):
            yield event


def _near_passages(reading: Reading) -> Iterator[Event]:
    """Applies to a short paste in which no entry is found. It finds passages that are similar to an entry's message."""
    if _is_unexplained_paste(reading):
        yield from filter(reading.matcher.near_match, passages(_paste(reading), reading.matcher.document_regexes))


def _alarming_lines(reading: Reading) -> Iterator[Event]:
    """Applies if even that finds nothing. It takes the first lines of the paste that mention an error."""
    if _is_unexplained_paste(reading):
        yield from alarming_lines(_paste(reading), reading.matcher.document_regexes)


def _is_unexplained_paste(reading: Reading) -> bool:
    facts = reading.facts
    if not reading.paste or facts.good_ends or facts.progress or facts.other_program_lines:
        return False
    return not reading.failures()


def _paste(reading: Reading) -> list[Line]:
    """Returns the lines of a short paste, without Slurm's messages about a shell that somebody left."""
    left = reading.extractors.slurm.left
    return without_ignored_exceptions([line for line in reading.paste or () if line.position not in left])


def _trailing_errors(reading: Reading) -> Iterator[Event]:
    """Applies if at most a launcher reports that a worker failed. It finds errors at the end of a file that no entry
    matches."""
    failures = reading.failures()
    trained = bool(reading.facts.progress)  # A warning cannot explain this run.
    named = (each for each in unexplained(failures) if each.match and not (trained and each.match.weak))
    if all(map(_is_launcher_echo, named)):
        yield from trailing_errors(
            reading.file_ends,
            reading.facts,
            reading.matcher.ending_regexes,
            any(map(reports_process_failure, failures)),
        )


def _is_launcher_echo(finding: Finding) -> bool:
    """Returns whether a launcher reports only that one of its workers failed."""
    echo = finding.has_role(Role.LAUNCHER_ECHO) and finding.matches[0].entry.kind is Kind.CONSEQUENCE
    return echo and finding.event.source not in _REREAD


def _heading(reading: Reading) -> Iterator[Event]:
    """Applies if an entry matches the heading, and the log cuts off the traceback before the exception's message."""
    cut = any(finding.event.source is EventSource.CUT_TRACEBACK for finding in reading.findings)
    found = heading(reading.head, reading.paste is not None) if cut else None
    if found is not None and _says_no_cause(reading, found) and reading.matcher.matches_complete_sign(found):
        yield found


def _hang(reading: Reading) -> Iterator[Event]:
    """Applies if nothing at all was found and only a monitor prints after the last step, for an hour or more."""
    facts = reading.facts
    if reading.findings or facts.good_ends or facts.shutdowns:
        return
    for end in reading.file_ends:
        event = _hang_event([line for line, _ in end], facts.progress)
        if event is not None:
            yield event


def _hang_event(tail: Sequence[Line], progress: Collection[Position]) -> Event | None:
    """Returns the event for a hang, or None. A run hangs if only the lines of a monitor follow its last step, again and
    again for an hour or more. `tail` is the end of a file, `progress` the positions of the lines that show steps."""
    since = max((position for position in progress if position <= tail[-1].position), default=None) if tail else None
    if since is None or since < tail[0].position:
        return None
    beats = [line for line in tail if line.position > since and any(map(str.isalpha, line.text))]
    forms = Counter(mask_all(line.text) for line in beats)
    if not forms or len(forms) > HANG_FORMS or min(forms.values()) < HANG_BEATS:
        return None
    seconds = seconds_between(beats[0].time, beats[-1].time)
    if seconds is None or seconds < HANG_SECONDS:
        return None
    return Event.at(beats[-1], f"no progress for {seconds:.0f} s", EventSource.HANG)


FALLBACKS = (
    Fallback("title", _title, replaces=True, ends=True),
    Fallback("quoted errors", _quoted_errors),
    Fallback("near passages", _near_passages),
    Fallback("alarming lines", _alarming_lines),
    Fallback("trailing errors", _trailing_errors),
    Fallback("heading", _heading, replaces=True),
    Fallback("hang", _hang),
)
