"""The forms of other programs: each has a line that shows it, in every engine that looks for it."""

from __future__ import annotations

import pytest
import re2

from tests.built_in import built_in_knowledge
from tests.facts import collected, line_regexes
from tests.yaml_files import read_yaml
from torchtriage.domain.line import Line, Position
from torchtriage.knowledge import BUILT_IN
from torchtriage.matching.patterns import parsed, regex_of

# Instructions of a compiled pattern. From some 17,000 on RE2 has no memory for its quick automaton (8 MiB): it says so on
# stderr at each search and takes a slow one, which finds the same.
MAX_INSTRUCTIONS = 12_000
EXAMPLES = [
    example
    for path in sorted(BUILT_IN.glob("_vocabulary/other-programs-*.yaml"))
    for pattern in read_yaml(path)["patterns"]
    for example in pattern["examples"]
]


def instructions(pattern: str) -> int:
    """Returns how large RE2's compiled form of a pattern is, the larger of both directions."""
    compiled = re2.compile(f"(?m){pattern}")
    sizes: list[int] = [compiled.programsize, compiled.reverseprogramsize]
    return max(sizes)


@pytest.mark.parametrize("line", EXAMPLES)
def test_each_line_is_another_programs_by_all_that_look_for_it(line: str) -> None:
    shown = [regex for regex in line_regexes().other_programs if regex.compiled.search(line)]
    assert shown
    assert all(regex.matches(line) for regex in shown)
    assert collected(Line(1, line, line, Position(1, 1))).other_program_lines == 1


def test_no_sign_is_near_the_memory_of_its_automaton() -> None:
    assert max(instructions(regex._loose) for regex in line_regexes().all) < MAX_INSTRUCTIONS


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_no_sign_of_an_entry_is_either(step: int) -> None:
    signs = [pattern.sign for pattern in parsed(built_in_knowledge())[::step]]
    texts = {text for sign in signs for text in (regex_of(sign), sign.unless) if text}
    assert {text for text in texts if instructions(text) >= MAX_INSTRUCTIONS} == set()
