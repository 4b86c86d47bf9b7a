"""Finds how two lists of names in a message differ: the columns of two tables, or the weights of a model and a
checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex

WEIGHT_NAMES = "weight-names"  # the name of a list in the vocabulary
_NAME = lazy_regex(r'"([^"\n]{0,300})"')
_COMPARED = 12  # names per list that are compared: there can be thousands
_WITHIN = 20_000  # characters of a message
_BETWEEN = lazy_regex(r"\n(?:to|vs|and)\n")
_ROW = lazy_regex(r"(?m)^([A-Za-z_][\w ./-]{0,79}): \S")  # id: string
_KEY = lazy_regex(r"[{}]|'([^'\n]{1,80})': ")  # {'id': Value(…)
_FIELD = lazy_regex(r"[<>]|([A-Za-z_][\w.-]{0,79}): ")  # struct<id: string>
_SECTION = lazy_regex(r"\n-- ")  # a divider between the columns and what else a table has
_MAX_NAMES = 6


def list_differences(failure: Failure) -> Iterator[Fact]:
    """Yields `extra_names` (in the first list of the message but not in the second) and `lacking_names` (the
    opposite)."""
    raised = failure.raised
    parts = _BETWEEN.split(raised.message[:_WITHIN]) if raised else []
    if len(parts) != 2:
        return
    first = _ROW.findall(_SECTION.split(parts[0], maxsplit=1)[0]) or _outermost(parts[0], _FIELD, "<>")
    second = _outermost(parts[1], _KEY, "{}") or _ROW.findall(parts[1]) or _outermost(parts[1], _FIELD, "<>")
    for name, ones, others in (("extra_names", first, second), ("lacking_names", second, first)):
        alone = [one for one in dict.fromkeys(ones) if one not in others]
        if first and second and alone:
            more = f" and {len(alone) - _MAX_NAMES} more" if len(alone) > _MAX_NAMES else ""
            yield failure.fact(name, ", ".join(alone[:_MAX_NAMES]) + more)


def _outermost(text: str, key: re.Pattern[str], brackets: str) -> list[str]:
    """Returns the keys inside the outermost brackets of a text, such as those of a dict literal, without the keys of
    nested ones. `key` matches a bracket or a key, with its name as the first group."""
    depth, keys = 0, []
    for found in key.finditer(text):
        depth += {brackets[0]: 1, brackets[1]: -1}.get(found[0], 0)
        if found[1] and depth == 1:
            keys.append(found[1])
    return keys


def weight_names(failure: Failure) -> Iterator[Fact]:
    """Yields `added_prefix` (the prefix of each checkpoint name that the model lacks, such as `model.`) and
    `lacking_prefix` (the same for the model's names). If the checkpoint's names lack an equal number of characters at
    the beginning, it yields `cut_characters` instead, and as an example `cut_name` and `whole_name`."""
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
    """Returns the prefix that turns each bare name into one of the others. It ends in a dot, as module names do."""
    shared: set[str] | None = None
    for name in [name for name in bare if name][:_COMPARED]:
        found = {other[: -len(name)] for other in others if other.endswith(f".{name}")}
        shared = found if shared is None else shared & found
    return min(shared, key=len) if shared else None


def _cut(short: Sequence[str], whole: Sequence[str]) -> int | None:
    """Returns how many characters each of the short names lacks at its beginning."""
    shared: set[int] | None = None
    for name in [name for name in short if name][:_COMPARED]:
        found = {len(one) - len(name) for one in whole if one != name and one.endswith(name)}
        shared = found if shared is None else shared & found
    return min(shared) if shared else None
