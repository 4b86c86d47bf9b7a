"""Finds differences between ranks: the same message or log line with different values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.entry import Role
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.domain.rank_set import RankSet
from torchtriage.facts import progress
from torchtriage.lazy_regex import lazy_regex

OWN_NUMBERS = "own-numbers"  # the vocabulary's list: words before a number that is specific to one process
_MAX_GROUPS = 4  # groups of ranks with the same values
_MAX_VALUES = 2  # values in one line that differ between ranks
_MAX_LENGTH = 400  # characters of a line that are compared
_OF_SHAPES = lazy_regex(r"(?i)shape|size|dimension|mat1|broadcast|numel|channels")
_RANK = lazy_regex(r"(?i)\brank[ _:=#]{0,2}(\d{1,6})\b")
_VALUE = lazy_regex(
    r"torch\.Size\(\[[\d, ]*\]\)|\[\d+(?:, ?\d+)*\]|\(\d+(?:, ?\d+)+,?\)|\d+(?:x\d+)+"
    r"|(?<![\w./:-])\d+(?:,\d{3})*(?:\.\d+){0,3}(?![\w/:])|(?<![\w.])[~.]{0,2}/[\w./@+-]{2,}"
)
_SHAPE = lazy_regex(r"torch\.Size|[\[(]|\d+x\d")
_BEFORE = lazy_regex(r"([A-Za-z][\w. ]{0,30}?)(?:\(s\))?['\"]?\s{0,3}([:=]?)\s{0,3}$")
_AFTER = lazy_regex(r" ([A-Za-z]{2,20})\b")


def rank_differences(failure: Failure) -> Iterator[Fact]:
    """Yields `by_rank`, what differs in the failure's own message (`rank 0: [4, 128]; ranks 1-3: [4, 96]`).

    If the message is about shapes, or if ranks waited for each other, it also yields `printed_by_rank`, the same for
    the last line above the failure that several ranks print in the same words, with `printed_by_rank_words` and
    `printed_by_rank_line`. `steps_by_rank` is given if ranks that waited were at different steps.
    """
    events = (failure.finding.event, *failure.finding.samples)
    messages = {event.rank: event.text.split("\n", 1)[0] for event in events if event.rank is not None}
    if not any(map(_RANK.search, messages.values())) and (differences := _differing_values(messages, failure)):
        yield failure.fact("by_rank", differences)
    waited = any(map(failure.finding.has_role, (Role.TIMEOUT, Role.PEER_LOSS)))
    above = _printed(failure, waited)
    if above is not None:
        line, words, differences = above
        yield failure.fact("printed_by_rank", differences, line=line)
        yield failure.fact("printed_by_rank_line", line.number, line=line)
        if words:
            yield failure.fact("printed_by_rank_words", words, line=line)
    steps = _progress(failure) if waited else {}
    last = {rank: step for rank, line in steps.items() if (step := progress.step(line.text[:_MAX_LENGTH])) is not None}
    if differences := _by_value({rank: str(step) for rank, step in last.items()}):
        yield Fact("steps_by_rank", differences)


def _progress(failure: Failure) -> dict[int, Line]:
    """Returns each rank's last line of progress above the failure."""
    lines = (line for line in failure.printed if progress.PROGRESS.matches(line.text))
    return {rank: line for line in lines if (rank := _rank(line)) is not None and line.attempt == failure.root.attempt}


def _printed(failure: Failure, waited: bool) -> tuple[Line, str, str] | None:
    """Finds the last lines above the failure that several ranks print in the same words with different values. Returns
    one of these lines, the words before the value, and the values."""
    raised = failure.raised
    of_shapes = raised is not None and _OF_SHAPES.search(raised.message) is not None
    forms: dict[str, dict[int, Line]] = {}
    for line in failure.printed if waited or of_shapes else ():
        rank = _rank(line)
        if rank is not None and line.attempt == failure.root.attempt and not progress.PROGRESS.matches(line.text):
            forms.setdefault(_words(line.text), {})[rank] = line
    for form in sorted(forms.values(), key=lambda form: max(line.position for line in form.values()), reverse=True):
        differences = (
            _differing_values({rank: line.text for rank, line in form.items()}, failure) if len(form) > 1 else None
        )
        if differences and (waited or _SHAPE.search(differences)):
            last = max(form.values(), key=lambda line: line.position)
            return last, _name(form), differences
    return None


def _rank(line: Line) -> int | None:
    if line.rank is not None:
        return line.rank
    found = _RANK.search(line.text, 0, 60)
    return int(found[1]) if found else None


def _words(text: str) -> str:
    """Returns a line without its values, so that it is the same for all ranks."""
    return _VALUE.sub("\0", _RANK.sub("rank", text[:_MAX_LENGTH]))


def _differing_values(texts: Mapping[int, str], failure: Failure) -> str | None:
    """Returns the values that differ between ranks in texts with the same words, or None if too many differ."""
    own = failure.root.rank if failure.root.rank in texts else next(iter(texts), None)
    if own is None or len(texts) < 2:
        return None
    words = _words(texts[own])
    same = {rank: _RANK.sub("rank", text[:_MAX_LENGTH]) for rank, text in texts.items() if _words(text) == words}
    values = {rank: _VALUE.findall(text) for rank, text in same.items()}
    count = len(values[own])
    different = [at for at in range(count) if len({tokens[at] for tokens in values.values()}) > 1]
    different = [at for at in different if not _is_own_number(at, values, same[own], failure)]
    if not 0 < len(different) <= _MAX_VALUES:
        return None
    return _by_value({rank: _values_text(same[rank], different) for rank in values})


def _values_text(text: str, different: list[int]) -> str:
    """Returns the values at some positions in a line. A value without a name before it is followed by the next word."""
    parts = []
    for found in (found for at, found in enumerate(_VALUE.finditer(text)) if at in different):
        before, after = _BEFORE.search(text[: found.start()]), _AFTER.match(text, found.end())
        named = before is not None and before[2] and before[1] != "rank"
        parts.append(
            _plain(found[0]) if named or not after or _SHAPE.search(found[0]) else f"{_plain(found[0])} {after[1]}"
        )
    return ", ".join(dict.fromkeys(parts))


def _is_own_number(at: int, values: Mapping[int, list[str]], text: str, failure: Failure) -> bool:
    """Returns whether a value only identifies the process: its rank, its device, its file or a time."""
    column = {rank: one[at] for rank, one in values.items()}
    if all(value.isdecimal() for value in column.values()) and len({int(v) - rank for rank, v in column.items()}) == 1:
        return True
    if all(
        re.sub(r"\d+", "", value) == re.sub(r"\d+", "", column[min(column)]) and "/" in value
        for value in column.values()
    ):
        return True
    if any("." in value and not _SHAPE.search(value) and value.count(".") == 1 for value in column.values()):
        return True  # such as a loss or a time
    spans = [found.start() for found in _VALUE.finditer(text)]
    before = _BEFORE.search(text[: spans[at]])
    words = failure.reading.matcher.patterns.vocabulary.words(OWN_NUMBERS)
    return before is not None and bool(set(re.split(r"[\W_]+", before[1].lower())) & set(words))


def _name(form: Mapping[int, Line]) -> str:
    """Returns the words before the first value that differs."""
    texts = [_RANK.sub("rank", line.text[:_MAX_LENGTH]) for line in form.values()]
    values = [_VALUE.findall(text) for text in texts]
    at = next((at for at in range(len(values[0])) if len({tokens[at] for tokens in values}) > 1), 0)
    begins = [found.start() for found in _VALUE.finditer(texts[0])]
    before = _BEFORE.search(texts[0][: begins[at]])
    return re.sub(r"(?i)^rank\W*", "", before[1]).strip() if before and before[2] else ""


def _plain(value: str) -> str:
    return value[len("torch.Size(") : -1] if value.startswith("torch.Size(") else value


def _by_value(values: Mapping[int, str]) -> str | None:
    """Returns `rank 0: [4, 128]; ranks 1-3: [4, 96]`, with the most frequent value last, or None if there are too many
    values."""
    groups: dict[str, list[int]] = {}
    for rank, value in sorted(values.items()):
        groups.setdefault(value, []).append(rank)
    if not 1 < len(groups) <= _MAX_GROUPS:
        return None
    ordered: Iterable[tuple[str, list[int]]] = sorted(groups.items(), key=lambda group: (len(group[1]), group[1][0]))
    return "; ".join(f"rank{'s' if len(ranks) > 1 else ''} {RankSet.of(ranks)}: {value}" for value, ranks in ordered)
