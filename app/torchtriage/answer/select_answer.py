"""Selects what answers a failure: a case, a form or the library's own message, and the values of its slots. The text is
written later, in the reader's language."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.answer.case_selection import (
    SelectedCase,
    explains_message,
    explains_place,
    is_general,
    select_case,
    select_form,
)
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.library_message import Printed, library_message, printed_by
from torchtriage.answer.failure_facts.lookup_tables import FOR_STEPS
from torchtriage.answer.failure_facts.registry import failure_facts
from torchtriage.answer.verdict import with_first_evidence
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.domain.fact import Fact
from torchtriage.domain.verdict import Answer, RootCause
from torchtriage.matching.inventory import Inventory


@dataclass(frozen=True)
class SelectedAnswer:
    """The root cause, with the line first that shows the case; the facts that the log gives; the answer with its case
    and values, but not yet its text; and the library's message, if no case knows the message."""

    root: RootCause
    facts: tuple[Fact, ...]
    answer: Answer
    library_message: Printed | None


@dataclass(frozen=True)
class _Selection:
    """The case and the form that apply, the library's message, and the facts of the failure that the case describes."""

    case: SelectedCase | None
    form: SelectedCase | None
    printed: Printed | None
    facts: tuple[Fact, ...]

    @property
    def own_facts(self) -> tuple[Fact, ...]:
        """What the signs and conditions of case and form captured. If both use a name, the form's value counts."""
        captured = (fact for one in (self.case, self.form) if one for fact in one.facts)
        return tuple({fact.name: fact for fact in captured}.values())

    @property
    def all_facts(self) -> tuple[Fact, ...]:
        """The captured facts, then the failure's facts of other names."""
        own = self.own_facts
        names = {fact.name for fact in own}
        return (*own, *(fact for fact in self.facts if fact.name not in names))


def select_answer(failure: Failure, knowledge: KnowledgeBase, inventory: Inventory) -> SelectedAnswer:
    """Returns what answers the failure. `inventory` knows the messages of libraries, for messages without a case."""
    selection = _select(failure, knowledge, inventory)
    case, form, root = selection.case, selection.form, failure.root
    if case and case.line:
        root = with_first_evidence(root, case.line, failure.shown)
    answer = Answer(
        case.case.id if case else None,
        "",
        values=_values(selection, failure.root),
        form=form.case.id if form else None,
        pack=(case.case.pack or None) if case and not form else None,
    )
    for_steps = {name for table in FOR_STEPS for name, _ in knowledge.vocabulary.lists[table].facts}
    facts = tuple(fact for fact in selection.all_facts if fact.name not in for_steps)
    return SelectedAnswer(root, facts, answer, selection.printed)


def _select(failure: Failure, knowledge: KnowledgeBase, inventory: Inventory) -> _Selection:
    facts = failure_facts(failure)
    case = select_case(failure, facts)
    printed = printed_by(failure, inventory) if case is None or is_general(case.case) else None
    described = case.failure if case else failure
    facts = failure_facts(described) if described is not failure else facts
    answered = case is not None and (explains_message(case.case) or explains_place(case.case))
    form = None if answered else select_form(knowledge.all_forms(), described, facts)
    more = library_message(failure, printed) if printed else ()
    return _Selection(case, form, printed, (*facts, *more))


def _values(selection: _Selection, root: RootCause) -> dict[str, str]:
    """Returns the value of each slot. If several sources have a name, the one closest to the failure counts, which is
    the last of these: the facts of the log; what the entry captured; what the case and the form captured. The
    conditions that the whole log meets have no value."""
    of_log = {fact.name: fact.text for fact in selection.all_facts}
    own = {fact.name: fact.text for fact in selection.own_facts}
    met = dict.fromkeys(selection.case.of_log if selection.case else (), "")
    return {**of_log, **root.captured, **own, **met}
