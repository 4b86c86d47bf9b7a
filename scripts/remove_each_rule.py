"""Removes each rule of the engine in turn, runs tests that use it until one fails, and writes docs/rules.md.

`python -m scripts.remove_each_rule`, optionally with names of rules; then the other rows of the page are kept. Tests
whose source names the rule are tried first; a test that does not name it proves the rule only by accident. The exit
status is 1 if no test needs a rule.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.watched_rules import Key, watched_rules, without_rule
from torchtriage.causality import thresholds
from torchtriage.causality.all_rules import RULE_LISTS, RuleList

DOCUMENT = Path(__file__).parents[1] / "docs" / "rules.md"
_TESTS = ("tests/engine", "tests/evidence", "tests/test_corpus.py")
_NONE, _NOT_TRIED, _BY_ACCIDENT = "none found", "not tried yet", ", only by accident"
_HEAD = """# The rules by which a root cause is found
Written by `python -m scripts.remove_each_rule`, which removes each rule in turn; the last column names a test that
fails without it. A test that does not name its rule is marked `only by accident`. In each list the first rule that
holds decides; `keeps` means that the finding stays a possible cause. A verdict names the rules that decided in
`root_cause.because`.
"""


@dataclass
class Remover:
    """A pytest plugin. For each of the rules `wanted`, it finds a test that fails without the rule: first among the
    tests that name it, then among all tests in which it decided."""

    wanted: set[str]
    guards: dict[Key, str] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if item.get_closest_marker("slow") is None]
        session.items = items
        for rules, name in self._left():
            self._try(rules, name, _decisions(item for item in items if names_rule(item.nodeid, name)))
        if left := list(self._left()):
            decisions = list(_decisions(items))
            for rules, name in left:
                self._try(rules, name, decisions)
                self.guards.setdefault((rules.name, name), _NONE)
        for key, guard in self.guards.items():
            print(f"{key[1]}: {guard}{'' if names_rule(guard, key[1]) else _BY_ACCIDENT}", flush=True)
        return True

    def _left(self) -> Iterator[tuple[RuleList, str]]:
        for rules in RULE_LISTS:
            for rule in rules.rules:
                if rule.name in self.wanted and (rules.name, rule.name) not in self.guards:
                    yield rules, rule.name

    def _try(self, rules: RuleList, name: str, decisions: Iterable[tuple[pytest.Item, set[Key]]]) -> None:
        """Records the first test that fails without the rule."""
        key = rules.name, name
        for item, decided in decisions:
            if key in decided:
                with without_rule(rules, name):
                    fails = _fails(item)
                if fails:
                    self.guards[key] = item.nodeid
                    return


def _decisions(items: Iterable[pytest.Item]) -> Iterator[tuple[pytest.Item, set[Key]]]:
    """Runs each test with all rules. Yields those that pass, with the rules that decided in them."""
    for item in items:
        with watched_rules() as decided:
            fails = _fails(item)
        if not fails:
            yield item, decided


def names_rule(test: str, rule: str) -> bool:
    """Returns whether the source of a test, given by its id, has the name of a rule in quotes."""
    path, _, name = test.partition("::")
    return f'"{rule}"' in _sources(path).get(name.partition("[")[0], "")


@cache
def _sources(path: str) -> dict[str, str]:
    """Returns the source of each function of a file by name, with its decorators."""
    file = DOCUMENT.parents[1] / path
    if not file.is_file():
        return {}
    lines = file.read_text("utf-8").splitlines()
    sources = {}
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            sources[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return sources


def _fails(item: pytest.Item) -> bool:
    """Returns whether a test fails. Fixtures of the session, such as the engine, are kept for the next test."""
    session: Any = item.session
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=session))


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
    if guard not in (_NONE, _NOT_TRIED):
        guard = f"`{guard}`{'' if names_rule(guard, rule.name) else _BY_ACCIDENT}"
    return f"| {rule.name} | {says} | {decides} | {guard} |"


def told(page: str) -> dict[Key, str]:
    """Returns the tests that a page names."""
    guards, listed = dict[Key, str](), ""
    for line in page.splitlines():
        if line.startswith("`"):
            listed = line.split("`")[1]
        elif line.startswith("| "):
            guard = line.rpartition(" | ")[2].removesuffix(" |").removesuffix(_BY_ACCIDENT).strip("`")
            if guard != _NOT_TRIED:
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
