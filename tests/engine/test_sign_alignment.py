import pytest

from torchtriage.domain.entry import Sign
from torchtriage.matching.sign_alignment import align, alternatives


@pytest.mark.parametrize(
    ("source", "ways"),
    [
        (r"killed by signal: \w+", [["killed", " ", "by", " ", "signal:", " ", r"\w+"]]),
        (r"a{2,3}b|c\|d[)|]?", [["a{2,3}", "b"], [r"c\|d", "[)|]?"]]),
        (r"(x|y(z))+ end", [["(x|y(z))+", " ", "end"]]),
    ],
)
def test_a_regex_falls_into_words_groups_and_classes(source: str, ways: list[list[str]]) -> None:
    assert alternatives(source) == ways


def test_the_first_token_that_fails_shows_what_is_there() -> None:
    laid = align(
        Sign(regex=r"DataLoader worker \(pid \d+\) is killed by signal: Bus"),
        "DataLoader worker (pid 7) is killed by signal: Killed",
    )
    assert [token.sign for token in laid.tokens if token.state != "matched"] == ["Bus"]
    assert laid.tokens[-1].instead == "Killed"
    assert not laid.whole
    assert 0.9 <= laid.share < 1


def test_the_best_of_several_alternatives_counts() -> None:
    laid = align(Sign(regex="never there at all|out of memory"), "CUDA out of memory")
    assert laid.whole
    assert laid.share == 1


def test_what_may_be_absent_adds_nothing() -> None:
    assert align(Sign(regex=r"\d*( maybe)?wholly different"), "some text 12").share == 0


def test_literal_signs_are_taken_literally() -> None:
    assert align(Sign(text="a (b) [c]."), "x a (b) [c]. y").whole
    assert not align(Sign(text="a.c"), "abc").whole
