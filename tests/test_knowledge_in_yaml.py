"""Knowledge lives in YAML: no Python string of the package is an entry's id or a word of the vocabulary."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import torchtriage
from tests.built_in import built_in_knowledge

PACKAGE = Path(torchtriage.__file__).parent
BY_PREFIX = ("line-facts-", "other-programs-")  # lists of which all that begin so are read
MIN_LENGTH = 8  # minimum length of a string that is checked; short ones such as `main` are ordinary words


def strings(tree: ast.AST) -> Iterator[str]:
    """Yields the strings of a module except docstrings."""
    described = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in described:
            yield node.value


def alternatives(regex: str) -> Iterator[str]:
    """Yields a string and, because it may be a regex, its top-level alternatives."""
    yield regex
    begun, depth, in_set, at = 0, 0, False, 0
    while at < len(regex):
        char = regex[at]
        if char == "\\":
            at += 2
            continue
        in_set = char != "]" if in_set else char == "["
        if not in_set:
            depth += (char == "(") - (char == ")")
            if char == "|" and depth <= 0:
                yield regex[begun:at]
                begun = at + 1
        at += 1
    yield regex[begun:]


@functools.cache
def known() -> frozenset[str]:
    """Returns the ids of entries, and the words and patterns of the vocabulary."""
    knowledge = built_in_knowledge()
    lists = knowledge.vocabulary.lists.values()
    told = {word for each in lists for word in each.words}
    told |= {pattern.regex for each in lists for pattern in each.patterns}
    return frozenset({*knowledge.entries, *(one for one in told if len(one) >= MIN_LENGTH and not one.isalpha())})


def found(source: str) -> set[str]:
    """Returns the strings of a module that belong to the knowledge base."""
    told = {part for text in strings(ast.parse(source)) for part in alternatives(text.removeprefix("(?i)"))}
    return told & known()


def test_no_module_contains_knowledge() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    held = {path.relative_to(PACKAGE).as_posix(): found(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: what for name, what in held.items() if what} == {}


def test_every_list_of_the_vocabulary_is_read() -> None:
    paths = PACKAGE.rglob("*.py")
    named = {text for path in paths for text in strings(ast.parse(path.read_text(encoding="utf-8")))}
    lists = built_in_knowledge().vocabulary.lists
    unread = {name for name in lists if name not in named and not name.startswith(BY_PREFIX)}
    assert unread == {"watchdog-first-words"}  # the client has a copy, which tests/client/test_hang_watch compares


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('STOPPED = frozenset({"elastic.sigterm", "x"})', {"elastic.sigterm"}),
        ('"""As elastic.sigterm."""\n# elastic.sigterm', set()),
        ('FORM = re.compile(r"(?i)foo|(?:a|b)|Start(?:ed|s) a|JavaScript heap out of memory")',
         {"JavaScript heap out of memory"}),
        ('OUTER = ("main", "_run_module_as_main")', {"_run_module_as_main"}),
        ('TEXT = f"{name}: user.cancelled"', set()),
    ],
)  # fmt: skip
def test_a_string_of_the_knowledge_base_is_found(source: str, what: set[str]) -> None:
    assert found(source) == what
