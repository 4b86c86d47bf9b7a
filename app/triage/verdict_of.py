"""Writes the verdict: the root finding and the rest, in the form that outsiders rely on."""

from __future__ import annotations

from dataclasses import asdict, replace

import re2

from app.domain.entry import Entry, Language
from app.domain.event import Event, Raised, Where
from app.domain.line import Line
from app.domain.verdict import Attempt, Candidate, Cascade, Evidence, RootCause, RunFacts
from app.parsing.collectives import suspects
from app.reading.redact import redact
from app.triage.action import filled, ranges, told_fix
from app.triage.cascade import causes, explained_by
from app.triage.fingerprint import raised_of, signature
from app.triage.folding import Finding
from app.triage.reading_run import RunReading
from app.triage.root_cause import Choice

_MOST_EVIDENCE = 10
_CERTAIN, _LIKELY = 0.9, 0.55


def alike(finding: Finding, choice: Choice) -> list[Finding]:
    """-> the finding, then the others of its attempt that show the same entry, in the log's order."""
    if finding.entry is None:
        return [finding]
    same = (other for other in choice.live if other.entry == finding.entry and other.attempt == finding.attempt)
    return [finding, *(other for other in same if other is not finding)]


def evidence(finding: Finding, choice: Choice) -> tuple[Evidence, ...]:
    """-> the verbatim lines that show the finding, the one that names it first; a few other ranks' behind."""
    lines: list[Line] = []
    for one in alike(finding, choice):
        raised = one.match.raised if one.match is not None else None
        lines += [*(raised.lines if raised else ()), *(one.event.chain[-1].lines if one.event.chain else ())]
        lines += [line for event in (one.event, *one.samples) for line in event.lines[:3]]
    seen: dict[tuple[int, str], Evidence] = {}
    for line in lines:
        seen.setdefault((line.order, line.raw), Evidence(line.number, redact(line.raw), line.file))
    return tuple(seen.values())[:_MOST_EVIDENCE]


def root_cause(choice: Choice, reading: RunReading, lang: Language) -> RootCause:
    """-> the chosen finding as the verdict's root cause."""
    finding = choice.root
    assert finding is not None
    match, event = finding.match, finding.event
    entry = match.entry if match else None
    score = match.score if match else 0.5
    captured = _captured(entry, alike(finding, choice))
    rank, local_rank, host = _where(finding, choice, captured.get("rank"))
    if finding.ranks and finding.ranks <= {wait.rank for wait in reading.collectives.waits}:
        rank, local_rank, host = _missing(reading), None, None  # Who waited in vain did not fail first.
    values = captured | {name: str(value) for name, value in (("rank", rank), ("host", host)) if value is not None}
    return RootCause(
        entry=entry.id if entry else None,
        title=entry.title.in_(lang) if entry else signature(finding),
        confidence="certain" if score >= _CERTAIN else "likely" if score >= _LIKELY else "possible",
        score=score,
        rank=rank,
        local_rank=local_rank,
        host=host,
        attempt=finding.attempt,
        time=dated(event.time, reading),
        evidence=evidence(finding, choice),
        exception=_exception(raised_of(finding)),
        causes=tuple(cause.in_(lang) for cause in entry.causes) if entry else (),
        fixes=tuple(told_fix(fix, values, lang) for fix in entry.fixes) if entry else (),
        checks=tuple(filled(check, values) for check in entry.checks) if entry else (),
        references=entry.references if entry else (),
        owner=entry.owner if entry else None,
        captured=values,
    )


def candidates(choice: Choice, lang: Language) -> tuple[Candidate, ...]:
    """-> the entries that were seen and lost, strongest first."""
    best: dict[str, Candidate] = {}
    chosen = choice.root.entry if choice.root else None
    seen = [(finding, 0.5) for finding in choice.live] + [(finding, 0.2) for finding in choice.survived]
    for finding, lost in seen:
        for match in finding.matches:
            score = round(match.score * lost, 2)
            if match.entry.id != chosen and score > best.get(match.entry.id, Candidate("", 0, "")).score:
                best[match.entry.id] = Candidate(match.entry.id, score, match.entry.title.in_(lang))
    return tuple(sorted(best.values(), key=lambda candidate: -candidate.score))[:5]


def cascades(choice: Choice) -> tuple[Cascade, ...]:
    """-> what else went wrong in the root's run, in the log's order, each with what it follows from."""
    told: dict[tuple[str | None, str], Cascade] = {}
    if choice.root is None:
        return ()
    chosen, behind = choice.root, causes(choice.live)
    for finding in choice.live:
        root = choice.roots.get(finding.attempt, chosen)
        if finding is root or finding is chosen or (finding.match is not None and finding.match.weak):
            continue
        cause = explained_by(finding, behind) or root
        text = redact(finding.event.line.raw.strip())[:300]
        ranks = finding.ranks or {rank for rank in (finding.event.rank,) if rank is not None}
        key = (finding.entry, "" if finding.entry else text)
        if key in told:
            known = told[key]
            ranks = ranks | set(_unfold(known.ranks))
            told[key] = replace(known, ranks=ranges(ranks))
        elif finding.entry is None or finding.entry != chosen.entry:
            line = finding.event.line
            told[key] = Cascade(finding.entry, ranges(ranks), line.number, cause.entry, text, line.file)
    return tuple(told.values())


def attempts(choice: Choice) -> tuple[Attempt, ...]:
    """-> each attempt's own root cause."""
    return tuple(
        Attempt(number, root.entry, root.event.line.number, root.event.line.file)
        for number, root in choice.roots.items()
    )


def run_facts(reading: RunReading, choice: Choice) -> RunFacts:
    """-> what the log tells of the run."""
    env = reading.environment
    hosts = dict(env.hosts)
    for finding in reading.findings:
        if finding.event.host and finding.event.host != "localhost":
            hosts.setdefault(finding.event.host)
    return RunFacts(
        launcher=env.launcher,
        world_size=env.world_size,
        hosts=tuple(hosts),
        attempts=max([1, reading.elastic.attempt, *(number + 1 for number in choice.roots)]),
        phase=env.phase,
        step=env.step,
        versions=dict(env.versions),
        started=dated(env.started, reading),
        ended=dated(env.ended, reading),
    )


def dated(time: str | None, reading: RunReading) -> str | None:
    """-> an ISO 8601 time; one without a year takes it from another time of the log, or is not told."""
    if time is None or not time.startswith("--"):
        return time
    reported = (finding.event.time for finding in reading.findings)
    known = (reading.environment.started, reading.environment.ended, *reported)
    year = next((other[:4] for other in known if other and other[:4].isdigit()), None)
    return f"{year}{time[1:]}" if year else None


def _unfold(text: str) -> list[int]:
    parts = [part.split("-") for part in text.split(",") if part]
    return [rank for part in parts for rank in range(int(part[0]), int(part[-1]) + 1)]


def _captured(entry: Entry | None, findings: list[Finding]) -> dict[str, str]:
    """-> what the entry's captures find in the texts that showed it."""
    parts: list[str] = []
    for event in (finding.event for finding in findings):
        parts += [event.text, *(raised.text for raised in event.chain), *(line.text for line in event.lines)]
    text = "\n".join(parts)
    found: dict[str, str] = {}
    for name, pattern in entry.capture if entry else ():
        if hit := re2.search(f"(?m){pattern}", text):
            found[name] = redact(hit.group(1) or "")
    return {name: value for name, value in found.items() if value}


def _exception(raised: Raised | None) -> dict[str, object] | None:
    if raised is None:
        return None
    frames = [asdict(frame) for frame in raised.frames]
    return {"type": raised.type, "message": redact(raised.message), "frames": frames}


def _where(finding: Finding, choice: Choice, captured: str | None) -> tuple[int | None, int | None, str | None]:
    """-> rank, local rank, host: what the message names, the event's own, else those of the exit status it led to."""
    event = finding.event
    rank, local, host = event.rank, event.local_rank, event.host
    if captured is not None and captured.isdigit():
        rank, local = int(captured), None if int(captured) != rank else local
    elif (rank is None or event.where is Where.EXIT) and event.source not in ("launcher", "slurm"):
        told = _exit_of(finding, choice)
        if told is not None:
            # With a single host the local rank is the rank.
            rank = told.local_rank if told.rank is None else told.rank
            local, host = told.local_rank, host or told.host
    if host is None:
        exits = (other.event for other in choice.live if other.event.where is Where.EXIT and other.event.rank == rank)
        host = next((other.host for other in exits if other.rank is not None and other.host), None)
    return rank, local, None if host == "localhost" else host


def _missing(reading: RunReading) -> int | None:
    """-> the rank for which the others waited, where the watchdog's lines point at a single one."""
    ranks, _ = suspects(reading.collectives.waits, reading.environment.world_size)
    return next(iter(ranks)) if len(ranks) == 1 else None


def _exit_of(finding: Finding, choice: Choice) -> Event | None:
    """-> the exit status that belongs to a finding without a rank: of the same entry, else the first observed one."""
    exits = [other for other in choice.live if other.attempt == finding.attempt and other.event.where is Where.EXIT]
    same = [other.event for other in exits if other.entry == finding.entry]
    local = finding.event.local_rank
    events = same or [other.event for other in exits if local is None or other.event.local_rank == local]
    order = ("elastic first", "process", "elastic agent", "elastic report")
    known = [event for event in events if event.rank is not None or event.source == "elastic agent"]
    return min(known, key=lambda event: order.index(event.source), default=None)
