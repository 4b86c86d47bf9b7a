"""Reads facts from lines as in the reading of a run: the scan finds candidates, and the collector reads them."""

from __future__ import annotations

import functools

from tests.built_in import vocabulary
from torchtriage.domain.line import Line
from torchtriage.facts import Environment
from torchtriage.facts.line_facts import LineRegexes, start
from torchtriage.matching.prefilter import Prefilter


@functools.cache
def line_regexes() -> LineRegexes:
    return LineRegexes(vocabulary())


@functools.cache
def prefilter() -> Prefilter:
    """Returns a prefilter without entries, which compiles in a second."""
    return Prefilter(lambda data: [], line_regexes())


def collected(*lines: Line) -> Environment:
    """Returns the environment read from the lines."""
    environment = Environment(line_regexes())
    starts = [start(line) for line in lines]
    seen = prefilter().hints([*(line.text for line in lines), *starts])
    for line, begin in zip(lines, starts, strict=True):
        if begin in seen:
            environment.label(seen[begin].facts)
        if line.host is not None:
            environment.at(line.host, line.rank)
        if line.text in seen:
            environment.note(line, seen[line.text].facts, claimed=False)
    environment.feed(lines)
    return environment
