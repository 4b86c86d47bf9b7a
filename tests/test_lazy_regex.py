"""Patterns that are compiled at their first use. They behave like compiled ones."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from torchtriage.lazy_regex import lazy_regex


def test_nothing_is_compiled_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    compiled = re.compile

    def compile_(*what: Any) -> re.Pattern[Any]:
        asked.append(what)
        return compiled(*what)

    monkeypatch.setattr(re, "compile", compile_)
    pattern = lazy_regex(r"rank (\d+)", re.IGNORECASE)
    assert asked == []
    assert [found[1] for found in map(pattern.search, ("Rank 3", "RANK 12")) if found] == ["3", "12"]
    assert asked == [(r"rank (\d+)", re.IGNORECASE)]


def test_a_pattern_may_be_made_at_the_first_use() -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return rb"rank \d"

    pattern = lazy_regex(make)
    assert made == []
    assert [found[0] for found in map(pattern.search, (b"rank 3", b"rank 4")) if found] == [b"rank 3", b"rank 4"]
    assert made == [1]


def test_it_has_the_attributes_of_a_pattern() -> None:
    pattern = lazy_regex(rb"(?P<key>\w+)=(\w+)")
    assert pattern.sub(rb"\1=x", b"a=1 b=2") == b"a=x b=x"
    assert pattern.findall(b"a=1 b=2") == [(b"a", b"1"), (b"b", b"2")]
    assert (pattern.pattern, dict(pattern.groupindex)) == (rb"(?P<key>\w+)=(\w+)", {"key": 1})
    assert copy.deepcopy(pattern).fullmatch(b"a=1")
    assert not hasattr(pattern, "of")


def test_an_invalid_pattern_is_reported_when_it_is_used() -> None:
    pattern = lazy_regex("(")
    with pytest.raises(re.error, match="missing"):
        pattern.search("x")
