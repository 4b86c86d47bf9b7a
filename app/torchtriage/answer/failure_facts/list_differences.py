"""How two lists of names in a message differ: the columns of two tables, the weights of a model and a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex

WEIGHT_NAMES = "weight-names"  # the list of the vocabulary
_NAME = lazy_regex(r'"([^"\n]{0,300})"')
_COMPARED = 12  # names of a side: there can be thousands
_WITHIN = 20_000  # characters of a message
_BETWEEN = lazy_regex(r"\n(?:to|vs|and)\n")
_ROW = lazy_regex(r"(?m)^([A-Za-z_][\w ./-]{0,79}): \S")  # id: string
_KEY = lazy_regex(r"[{}]|'([^'\n]{1,80})': ")  # {'id': Value(…)
_MOST_NAMES = 6


def list_differences(failure: Failure) -> Iterator[Fact]:
    """`extra_names` and `lacking_names`: what the first of two lists in the message has and the second lacks, and the
    other way round."""
    raised = failure.raised
    parts = _BETWEEN.split(raised.message[:_WITHIN]) if raised else []
    if len(parts) != 2:
        return
    first, second = _ROW.findall(parts[0]), _outermost(parts[1]) or _ROW.findall(parts[1])
    for name, ones, others in (("extra_names", first, second), ("lacking_names", second, first)):
        alone = [one for one in dict.fromkeys(ones) if one not in others]
        if first and second and alone:
            more = f" and {len(alone) - _MOST_NAMES} more" if len(alone) > _MOST_NAMES else ""
            yield failure.fact(name, ", ".join(alone[:_MOST_NAMES]) + more)


def _outermost(text: str) -> list[str]:
    """-> the keys of a dict that is written out, without those of the dicts inside."""
    depth, keys = 0, []
    for found in _KEY.finditer(text):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if found[1] and depth == 1:
            keys.append(found[1])
    return keys


def weight_names(failure: Failure) -> Iterator[Fact]:
    """`added_prefix` (before each name of the checkpoint that the model lacks, `model.`), `lacking_prefix` (the same of
    the model's names), or `cut_characters`, where the checkpoint's names lack as many characters of different
    beginnings: `cut_name` was `whole_name`."""
    text = failure.raised.message if failure.raised is not None else ""
    patterns = _patterns(failure.reading.matcher.patterns.vocabulary.patterns(WEIGHT_NAMES))
    listed = {name: found for name, pattern in patterns if (found := pattern.search(text))}
    if len(listed) < 2:
        return
    wanted, given = (_NAME.findall(listed[side]["names"]) for side in ("missing", "unexpected"))
    if (added := _prefix(wanted, given)) is not None:
        yield failure.fact("added_prefix", added)
    elif (lacking := _prefix(given, wanted)) is not None:
        yield failure.fact("lacking_prefix", lacking)
    elif (cut := _cut(given, wanted)) is not None:
        yield failure.fact("cut_characters", cut)
        short = next(name for name in given if name)
        yield failure.fact("cut_name", short)
        yield failure.fact("whole_name", next(one for one in wanted if one[cut:] == short))


@lru_cache(maxsize=4)
def _patterns(patterns: tuple[VocabularyPattern, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((pattern.name or "", re.compile(pattern.exact)) for pattern in patterns)


def _prefix(bare: Sequence[str], others: Sequence[str]) -> str | None:
    """-> the one that makes each of the bare names one of the others; it ends in a dot, as modules' names do."""
    shared: set[str] | None = None
    for name in [name for name in bare if name][:_COMPARED]:
        found = {other[: -len(name)] for other in others if other.endswith(f".{name}")}
        shared = found if shared is None else shared & found
    return min(shared, key=len) if shared else None


def _cut(short: Sequence[str], whole: Sequence[str]) -> int | None:
    """-> how many characters each of the short names lacks at its beginning."""
    shared: set[int] | None = None
    for name in [name for name in short if name][:_COMPARED]:
        found = {len(one) - len(name) for one in whole if one != name and one.endswith(name)}
        shared = found if shared is None else shared & found
    return min(shared) if shared else None
