"""All kinds of facts about a failure. Each kind is a function. To add one, write the function and list it here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping

from torchtriage.answer.failure_facts.code_line import code_line
from torchtriage.answer.failure_facts.derived_facts import derived_facts
from torchtriage.answer.failure_facts.exception_message import exception_message
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.frames import frames
from torchtriage.answer.failure_facts.gpu_memory import gpu_memory
from torchtriage.answer.failure_facts.line_form_facts import line_form_facts
from torchtriage.answer.failure_facts.list_differences import list_differences, weight_names
from torchtriage.answer.failure_facts.lookup_tables import lookup_tables
from torchtriage.answer.failure_facts.message_advice import message_advice
from torchtriage.answer.failure_facts.path_options import path_options
from torchtriage.answer.failure_facts.printed_mapping import printed_mapping
from torchtriage.answer.failure_facts.printed_values import printed_values
from torchtriage.answer.failure_facts.python_environment import missing_module, python_environment
from torchtriage.answer.failure_facts.rank_differences import rank_differences
from torchtriage.answer.failure_facts.ranks import failing_rank, waiting_ranks
from torchtriage.answer.failure_facts.run_state import run_state
from torchtriage.answer.failure_facts.shape_differences import shape_differences
from torchtriage.answer.failure_facts.size_arithmetic import size_arithmetic
from torchtriage.answer.failure_facts.telling_line import telling_line
from torchtriage.domain.fact import Fact

KINDS: tuple[Callable[[Failure], Iterable[Fact]], ...] = (
    frames,
    exception_message,
    message_advice,
    size_arithmetic,
    list_differences,
    printed_mapping,
    code_line,
    missing_module,
    failing_rank,
    run_state,
    waiting_ranks,
    line_form_facts,
    python_environment,
    rank_differences,
    weight_names,
    shape_differences,
    gpu_memory,
    path_options,
    telling_line,
)


# These use the facts of the kinds above.
LATER: tuple[Callable[[Failure, Mapping[str, Fact]], Iterable[Fact]], ...] = (
    printed_values,
    derived_facts,
    lookup_tables,
)


def failure_facts(failure: Failure) -> tuple[Fact, ...]:
    """Returns the facts that the log gives about this failure. If several kinds give the same fact, the first one
    counts."""
    found: dict[str, Fact] = {}
    for kind in KINDS:
        for fact in _facts_of(kind, failure):
            found.setdefault(fact.name, fact)
    for later in LATER:
        for fact in _facts_of(later, failure, found):
            found.setdefault(fact.name, fact)
    return tuple(found.values())


def _facts_of(kind: Callable[..., Iterable[Fact]], *given: object) -> tuple[Fact, ...]:
    """Returns the facts of one kind, and none if it raises: an answer without a fact is better than no answer. The
    warning fails every test."""
    try:
        return tuple(kind(*given))
    except Exception as error:  # noqa: BLE001  a defect may raise anything
        name = getattr(kind, "__name__", repr(kind))
        warnings.warn(f"no facts of the kind {name}: {error!r}", RuntimeWarning, stacklevel=2)
        return ()
