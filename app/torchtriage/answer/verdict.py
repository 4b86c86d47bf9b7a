"""Builds the parts of a verdict from the chosen finding and the other findings: root cause, cascades, candidates and
attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter

from torchtriage.answer.verdict_run import dated, failure_time
from torchtriage.causality import confidence
from torchtriage.causality.consequences import causes, explained_by
from torchtriage.causality.fingerprint import raised_of, signature
from torchtriage.causality.rank_attribution import RankRule, place_of
from torchtriage.causality.root_cause import Choice
from torchtriage.domain.entry import Entry, Language, Sign
from torchtriage.domain.event import EventSource, Raised, Where
from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line, Position
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import Attempt, Candidate, Cascade, Evidence, ExceptionFact, RootCause, StackFrame
from torchtriage.lazy_regex import lazy_regex
from torchtriage.linear_regex import linear_regex
from torchtriage.matching.patterns import regex_of
from torchtriage.reading.redaction.redact import redact
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

_MAX_EVIDENCE = 10
_SIGNALLED = lazy_regex(r"\bSignal \d+ \(SIG\w+\) received by PID \d+")
# what():  [Rank 2] NCCL watchdog thread terminated with exception: [Rank 2] Watchdog caught collective operation …
_REPEATED = lazy_regex(r"\s*what\(\):\s+(?:\[Rank \d+\] NCCL watchdog thread terminated with exception: )?(\S.{40,})$")
_CLOCK = lazy_regex(r"\b(\d\d:\d\d:\d\d[.,]\d{3,9})\b")
_BARE_TYPE = lazy_regex(r"(?:\[?rank ?\d+\]?:? *)?(?:[\w.]+: ?)+")
_MAX_CASCADE_LENGTH = 300  # characters of a cascade's line


def same_entry_findings(finding: Finding, choice: Choice) -> list[Finding]:
    """Returns the finding, then the other findings of its attempt with the same entry, in the order of the log."""
    if finding.entry is None:
        return [finding]
    same = (other for other in choice.live if other.entry == finding.entry and other.attempt == finding.attempt)
    return [finding, *(other for other in same if other is not finding)]


def evidence(
    finding: Finding, choice: Choice, rank: int | None = None, waited: Line | None = None
) -> tuple[Evidence, ...]:
    """Returns the verbatim lines that show the finding. The line that names it comes first, and a few lines of other
    ranks follow. If ranks timed out, `waited` is the line on which the failed rank waited elsewhere.

    Of exit statuses, only those of `rank`, the rank that failed, are included.
    """
    lines: list[Line] = []
    exit_of_one = finding.event.where is Where.EXIT and rank is not None
    for one in same_entry_findings(finding, choice):
        if exit_of_one and one is not finding and one.event.rank not in (rank, None):
            continue
        raised = one.match.raised if one.match is not None else None
        lines += [*(raised.lines if raised else ()), *(one.event.chain[-1].lines if one.event.chain else ())]
        lines += [line for event in (one.event, *one.samples) for line in event.lines[:3]]
    if finding.match is not None and finding.match.weak:
        # The end of a process says little, so the scheduler's report on the job is added.
        lines += [other.event.line for other in choice.live if other.event.source is EventSource.SLURM]
    if waited is not None and finding.event.source in (EventSource.COLLECTIVE, EventSource.COLLECTIVE_MISMATCH):
        lines.insert(1, waited)
    telling = first_occurrence(finding, choice) or most_informative_line(finding)
    different: dict[tuple[Position, str], Line] = {}
    for line in [*([telling] if telling else ()), *lines]:
        different.setdefault((line.position, line.raw), line)
    shown = islice(different.values(), _MAX_EVIDENCE)
    return tuple(Evidence(line.number, line.raw, line.file) for line in shown)


def first_occurrence(finding: Finding, choice: Choice) -> Line | None:
    """Returns the line that showed the same failure first: an earlier line of another rank, by the clock; or the line
    above C++'s repetition of it at the end of the process. If the log was cut before the message, it is the innermost
    frame's line. Returns None if the finding's own line is the first."""
    event = finding.event
    if event.source is EventSource.COLLECTIVE:
        clocks = [(found[1], line) for line in _lines_of(finding) if (found := _CLOCK.search(line.raw))]
        first = min(clocks, key=itemgetter(0), default=("", event.line))[1]
        return None if first is event.line else first
    if len(event.chain) == 1 and (frame := _innermost_frame(event.chain[-1])):
        return frame
    repeated = _REPEATED.match(event.line.text)
    if repeated is None:
        return None
    above = (line for one in choice.live for line in _lines_of(one) if line.position < finding.position)
    return next((line for line in above if line.text.rstrip().endswith(repeated[1])), None)


def _lines_of(finding: Finding) -> Iterator[Line]:
    return (event.line for event in (finding.event, *finding.samples))


def most_informative_line(finding: Finding) -> Line | None:
    """Returns the most informative of a finding's lines: in a message of many lines the one at which the sign begins,
    in torchelastic's report the one that names the signal. Returns None if the first line is as good."""
    match = finding.match
    if finding.event.where is Where.EXIT:
        return next((line for line in finding.event.lines if _SIGNALLED.search(line.text)), None)
    if match is None or match.raised is None or match.sign is None or match.sign.where == "frame":
        return None
    lines = match.raised.lines
    line = line_of(match.sign, match.raised.text, lines)
    if line is lines[0] and len(lines) > 1 and _BARE_TYPE.fullmatch(line.text.strip()):
        return lines[1]
    return line


def _innermost_frame(raised: Raised) -> Line | None:
    """Returns the line of the innermost frame, if the log was cut after the colon and has no message."""
    cut = not raised.message.strip() and raised.lines[0].text.rstrip().endswith(":")
    return next((line for line in raised.lines[1:] if 'File "' in line.text), None) if cut else None


def line_of(sign: Sign, text: str, lines: Sequence[Line]) -> Line | None:
    """Returns the line at which the sign's match begins. `lines` are the lines that `text` was made from."""
    found = linear_regex(regex_of(sign)).search(text)
    begins = text[found.start() :].split("\n", 1)[0].strip() if found else ""
    return next((line for line in lines if begins and begins in line.text), lines[0] if lines else None)


def with_first_evidence(root: RootCause, line: Line, shown: Callable[[str], str]) -> RootCause:
    """Returns the root cause with this line before all other evidence."""
    first = next((one for one in root.evidence if (one.line, one.file) == (line.number, line.file)), None)
    first = first or Evidence(line.number, shown(line.raw), line.file)
    others = tuple(one for one in root.evidence if one is not first)
    return replace(root, evidence=(first, *others)[:_MAX_EVIDENCE])


def root_cause(
    choice: Choice, reading: Reading, known: Mapping[str, str], shown: Callable[[str], str]
) -> tuple[RootCause, RankRule | None]:
    """Returns the chosen finding as the verdict's root cause, without the entry's text, which is added later. Also
    returns the rule that decided its rank if the finding itself names none. `known` supplies captured values that the
    log lacks. `shown` is applied to all lines of the evidence together."""
    finding = choice.root
    assert finding is not None
    match = finding.match
    entry = match.entry if match else None
    points = confidence.score(finding, choice.live, reading)
    captured = _captured(entry, same_entry_findings(finding, choice))
    (rank, local_rank, host), rule = place_of(finding, choice, reading, captured.get("rank"))
    host = host_name(host) or host_name(captured.get("host"))
    origin = {name: str(value) for name, value in (("rank", rank), ("host", host)) if value is not None}
    root = RootCause(
        entry=entry.id if entry else None,
        title=signature(finding),
        confidence=confidence.word(points),
        score=points,
        rank=rank,
        local_rank=local_rank,
        host=host,
        attempt=finding.attempt,
        time=dated(failure_time(finding), reading),
        evidence=_shown(evidence(finding, choice, rank, reading.extractors.collectives.wait_of(rank)), shown),
        exception=_exception(raised_of(finding)),
        captured={**known} | captured | origin,
        pack=(entry.pack or None) if entry else None,
    )
    return root, rule


def _shown(evidence: tuple[Evidence, ...], shown: Callable[[str], str]) -> tuple[Evidence, ...]:
    """Returns the evidence after `shown` was applied to its lines together, because a private key has several lines."""
    lines = shown("\n".join(line.text for line in evidence)).split("\n")
    if len(lines) != len(evidence):
        lines = [shown(line.text) for line in evidence]
    return tuple(replace(line, text=text) for line, text in zip(evidence, lines, strict=True))


def candidates(choice: Choice, followed: Iterable[Cascade], lang: Language) -> tuple[Candidate, ...]:
    """Returns the entries that matched but were not chosen, strongest first. Entries of what `followed` from the root
    cause are left out, because the verdict shows them already."""
    best: dict[str, Candidate] = {}
    known = {choice.root.entry if choice.root else None, *(one.entry for one in followed)}
    seen = [(finding, 0.5) for finding in choice.live] + [(finding, 0.2) for finding in choice.survived]
    for finding, lost in seen:
        for match in finding.matches:
            score = round(match.score * lost, 2)
            if match.entry.id not in known and score > best.get(match.entry.id, Candidate("", 0, "")).score:
                best[match.entry.id] = Candidate(match.entry.id, score, match.entry.title.in_(lang))
    return tuple(sorted(best.values(), key=lambda candidate: -candidate.score))[:5]


def cascades(choice: Choice, shown: Callable[[str], str]) -> tuple[Cascade, ...]:
    """Returns what else went wrong in the root cause's run, in the order of the log, each with its cause. `shown` is
    applied to a line before it is cut, because half a secret cannot be recognized."""
    merged: dict[tuple[str | None, str], Cascade] = {}
    if choice.root is None:
        return ()
    chosen, behind = choice.root, causes(choice.live)
    for finding in choice.live:
        root = choice.roots.get(finding.attempt, chosen)
        if finding is root or finding is chosen or (finding.match is not None and finding.match.weak):
            continue
        cause = explained_by(finding, behind) or root
        text = shown(finding.event.line.raw.strip())[:_MAX_CASCADE_LENGTH]
        ranks = finding.ranks or {rank for rank in (finding.event.rank,) if rank is not None}
        key = (finding.entry, "" if finding.entry else text)
        if key in merged:
            merged[key] = replace(merged[key], ranks=merged[key].ranks | ranks)
        elif finding.entry is None or finding.entry != chosen.entry:
            line = finding.event.line
            merged[key] = Cascade(finding.entry, RankSet.of(ranks), line.number, cause.entry, text, line.file)
    return tuple(merged.values())


def attempts(choice: Choice) -> tuple[Attempt, ...]:
    """Returns the root cause of each attempt."""
    return tuple(
        Attempt(number, root.entry, root.event.line.number, root.event.line.file)
        for number, root in choice.roots.items()
    )


def _captured(entry: Entry | None, findings: list[Finding]) -> dict[str, str]:
    """Returns the values that the entry's captures find in the texts that matched. Secrets are removed first, because a
    value is recognized as a secret by the name before it."""
    parts: list[str] = []
    for event in (finding.event for finding in findings):
        parts += [event.text, *(raised.text for raised in event.chain), *(line.text for line in event.lines)]
    found: dict[str, str] = {}
    text = redact("\n".join(parts)) if entry and entry.capture else ""
    for name, pattern in entry.capture if entry else ():
        if hit := linear_regex(pattern).search(text):
            found[name] = hit.group(1) or ""
    return {name: value for name, value in found.items() if value}


def _exception(raised: Raised | None) -> ExceptionFact | None:
    if raised is None:
        return None
    frames = (StackFrame(at.file, at.line, at.function, at.code, at.user_code) for at in raised.frames)
    return ExceptionFact(raised.type, raised.message, tuple(frames))
