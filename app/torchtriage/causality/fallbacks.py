"""What is tried, in this order, if no event says why a run failed: a reading in, one with further events out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from torchtriage.causality.cascade import unexplained
from torchtriage.causality.clock_offsets import clock_offsets
from torchtriage.causality.file_order import in_order_of_failure, with_times_around
from torchtriage.causality.findings import Finding
from torchtriage.causality.hang_evidence import with_evidence
from torchtriage.causality.quoted_errors import alarming_lines, passages, quoted_errors, without_ignored_exceptions
from torchtriage.causality.quoting_documents import without_quotes
from torchtriage.causality.read_runs import ReadRuns
from torchtriage.causality.run_reading import Reading
from torchtriage.causality.survived import ends_badly
from torchtriage.causality.thresholds import HANG_BEATS, HANG_FORMS, HANG_SECONDS
from torchtriage.causality.titles import heading, title
from torchtriage.causality.trailing_errors import trailing_errors
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line, Position
from torchtriage.matching.masking import mask_all
from torchtriage.reading.prefixes.times import seconds_between

# Sources whose lines may say more when they are read again.
_REREAD = frozenset({EventSource.MATCHED_LINE, EventSource.CUT_TRACEBACK})
# Sources that say only that something ended, as launchers and schedulers do.
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
    """One thing to try. `events` yields what it finds; nothing where it does not apply. `replaces`: what the line of
    its event said before goes. `ends`: where it finds something, nothing else is tried."""

    name: str
    events: Callable[[Reading], Iterable[Event]]
    replaces: bool = False
    ends: bool = False


def completed(read: ReadRuns) -> tuple[Reading, ...]:
    """-> the readings of a log, the newest last: with what the fallbacks find, with the times of the lines around, and
    the newest one's files in the order of their first failures, and what dumps and stacks show."""
    readings = [with_times_around(with_fallbacks(without_quotes(reading)), read.clock) for reading in read.readings]
    if len(readings) > 1 and readings[-1].is_empty:
        readings.pop()  # A launcher's banner that was written late; no run of its own.
    last = readings.pop()
    last = replace(last, clock_offsets=clock_offsets(last.environment, read.evidence))
    last = in_order_of_failure(last, read.clock)
    facts = last.environment if read.launcher is None else last.environment.with_launcher(read.launcher)
    last = replace(last, environment=facts, warnings=read.warnings, evidence=read.evidence)
    last = replace(last, beside=read.beside, forms=read.forms, reports_alone=read.alone)
    return (*readings, with_evidence(last))


def with_fallbacks(reading: Reading) -> Reading:
    """-> the reading; where no event says why the run failed, with what the fallbacks find."""
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


def _says_no_cause(reading: Reading, beside: Event | None) -> bool:
    """-> whether all events, beside that of the title's lines, say only that something ended."""
    return all(event.source in _NO_CAUSE for event in reading.events_beside(beside))


def _title(reading: Reading) -> Iterator[Event]:
    """Applies where a person put a title with an exception over a log that does not show it."""
    if (found := _title_of(reading)) is not None:
        yield found


def _quoted_errors(reading: Reading) -> Iterator[Event]:
    """Applies to a short paste of a run that is not seen to end well: messages of entries that are quoted in sentences.

    Lines that launchers printed are left out, and of a run that trained all that is above its last step.
    """
    if not reading.paste or reading.environment.well:
        return
    progress = reading.environment.progress
    since = progress[-1] if progress else START
    launchers = (finding.event for finding in reading.findings if finding.event.source not in _REREAD)
    known = {line.position for event in launchers for line in event.lines}
    known |= reading.claimed if known else set()  # A launcher's traceback quotes its own code.
    rest = [line for line in _paste(reading) if line.position > since and line.position not in known]
    for event in quoted_errors(rest):
        if reading.matcher.shows_whole_sign(event) and not reading.matcher.only_warns(event):
            yield event


def _near_passages(reading: Reading) -> Iterator[Event]:
    """Applies to a short paste in which no entry is found at all: passages that nearly are an entry's message."""
    if _is_unexplained_paste(reading):
        yield from filter(reading.matcher.near_match, passages(_paste(reading)))


def _alarming_lines(reading: Reading) -> Iterator[Event]:
    """Applies where even that finds nothing: the first lines of the paste that speak of an error."""
    if _is_unexplained_paste(reading):
        yield from alarming_lines(_paste(reading), reading.matcher.document_signs)


def _is_unexplained_paste(reading: Reading) -> bool:
    environment = reading.environment
    if not reading.paste or environment.well or environment.progress or environment.foreign:
        return False
    return not reading.failures()


def _paste(reading: Reading) -> list[Line]:
    """-> the lines of a short paste, except what Slurm says about a shell that somebody left."""
    left = reading.extractors.slurm.left
    return without_ignored_exceptions([line for line in reading.paste or () if line.position not in left])


def _trailing_errors(reading: Reading) -> Iterator[Event]:
    """Applies where a launcher at most says that a worker failed: errors at the end of a file that no entry knows."""
    failures = reading.failures()
    trained = bool(reading.environment.progress)  # Then no warning explains the run.
    named = (each for each in unexplained(failures) if each.match and not (trained and each.match.weak))
    if all(map(_is_launcher_echo, named)):
        yield from trailing_errors(
            reading.file_ends, reading.environment, reading.matcher.ending_signs, any(map(ends_badly, failures))
        )


def _is_launcher_echo(finding: Finding) -> bool:
    """-> whether a launcher says only that one of its workers failed."""
    echo = finding.has_role(Role.LAUNCHER_ECHO) and finding.matches[0].entry.kind is Kind.CONSEQUENCE
    return echo and finding.event.source not in _REREAD


def _heading(reading: Reading) -> Iterator[Event]:
    """Applies below a heading that an entry knows, where the traceback was cut off before it said what was raised."""
    cut = any(finding.event.source is EventSource.CUT_TRACEBACK for finding in reading.findings)
    found = heading(reading.head, reading.paste is not None) if cut else None
    if found is not None and _says_no_cause(reading, found) and reading.matcher.shows_whole_sign(found):
        yield found


def _hang(reading: Reading) -> Iterator[Event]:
    """Applies where nothing at all was found: behind its last step only a monitor prints, for an hour or more."""
    environment = reading.environment
    if reading.findings or environment.well or environment.wound_up:
        return
    for end in reading.file_ends:
        event = _hang_event([line for line, _ in end], environment.progress)
        if event is not None:
            yield event


def _hang_event(tail: Sequence[Line], progress: Collection[Position]) -> Event | None:
    """-> the event of a run whose last step is followed by nothing but a monitor's lines, again and again for an hour
    or more. `tail` is the end of a file, `progress` holds the positions of the lines that show steps."""
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
