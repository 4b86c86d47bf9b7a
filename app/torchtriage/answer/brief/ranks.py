"""The parts of a brief about ranks: how each group of ranks failed first, and what single ranks wrote last before
that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from torchtriage.answer.brief.safe_text import code, place
from torchtriage.answer.labels import ranks_named
from torchtriage.domain.line import Line
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark, Verdict
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.reread_lines import SeenAgain

_TEXT = 220  # characters of a line
_LAST = 6  # lines that are shown if the log's lines name no ranks
_MAX_RANKS = 512  # ranks whose last lines are searched
_TELLING = ("first", "missing", "silent")
_ORDER = (*_TELLING, "failed", "ended", "waited", "stopped")
_OF_FAILURE = lazy_regex(r"\s|Traceback |File \"|[\w.]*(?:Error|Exception|Interrupt|Exit)\b|\[[EF]\d{4} |[EF]\d{4} ")
_INEXACT = lazy_regex(r"\d+(?:[.:]\d+)+(?:e[+-]?\d+)?")
_WHOLE = lazy_regex(r"\d+")


def first_failures(
    verdict: Verdict, lines: Mapping[tuple[str | None, int], str], words: Mapping[str, str]
) -> list[str]:
    """Returns one line for each group of ranks with the same failure. It includes the log line unless that is part of
    the evidence."""
    groups: dict[tuple[str, str | None], RankMark] = {}
    for mark in verdict.timeline:
        known = groups.setdefault((mark.kind, mark.entry), mark)
        if known is not mark:
            groups[mark.kind, mark.entry] = replace(known, ranks=known.ranks | set(mark.ranks))
    root = verdict.root_cause
    evidence = {(line.file, line.line) for line in root.evidence} if root else set()
    texts = {place: text for place, text in lines.items() if place not in evidence}
    return [_failure(mark, texts.get((mark.file, mark.line or 0), ""), words) for mark in groups.values()]


def last_words(verdict: Verdict, seen: SeenAgain, words: Mapping[str, str]) -> list[str]:
    """Returns what ranks wrote last before they failed, most informative first. If the log's lines name no ranks, the
    result is the last lines of the log."""
    spoke: dict[int, list[Line]] = {}
    for written in (line for tail in seen.tails.values() for line in tail):
        if written.rank is not None and written.text.strip():
            spoke.setdefault(written.rank, []).append(written)
    if not spoke or not verdict.timeline:
        return list(_last_lines(seen, words))
    marks = sorted(verdict.timeline, key=lambda mark: _ORDER.index(mark.kind) if mark.kind in _ORDER else len(_ORDER))
    groups: dict[str, tuple[set[int], Line | None]] = {}
    for rank, mark in islice(((rank, each) for each in marks for rank in each.ranks), _MAX_RANKS):
        line = _before_failure(spoke.get(rank, []), mark)
        if line is None and (rank in spoke or mark.kind not in _TELLING):
            continue  # the rank wrote only the failure there, or nothing
        groups.setdefault("" if line is None else _form(line.text), (set(), line))[0].add(rank)
    count = max(map(len, seen.tails.values()))
    return [_quoted_line(ranks, line, count, words) for ranks, line in groups.values()]


def _failure(mark: RankMark, text: str, words: Mapping[str, str]) -> str:
    about = [ranks_named(mark.ranks, words["several_ranks"]), words[f"kind_{mark.kind}"]]
    about += [f"`{mark.entry}`"] if mark.entry else []
    about += [mark.time.removeprefix("--")] if mark.time else []
    about += [shown] if (shown := place(mark.line, mark.file, words)) else []
    head = f"- {' · '.join(about)}"
    return f"{head}{words['colon']}{code(text, _TEXT)}" if text.strip() else head


def _before_failure(lines: list[Line], mark: RankMark) -> Line | None:
    """Returns the rank's last line before its failure."""
    own = [line for line in lines if not (len(mark.ranks) == 1 and _is_after(line, mark))]
    return next((line for line in reversed(own) if not _OF_FAILURE.match(line.text)), None)


def _form(text: str) -> str:
    """Returns the text that ranks with equal progress have in common: only the first whole number is kept."""
    text = _INEXACT.sub("", text)
    step = _WHOLE.search(text)
    return text if step is None else text[: step.end()] + _WHOLE.sub("", text[step.end() :])


def _is_after(line: Line, mark: RankMark) -> bool:
    return mark.line is not None and line.file == mark.file and line.number >= mark.line


def _quoted_line(ranks: set[int], line: Line | None, count: int, words: Mapping[str, str]) -> str:
    who = ranks_named(RankSet.of(ranks), words["several_ranks"])
    if line is None:
        return f"- {who}{words['colon']}{words['no_line'].format(count=count)}"
    return f"- {who} · {place(line.number, line.file, words)}{words['colon']}{code(line.raw, _TEXT)}"


def _last_lines(seen: SeenAgain, words: Mapping[str, str]) -> Iterator[str]:
    tail = next(iter(seen.tails.values()), [])
    for line in [line for line in tail if line.text.strip()][-_LAST:]:
        yield f"- {place(line.number, line.file, words)}{words['colon']}{code(line.raw, _TEXT)}"
