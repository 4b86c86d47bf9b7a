"""The names that only one of two lists in a message has, such as columns of two tables: a failure in, names out."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

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
