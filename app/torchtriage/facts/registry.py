"""The registry of facts that single lines contain: name, pointers to the lines, and the function that reads the fact.

To add one, add a form to the vocabulary (`line_forms`). If several lines must be read together, as for checkpoints, add
a function in its own file and a line here. The prefilter and the scan of blocks use the pointers of this tuple, so no
function runs for a line without a pointer. The values are in `CollectedFacts.values`.
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
    """A fact of single lines. `pointers` are regexes without look-around and without `^`; every line with the fact
    matches one of them. `read` takes the text of a line and returns the value or None. If it is missing, lines are kept
    and read later. `passing` is true if such lines are also searched in the middle of a big log; of each part of a
    block, the last one counts."""

    name: str
    pointers: tuple[str, ...]
    read: Callable[[str], Any] | None
    passing: bool = False


class FactValue(NamedTuple):
    """The value of a fact in one line."""

    line: Line
    value: Any


def line_facts(vocabulary: Vocabulary) -> tuple[LineFact, ...]:
    """Returns all line facts, in the order of their bits."""
    messages = checkpoints.Messages(vocabulary.patterns(checkpoints.LIST))
    return (
        LineFact(checkpoints.NAME, messages.pointers, messages.read, passing=True),
        LineFact(line_forms.NAME, line_forms.LineForms(vocabulary).pointers, None),
    )
