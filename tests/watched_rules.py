"""Watches which rules of the engine decide while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from torchtriage.causality.all_rules import RULE_LISTS, RuleList

Key = tuple[str, str]  # a list, and the name of a rule in it
_RECORDERS: list[set[Key]] = []  # the sets of the `with` blocks that are open
_PREDICATES = ("holds", "rank", "finding", "events")  # the fields with the functions of the different kinds of rules


@contextmanager
def watched_rules() -> Iterator[set[Key]]:
    """Gives the set of rules that decide inside the `with` block."""
    decided = set[Key]()
    with ExitStack() as restored:
        for rules in RULE_LISTS:
            watching = tuple(_watched(rule, (rules.name, rule.name)) for rule in rules.rules)
            restored.enter_context(_replaced(rules, watching))
        _RECORDERS.append(decided)
        restored.callback(_RECORDERS.pop)
        yield decided


@contextmanager
def without_rule(rules: RuleList, name: str) -> Iterator[None]:
    """Makes a rule of a list decide nothing inside the `with` block. `watched_rules` still gives the rule where it would
    have decided, so that a test which asserts its name fails only if the verdict differs."""
    silent = (_watched(rule, (rules.name, name), silent=True) if rule.name == name else rule for rule in rules.rules)
    with _replaced(rules, tuple(silent)):
        yield


@contextmanager
def _replaced(rules: RuleList, others: tuple[Any, ...]) -> Iterator[None]:
    before = rules.rules
    setattr(rules.module, rules.name, others)
    try:
        yield
    finally:
        setattr(rules.module, rules.name, before)


def _watched(rule: Any, key: Key, silent: bool = False) -> Any:
    name = next(name for name in _PREDICATES if hasattr(rule, name))
    predicate = getattr(rule, name)

    def watched(*args: Any) -> Any:
        found = predicate(*args)
        if name == "events":
            found = tuple(found)
        if found or (name == "rank" and found is not None):
            for recorder in _RECORDERS:
                recorder.add(key)
            if silent:
                return {"holds": False, "events": ()}.get(name)
        return found

    return replace(rule, **{name: watched})
