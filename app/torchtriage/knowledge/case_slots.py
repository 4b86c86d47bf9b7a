"""Which slots of a case something can fill: a case of an entry in, names out."""

from __future__ import annotations

from collections.abc import Iterable

import re2

from torchtriage.domain.entry import Case, Condition, Entry, Sign
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.patterns import refused_by_re2

# Whole lines of code or words of people: no command can hold them.
SENTENCES = frozenset({"code", "caller_code", "library_code", "message", "warning"})
_VERSION = lazy_regex(r"[a-z][a-z_]*_version")


def is_fact(name: str, facts: frozenset[str]) -> bool:
    """-> whether a log can tell a fact of this name; `facts` are all but versions."""
    return name in facts or _VERSION.fullmatch(name) is not None


def fills(name: str, entry: Entry, case: Case, facts: frozenset[str]) -> bool:
    """-> whether something can fill a slot of this name in the sentences of a case."""
    return is_fact(name, facts) or name in groups_of(case) or any(name == captured for captured, _ in entry.capture)


def groups_of(case: Case) -> dict[str, str]:
    """-> the named groups of a case's signs and conditions, with the regex in which each stands."""
    conditions = (*case.when, *(condition for step in case.steps for condition in step.when))
    return {name: pattern for pattern in _regexes([*case.signs, *conditions]) for name in named(pattern)}


def named(pattern: str) -> tuple[str, ...]:
    """-> the named groups of a regex; none where RE2 refuses it."""
    return () if refused_by_re2(pattern) else tuple(re2.compile(pattern).groupindex)


def _regexes(parts: Iterable[Sign | Condition]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Sign) and part.all:
            yield from _regexes(part.all)
        elif part.regex is not None:
            yield part.regex
