from __future__ import annotations

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.domain.entry import Sign
from torchtriage.matching.sign_alignment import align
from torchtriage.web.pages.alignment_marks import Mark, marks
from torchtriage.web.pages.sign_descriptions import Said, in_words, said, signs_in_words


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: Bus error", ("worker (pid …) is killed by signal: Bus error",)),
        (r"(?i)unable to (open|mmap)\s+file", ("unable to (open / mmap) file",)),
        (r"^\bExit( code)?: \d+$|exit\.status", ("Exit: …", "exit.status")),
        (r"(a|b|c|d|e)x", ("(a / b / c / d / …)x",)),
        (r"[Cc]hild[Xy]", ("Child…",)),
        (r"(?:only|only) one", ("only one",)),
    ],
)  # fmt: skip
def test_a_regex_is_described_in_words(pattern: str, words: tuple[str, ...]) -> None:
    assert in_words(pattern) == words


def test_a_regex_is_described_by_the_words_of_an_example() -> None:
    pattern = r"(?i)process \d+ has ([2-9]|[1-9]\d+) GiB|never (seen|said)"
    assert said(pattern, ["Other", "Process 51 has 40 GiB in use"]) == Said(("Process 51 has 40 GiB",), shown=True)
    assert said(pattern, ["Other"]) == Said(("process … has … GiB", "never (seen / said)"), shown=False)


def test_every_sign_of_the_knowledge_base_has_words() -> None:
    for entry in built_in_knowledge().entries.values():
        described = list(signs_in_words(entry))
        assert len(described) == len(entry.signs)
        for parts in described:
            assert parts, entry.id
            assert all(part.words for part in parts), entry.id


def marked(sign: Sign, text: str) -> list[Mark]:
    return marks(align(sign, text).tokens)


def test_additional_and_missing_words_are_marked() -> None:
    found = marked(Sign(text="worker is killed by signal: Bus error"), "worker is now killed by signal: Killed.")
    assert found == [
        Mark("same", "worker is "),
        Mark("instead", "now"),
        Mark("same", " killed by signal: "),
        Mark("missing", "Bus error"),
    ]


def test_the_replacement_follows_the_missing_words() -> None:
    found = marked(Sign(regex=r"signal: Bus (error)"), "signal: Killed.")
    assert found == [Mark("same", "signal: "), Mark("missing", "Bus"), Mark("instead", "Killed."), Mark("missing", " (error)")]  # fmt: skip


def test_a_whole_match_has_one_piece() -> None:
    assert marked(Sign(text="a (b) c."), "x a (b) c. y") == [Mark("same", "a (b) c.")]
