"""The facts that single lines tell: for each its name, what points at its lines, and the function that reads one.

A new one is a form in the vocabulary (`line_forms`); where lines must be seen together, as of checkpoints, a function
in a file of its own and one line here. The prefilter and the scan of blocks take the pointers from this tuple, so
nothing runs for a line at which none points. `Environment.values` holds what was read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchtriage.domain.line import Line
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts import checkpoints, line_forms


@dataclass(frozen=True, slots=True)
class LineFact:
    """`pointers` are regexes without look-around, one of which every line that tells the fact holds; none begins with
    `^`. `read`: the text of a line -> the fact's value, or None; where it is missing, lines are kept and read later.
    `passing`: such lines are looked for in the middle of a big log as well, of each part of a block the last one."""

    name: str
    pointers: tuple[str, ...]
    read: Callable[[str], Any] | None
    passing: bool = False


class FactValue(NamedTuple):
    """What one line told."""

    line: Line
    value: Any


def line_facts(vocabulary: Vocabulary) -> tuple[LineFact, ...]:
    """-> all line facts, in the order of their bits."""
    messages = checkpoints.Messages(vocabulary.patterns(checkpoints.LIST))
    return (
        LineFact(checkpoints.NAME, messages.pointers, messages.read, passing=True),
        LineFact(line_forms.NAME, line_forms.LineForms(vocabulary).pointers, None),
    )
