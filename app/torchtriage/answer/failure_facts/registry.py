"""All kinds of facts about a failure, each a function; a new one is a function and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from torchtriage.answer.failure_facts.code_line import code_line
from torchtriage.answer.failure_facts.course import course
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.frames import frames
from torchtriage.answer.failure_facts.gpu_memory import gpu_memory
from torchtriage.answer.failure_facts.imports import imports
from torchtriage.answer.failure_facts.lines import line_values
from torchtriage.answer.failure_facts.listings import listings
from torchtriage.answer.failure_facts.looked_up import looked_up
from torchtriage.answer.failure_facts.message import message
from torchtriage.answer.failure_facts.printed_values import printed_values
from torchtriage.answer.failure_facts.ranks import ranks, run
from torchtriage.answer.failure_facts.ranks_beside import ranks_beside
from torchtriage.answer.failure_facts.sizes import sizes
from torchtriage.answer.failure_facts.surroundings import surroundings
from torchtriage.answer.failure_facts.weight_names import weight_names
from torchtriage.answer.failure_facts.worked_out import worked_out
from torchtriage.domain.fact import Fact

KINDS: tuple[Callable[[Failure], Iterable[Fact]], ...] = (
    frames,
    message,
    sizes,
    listings,
    code_line,
    imports,
    ranks,
    run,
    course,
    line_values,
    surroundings,
    ranks_beside,
    weight_names,
    gpu_memory,
)


# Those that ask what the others tell.
LATER: tuple[Callable[[Failure, Mapping[str, Fact]], Iterable[Fact]], ...] = (
    printed_values,
    worked_out,
    looked_up,
)


def failure_facts(failure: Failure) -> tuple[Fact, ...]:
    """-> what the log tells of this failure; each fact once, as the first kind tells it."""
    found: dict[str, Fact] = {}
    for kind in KINDS:
        for fact in kind(failure):
            found.setdefault(fact.name, fact)
    for later in LATER:
        for fact in tuple(later(failure, found)):
            found.setdefault(fact.name, fact)
    return tuple(found.values())
