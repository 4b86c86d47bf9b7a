"""Reads facts from lines as in the reading of a run: the scan finds candidates, and the collector reads them."""

from __future__ import annotations

import functools

from tests.built_in import vocabulary
from torchtriage.domain.line import Line
from torchtriage.facts import CollectedFacts
from torchtriage.facts.line_facts import LineRegexes, start
from torchtriage.matching.prefilter import Prefilter


@functools.cache
def line_regexes() -> LineRegexes:
    return LineRegexes(vocabulary())


@functools.cache
def prefilter() -> Prefilter:
    """Returns a prefilter without entries, which compiles in a second."""
    return Prefilter(lambda data: [], line_regexes())


def collected(*lines: Line) -> CollectedFacts:
    """Returns the facts read from the lines."""
    facts = CollectedFacts(line_regexes())
    starts = [start(line) for line in lines]
    seen = prefilter().hints([*(line.text for line in lines), *starts])
    for line, begin in zip(lines, starts, strict=True):
        if begin in seen:
            facts.label(seen[begin].facts)
        if line.host is not None:
            facts.at(line.host, line.rank)
        if line.text in seen:
            facts.note(line, seen[line.text].facts, claimed=False)
    facts.feed(lines)
    return facts
