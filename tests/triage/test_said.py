"""The words that lines hold, of those that readers wait for."""

from app.domain.line import Line
from app.parsing.environment.kinship import BEGIN_WORDS
from app.triage import ranks, sections
from app.triage.said import said


def test_each_word_is_told_in_letters_of_either_kind_and_no_other() -> None:
    for word in (*ranks.WORDS, *ranks.AGENT, *sections.MARKS, *BEGIN_WORDS):
        told = said([Line(1, "", "step 1", 1), Line(2, "", f"x {word.upper()} y", 2)])
        assert word in told
        assert all(other.lower() in f"x {word} y".lower() for other in told)
    assert said([Line(1, "", "step 1", 1)]) == frozenset()
    assert said([]) == frozenset()
