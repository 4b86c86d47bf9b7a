"""The words that lines hold, of those that readers wait for."""

from torchtriage.causality.read_runs import words_in
from torchtriage.domain.line import Line, Position
from torchtriage.facts.launch_start import BEGIN_WORDS
from torchtriage.reading import process_sections, rank_numbering


def test_each_word_is_told_in_letters_of_either_kind_and_no_other() -> None:
    for word in (*rank_numbering.WORDS, *rank_numbering.AGENT, *process_sections.MARKS, *BEGIN_WORDS):
        told = words_in(
            [
                Line(1, "", "step 1", Position(1, 1)),
                Line(2, "", f"x {word.upper()} y", Position(1, 2)),
            ]
        )
        assert word in told
        assert all(other.lower() in f"x {word} y".lower() for other in told)
    assert words_in([Line(1, "", "step 1", Position(1, 1))]) == frozenset()
    assert words_in([]) == frozenset()
