"""Gives an environment lines as the reading of a run does: the scan points, the collector reads."""

from __future__ import annotations

import functools

from tests.built_in import vocabulary
from torchtriage.domain.line import Line
from torchtriage.facts import Environment
from torchtriage.facts.line_facts import LineSigns, start
from torchtriage.matching.prefilter import Prefilter


@functools.cache
def line_signs() -> LineSigns:
    return LineSigns(vocabulary())


@functools.cache
def prefilter() -> Prefilter:
    """-> one that knows no entry; to compile it takes a second."""
    return Prefilter(lambda data: [], line_signs())


def collected(*lines: Line) -> Environment:
    """-> what the lines tell."""
    environment = Environment(line_signs())
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
