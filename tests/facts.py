"""Gives an environment lines as the reading of a run does: the scan points, the collector reads."""

from __future__ import annotations

from torchtriage.domain.line import Line
from torchtriage.facts import Environment
from torchtriage.facts.line_facts import LineSigns, start
from torchtriage.knowledge.loader import load
from torchtriage.matching.prefilter import Prefilter

SIGNS = LineSigns(load([]).vocabulary)
PREFILTER = Prefilter(lambda data: [], SIGNS)


def collected(*lines: Line) -> Environment:
    """-> what the lines tell."""
    environment = Environment(SIGNS)
    starts = [start(line) for line in lines]
    seen = PREFILTER.hints([*(line.text for line in lines), *starts])
    for line, begin in zip(lines, starts, strict=True):
        if begin in seen:
            environment.label(seen[begin].facts)
        if line.host is not None:
            environment.at(line.host, line.rank)
        if line.text in seen:
            environment.note(line, seen[line.text].facts, claimed=False)
    environment.feed(lines)
    return environment
