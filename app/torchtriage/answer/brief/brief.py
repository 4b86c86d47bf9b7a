"""Writes what a person or a language model needs to judge a log that is too long to read, in a small number of tokens.

The input is a verdict and the log lines that it refers to. The output is Markdown without secrets. The most useful
lines are kept. What does not fit is left out in whole lines, and the text says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from torchtriage.answer.brief.budget import MAX_LINES, QuotedLine, Section, fit_sections
from torchtriage.answer.brief.ranks import first_failures, last_words
from torchtriage.answer.brief.safe_text import code, place, plain, visible
from torchtriage.answer.brief.token_count import TOKENS, token_count
from torchtriage.answer.brief.wording import WORDS
from torchtriage.answer.labels import ranks_named
from torchtriage.domain.entry import Language
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.domain.verdict import ClockOffset, Evidence, RootCause, Verdict
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.encoded_secrets import redact_encoded
from torchtriage.reading.reread_lines import LineSpan, SeenAgain, WantedLines, joined

_ABOVE, _BELOW = 14, 8  # lines around the first evidence
_LINES_AROUND = 3  # lines around the other evidence
_MARGIN = 70  # lines above a span that are also read: a private key is recognized by its first line
_MARKS = 40  # rank marks whose lines are read
_MAX_RANKS_READ = 8  # ranks that failed first, are missing or printed nothing, whose own files are read
_EVIDENCE, _NEIGHBOUR, _TEXT = 700, 200, 240  # characters of a line
_CLOCKS = 3  # hosts whose clock errors are mentioned
_ITEMS = 8  # hosts, versions and so on in one line
_REASONS = 4
_ALIKE = 80  # characters that are compared to recognize a line of the file as the evidence
_CARETS = lazy_regex(r"[\^~]{4,}$")  # the line below the code of a frame
_SHOWN = "exception message where code file line_number function script rank local_rank host step phase failed_ranks"
_IN_EVIDENCE = frozenset(_SHOWN.split())
_OF_RUN = lazy_regex(r"launcher|world_size|phase|step|exit_code|\w+_version")  # facts that have their own section
Lines = Mapping[tuple[str | None, int], str]
Words = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Brief:
    """The text of a brief, and the log lines that it is based on, by file and line number, without secrets."""

    text: str
    lines: Lines


def lines_needed(verdict: Verdict) -> WantedLines:
    """Returns which lines of the log a brief of this verdict needs."""
    root = verdict.root_cause
    spans = [_around(line, number) for number, line in enumerate(root.evidence)] if root else []
    places = [(mark.line, mark.file) for mark in verdict.timeline[:_MARKS]]
    places += [(fact.line, fact.file) for fact in _facts(verdict)]
    spans += [LineSpan(file, max(1, line - _MARGIN), line) for line, file in places if line is not None]
    telling = [mark for mark in verdict.timeline if mark.kind in ("first", "missing", "silent")]
    ranks = [rank for mark in telling for rank in mark.ranks][:_MAX_RANKS_READ]
    tails: set[str | None] = {line.file for line in root.evidence[:1]} if root else set()
    tails |= {mark.file for mark in verdict.timeline[:_MAX_RANKS_READ] if mark.line is not None}
    return WantedLines(tuple(spans), frozenset(tails or {None}), frozenset(ranks))


def brief(verdict: Verdict, seen: SeenAgain, lang: Language = "en", tokens: int = TOKENS) -> Brief:
    """Returns the brief, with at most `tokens` tokens as `token_count` counts them. `seen` contains those of the wanted
    lines that were found."""
    words, seen = WORDS[lang], replace(seen, tails={file: _clean_tail(tail) for file, tail in seen.tails.items()})
    lines = _lines(verdict, seen)
    title = f"# {words['title']}{words['colon']}{plain(verdict.source, 200)}"
    sections = (
        Section("", (title, "", words["data"]), 0.08),
        Section(words["answer"], tuple(_answer(verdict, words)), 0.22),
        Section(words["evidence"], (), 0.30, tuple(_evidence(verdict.root_cause, lines)) if verdict.root_cause else ()),
        Section(words["ranks"], first_failures(verdict, lines, words), 0.10),
        Section(words["last"], last_words(verdict, seen, words), 0.10),
        Section(words["run"], tuple(_run(verdict, words)), 0.08),
        Section(words["facts"], [_fact(fact, words) for fact in _facts(verdict)], 0.07),
        Section(words["also"], tuple(_related_findings(verdict, words)), 0.05),
    )
    room = tokens
    while token_count(text := redact_encoded(fit_sections(sections, room, words["left_out"]))) > tokens:
        room -= 50  # a redaction mark can be longer than the secret that it replaces
    return Brief(text, lines)


def _around(line: Evidence, number: int) -> LineSpan:
    above, below = (_ABOVE, _BELOW) if number == 0 else (_LINES_AROUND, _LINES_AROUND)
    return LineSpan(line.file, max(1, line.line - max(above, _MARGIN)), line.line + below)


def _lines(verdict: Verdict, seen: SeenAgain) -> dict[tuple[str | None, int], str]:
    """Returns the lines without secrets. If the log was decoded from another format, the file's lines are not the log's
    lines, so only the evidence is returned."""
    root = verdict.root_cause
    evidence = {(line.file, line.line): line.text for line in reversed(root.evidence)} if root else {}
    found: dict[tuple[str | None, int], str] = {}
    files = sorted({file for file, _ in seen.lines}, key=lambda file: file or "")
    for file in files:
        numbers = joined(LineSpan(file, number, number) for other, number in seen.lines if other == file)
        for span in numbers:
            texts = [seen.lines[file, number] for number in range(span.first, span.last + 1)]
            clean = redact_encoded("\n".join(texts)).split("\n")
            if len(clean) != len(texts):
                clean = [redact_encoded(text) for text in texts]
            found.update(((file, number), text) for number, text in enumerate(clean, span.first))
    first = root.evidence[0] if root and root.evidence else None
    own = first is None or visible(first.text, _ALIKE) == visible(found.get((first.file, first.line), ""), _ALIKE)
    last = {(line.file, line.number): line.raw for tail in seen.tails.values() for line in tail}
    return {**last, **found, **evidence} if own else evidence


def _clean_tail(tail: list[Line]) -> list[Line]:
    """Returns the lines without secrets."""
    raw = redact_encoded("\n".join(line.raw for line in tail)).split("\n")
    if len(raw) != len(tail):
        raw = [redact_encoded(line.raw) for line in tail]
    return [line._replace(raw=text) for line, text in zip(tail, raw, strict=True)]


def _evidence(root: RootCause, lines: Lines) -> Iterator[QuotedLine]:
    """Yields the lines that show the failure and the lines around them, in the order of the log."""
    places: dict[tuple[str | None, int], float] = {}
    for at, line in enumerate(root.evidence):
        above, below = (_ABOVE, _BELOW) if at == 0 else (_LINES_AROUND, _LINES_AROUND)
        for number in range(line.line - above, line.line + below + 1):
            away = abs(number - line.line)
            place = at if away == 0 else 20 + 4 * at + away * (1 if number < line.line else 1.5)
            if (line.file, number) in lines:
                places[line.file, number] = min(place, places.get((line.file, number), place))
    shown = {(line.file, line.line) for line in root.evidence}
    order = list(dict.fromkeys(line.file for line in root.evidence))
    for file, number in sorted(places, key=lambda key: (order.index(key[0]), key[1]))[:MAX_LINES]:
        telling = (file, number) in shown
        text = _CARETS.sub("^^^", visible(lines[file, number], _EVIDENCE if telling else _NEIGHBOUR))
        yield QuotedLine(file, number, text, telling, places[file, number])


def _answer(verdict: Verdict, words: Words) -> Iterator[str]:
    root, answer = verdict.root_cause, verdict.answer
    if root is None:
        kind = "healthy" if verdict.outcome == "healthy" else "inconclusive"
        yield f"**{words[kind]}** {plain(verdict.action.reason)}"
        if answer:
            yield f"- {plain(answer.says)}"
            yield f"- {words['not_in_log']}{words['colon']}{plain(answer.unknown or '')}"
            yield from _steps([(step.do, step.run) for step in answer.steps])
        return
    named = f" (`{root.entry}`, {words[root.confidence]})" if root.entry else ""
    yield f"**{plain(root.title)}**{named}{'' if root.entry else ' ' + words['unexplained']}"
    if answer and answer.says:
        yield f"- {plain(answer.says)}"
    elif root.causes:
        yield f"- {plain(root.causes[0])}"
    where = [f"rank {root.rank}"] if root.rank is not None else []
    where += [f"{ranks_named(root.suspects, words['several_ranks'])}?"] if root.suspects else []
    where += [plain(part, 100) for part in (root.host, root.time) if part]
    where += [place(root.evidence[0].line, root.evidence[0].file, words)] if root.evidence else []
    yield f"- {words['failed_first']}{words['colon']}{' · '.join(where)}"
    if answer and answer.unknown:
        yield f"- {words['not_in_log']}{words['colon']}{plain(answer.unknown)}"
    steps = [(step.do, step.run) for step in answer.steps] if answer else []
    steps = steps or [(fix.title, next(iter(fix.commands), None)) for fix in root.fixes[:2]]
    yield from _steps(steps)
    left = f" ({code(verdict.action.exclusion, 200)})" if verdict.action.exclusion else ""
    retry = f"{words[verdict.action.retry]}{left}{words['stop']}{plain(verdict.action.reason)}"
    yield f"- {words['retry']}{words['colon']}{retry}"


def _steps(steps: list[tuple[str, str | None]]) -> Iterator[str]:
    for number, (do, run) in enumerate(steps, 1):
        yield f"{number}. {plain(do)}{f' {code(run, 300)}' if run else ''}"


def _run(verdict: Verdict, words: Words) -> Iterator[str]:
    run = verdict.run
    size = words["size"].format(lines=verdict.stats.lines, bytes=verdict.stats.bytes)
    parts: tuple[dict[str, object], ...] = (
        {"launcher": run.launcher, "world_size": run.world_size, "hosts": _first_names(run.hosts, words)},
        {"phase": run.phase, "step": run.step, "exit_code": run.exit_code,
         "attempts": run.attempts if run.attempts > 1 else None},
        {"started": run.started, "ended": run.ended, "went_on": run.seconds_after_failure},
    )  # fmt: skip
    for part in parts:
        shown = [f"{words[name]} {plain(str(value), 300)}" for name, value in part.items() if value not in (None, "")]
        if shown:
            yield f"- {' · '.join(shown)}"
    if versions := run.versions_inferred | run.versions:
        yield f"- {_first_names([f'{name} {version}' for name, version in versions.items()], words)}"
    for offset in sorted(run.clock_offsets, key=lambda offset: -abs(offset.seconds))[:_CLOCKS]:
        yield f"- {plain(_clock(offset, words), 300)}"
    if saved := run.checkpoint:
        step = f"{words['step']} {saved.step}" if saved.step is not None else None
        shown = [
            *filter(None, (saved.path and code(saved.path, 200), step, saved.time)),
            place(saved.line, saved.file, words),
        ]
        yield f"- {words['checkpoint']}{words['colon']}{' · '.join(shown)}"
    yield f"- {size}"


def _clock(offset: ClockOffset, words: Words) -> str:
    """Returns a sentence about a host whose clock is wrong."""
    sentence = words["clock_ahead" if offset.seconds > 0 else "clock_behind"]
    return sentence.format(
        host=offset.host, seconds=f"{abs(offset.seconds):.1f}", reference=offset.reference, count=offset.events
    )


def _first_names(names: tuple[str, ...] | list[str], words: Words) -> str:
    """Returns the first of many names, and how many more there are."""
    shown = ", ".join(plain(name, 100) for name in names[:_ITEMS])
    return shown + (f" {words['more'].format(count=len(names) - _ITEMS)}" if len(names) > _ITEMS else "")


def _facts(verdict: Verdict) -> list[Fact]:
    """Returns the facts. Those in the answer come first, and those that the evidence shows come last."""
    answer_facts = verdict.answer.facts if verdict.answer else ()
    facts = dict.fromkeys((*answer_facts, *verdict.facts))
    stated = [fact for fact in facts if fact.line is not None or not _OF_RUN.fullmatch(fact.name)]
    return sorted(stated, key=lambda fact: fact.name in _IN_EVIDENCE)[:MAX_LINES]


def _fact(fact: Fact, words: Words) -> str:
    where = place(fact.line, fact.file, words)
    return f"- {fact.name}{words['colon']}{code(fact.text, _TEXT)}{f' ({where})' if where else ''}"


def _related_findings(verdict: Verdict, words: Words) -> Iterator[str]:
    for warning in verdict.warnings[:_ITEMS]:
        yield f"- {words['warning']}{words['colon']}{plain(warning, 200)}"
    for cascade in verdict.cascades[:MAX_LINES]:
        about = [f"`{cascade.entry}`"] if cascade.entry else []
        about += [ranks_named(cascade.ranks, words["several_ranks"])] if cascade.ranks else []
        about.append(place(cascade.line, cascade.file, words))
        yield f"- {words['followed']}{words['colon']}{' · '.join(about)}{words['colon']}{code(cascade.text, _TEXT)}"
    for attempt in verdict.attempts if len(verdict.attempts) > 1 else ():
        where = place(attempt.line, attempt.file, words) or "?"
        yield f"- {words['attempt'].format(number=attempt.attempt)} `{attempt.entry or '?'}` · {where}"
    for run in verdict.earlier_runs[-_ITEMS:]:
        where = place(run.line, None, words) or "?"
        yield f"- {words['earlier']}{words['colon']}{run.entry or run.outcome} · {where}"
    for candidate in verdict.candidates:
        yield f"- {words['considered']}: `{candidate.entry}` ({candidate.score:.2f})"
    for reason in verdict.root_cause.reasons[:_REASONS] if verdict.root_cause else ():
        yield f"- {words['reason']}{words['colon']}{plain(reason, 300)}"
