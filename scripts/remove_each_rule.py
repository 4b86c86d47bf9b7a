"""Removes each rule of the engine in turn, runs tests that use it until one fails, and writes docs/rules.md.

`python -m scripts.remove_each_rule`, optionally with names of rules; then the other rows of the page are kept. The exit
status is 1 if no test needs a rule.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from torchtriage.causality import thresholds
from torchtriage.causality.all_rules import RULE_LISTS, RuleList

DOCUMENT = Path(__file__).parents[1] / "docs" / "rules.md"
_TESTS = ("tests/engine", "tests/evidence", "tests/test_corpus.py")
_PREDICATES = ("holds", "rank", "finding", "events")  # the fields with the functions of the different kinds of rules
_NONE, _NOT_TRIED = "none found", "not tried yet"
_HEAD = """# The rules by which a root cause is found
Written by `python -m scripts.remove_each_rule`, which removes each rule in turn; the last column names a test that
fails without it. In each list the first rule that holds decides; `keeps` means that the finding stays a possible cause.
A verdict names the rules that decided in `root_cause.because`.
"""


Key = tuple[str, str]  # a list, and the name of a rule in it


@dataclass
class Remover:
    """A pytest plugin. Runs the tests once with all rules, then each test in which one of `wanted` decided, without
    that rule."""

    wanted: set[str]
    guards: dict[Key, str] = field(default_factory=dict)
    decided: dict[Key, dict[pytest.Item, None]] = field(default_factory=lambda: defaultdict(dict))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.items = [item for item in session.items if item.get_closest_marker("slow") is None]
        failing = set()
        for item in session.items:
            with _watched() as decided:
                if _fails(item):
                    failing.add(item)
            for key in decided:
                self.decided[key][item] = None
        for rules in RULE_LISTS:
            for rule in rules.rules:
                if rule.name not in self.wanted:
                    continue
                key = rules.name, rule.name
                needing = [item for item in self.decided[key] if item not in failing]
                with _without(rules, rule.name):
                    guard = next((item for item in needing if _fails(item)), None)
                self.guards[key] = guard.nodeid if guard is not None else _NONE
                print(f"{rule.name}: {self.guards[key]}", flush=True)
        return True


def _fails(item: pytest.Item) -> bool:
    """Returns whether a test fails. Fixtures of the session, such as the engine, are kept for the next test."""
    session: Any = item.session
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=session))


@contextmanager
def _without(rules: RuleList, name: str) -> Iterator[None]:
    with _set(rules, tuple(rule for rule in rules.rules if rule.name != name)):
        yield


@contextmanager
def _watched() -> Iterator[set[Key]]:
    """Gives the set of rules that decide inside the `with` block."""
    decided = set[Key]()
    before = [(rules, rules.rules) for rules in RULE_LISTS]
    for rules, whole in before:
        setattr(rules.module, rules.name, tuple(_watching(rules.name, rule, decided.add) for rule in whole))
    try:
        yield decided
    finally:
        for rules, whole in before:
            setattr(rules.module, rules.name, whole)


@contextmanager
def _set(rules: RuleList, others: tuple[Any, ...]) -> Iterator[None]:
    before = rules.rules
    setattr(rules.module, rules.name, others)
    try:
        yield
    finally:
        setattr(rules.module, rules.name, before)


def _watching(listed: str, rule: Any, decided: Callable[[Key], object]) -> Any:
    name = next(name for name in _PREDICATES if hasattr(rule, name))
    predicate = getattr(rule, name)

    def watched(*args: Any) -> Any:
        found = predicate(*args)
        if name == "events":
            found = tuple(found)
        if found or (name == "rank" and found is not None):
            decided((listed, rule.name))
        return found

    return replace(rule, **{name: watched})


def document(guards: dict[Key, str]) -> str:
    """Returns the page about all rules."""
    parts = [_HEAD]
    for rules in RULE_LISTS:
        parts.append(
            f"\n## {rules.decides}\n`{rules.name}` in `causality/{rules.module.__name__.rpartition('.')[2]}`\n"
        )
        parts.append("| rule | says | decides | a test that fails without it |\n|---|---|---|---|")
        parts += (_row(rule, guards.get((rules.name, rule.name), _NOT_TRIED)) for rule in rules.rules)
    source = Path(str(thresholds.__file__)).read_text("utf-8")
    parts.append(
        "\n## Thresholds\n`causality/thresholds`\n\n```python" + source.partition("annotations\n")[2].rstrip() + "\n```"
    )
    return "\n".join(parts) + "\n"


def _row(rule: Any, guard: str) -> str:
    says = getattr(rule, "reason", None) or " ".join((rule.events.__doc__ or "").split())
    aside = getattr(rule, "sets_aside", None)
    decides = "" if aside is None else "sets aside" if aside else "keeps"
    return f"| {rule.name} | {says} | {decides} | {guard if guard in (_NONE, _NOT_TRIED) else f'`{guard}`'} |"


def told(page: str) -> dict[Key, str]:
    """Returns the tests that a page names."""
    guards, listed = dict[Key, str](), ""
    for line in page.splitlines():
        if line.startswith("`"):
            listed = line.split("`")[1]
        elif line.startswith("| ") and (guard := line.rpartition(" | ")[2].removesuffix(" |").strip("`")) != _NOT_TRIED:
            guards[listed, line.split(" | ")[0].removeprefix("| ")] = guard
    return guards


def main() -> int:
    every = {rule.name for rules in RULE_LISTS for rule in rules.rules}
    remover = Remover(set(sys.argv[1:]) or every)
    if unknown := remover.wanted - every:
        print(f"no such rule: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    pytest.main(["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-s", *_TESTS], plugins=[remover])
    known = told(DOCUMENT.read_text("utf-8")) if remover.wanted != every else {}
    DOCUMENT.write_text(document(known | remover.guards), "utf-8")
    return 1 if _NONE in remover.guards.values() else 0


if __name__ == "__main__":
    raise SystemExit(main())
