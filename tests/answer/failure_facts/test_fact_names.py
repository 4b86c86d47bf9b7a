"""Every name of a fact is known beforehand: sentences of cases are held against the list."""

import re
from pathlib import Path

from torchtriage.answer.failure_facts.fact_names import ENGINE_FACTS, known_slots
from torchtriage.answer.failure_facts.registry import KINDS
from torchtriage.engine import Engine
from torchtriage.facts.line_forms import fact_names
from torchtriage.reading.sources import from_bytes

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


def test_every_fact_of_genuine_logs_is_listed(engine: Engine) -> None:
    known = known_slots(engine.knowledge.vocabulary)
    for path in sorted(CORPUS.glob("*/log.txt"))[::4]:
        verdict = engine.triage(from_bytes(path.read_bytes()))
        entry = engine.knowledge.entries.get((verdict.root_cause and verdict.root_cause.entry) or "")
        case = (
            next((one for one in entry.cases if verdict.answer and one.id == verdict.answer.case), None)
            if entry
            else None
        )
        patterns = [sign.regex or "" for sign in case.signs] if case else []
        asked = (*case.when, *(one for step in case.steps for one in step.when)) if case else ()
        patterns += [condition.regex or "" for condition in asked]
        unknown = {fact.name for fact in verdict.facts} - known.keys()
        assert all(any(f"(?P<{name}>" in pattern for pattern in patterns) for name in unknown), (path, unknown)


def test_there_are_many_and_none_is_listed_twice(engine: Engine) -> None:
    of_lines = fact_names(engine.knowledge.vocabulary)
    assert len(of_lines) >= 45
    assert ENGINE_FACTS.keys() & of_lines.keys() == set()


def test_every_name_in_the_docstring_of_a_kind_is_listed(engine: Engine) -> None:
    known = known_slots(engine.knowledge.vocabulary)
    for kind in KINDS:
        assert set(re.findall(r"`([a-z_]+)`", kind.__doc__ or "")) <= known.keys(), kind.__name__
