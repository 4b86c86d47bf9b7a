"""The words that lines hold, of those that readers wait for."""

from tests.built_in import built_in_knowledge
from torchtriage.domain.line import Line, Position
from torchtriage.reading import process_sections, rank_numbering
from torchtriage.runs.read_runs import words_in


def test_each_word_is_reported_in_letters_of_either_kind_and_no_other() -> None:
    start_words = built_in_knowledge().vocabulary.words("launch-start-words")
    for word in (*rank_numbering.WORDS, *rank_numbering.AGENT, *process_sections.MARKS, *start_words):
        result = words_in(
            [
                Line(1, "", "step 1", Position(1, 1)),
                Line(2, "", f"x {word.upper()} y", Position(1, 2)),
            ],
            start_words,
        )
        assert word in result
        assert all(other.lower() in f"x {word} y".lower() for other in result)
    assert words_in([Line(1, "", "step 1", Position(1, 1))], start_words) == frozenset()
    assert words_in([], start_words) == frozenset()
