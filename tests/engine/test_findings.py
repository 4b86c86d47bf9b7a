from dataclasses import replace

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.domain.event import Event, EventSource, Frame, Raised, Where
from torchtriage.domain.line import Line, Position
from torchtriage.knowledge.cache import cache_folder
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.runs.findings import MAX_FINDINGS, Findings


def event_at(number: int, text: str, rank: int | None = None) -> Event:
    return Event.at(Line(number, text, text, Position(1, number), rank=rank), text, EventSource.PROCESS_EXIT)


def test_equal_events_of_many_ranks_are_one_finding_and_too_many_lose_the_middle() -> None:
    findings = Findings(Matcher(Patterns(built_in_knowledge(), cache_folder())))
    findings.add(event_at(rank, f"worker {rank} of 8 died", rank) for rank in range(8))
    (only,) = findings.found()
    assert (only.count, only.ranks, only.last) == (8, frozenset(range(8)), Position(1, 7))
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [a + b + c for a in letters for b in letters for c in letters][: MAX_FINDINGS + 100]
    findings.add(event_at(number, f"died of {word}") for number, word in enumerate(words, 10))
    kept = [finding.event.text for finding in findings.found()]
    assert len(kept) == MAX_FINDINGS
    assert findings.dropped == 101
    assert (kept[1], kept[-1]) == (f"died of {words[0]}", f"died of {words[-1]}")


FRAMES = (Frame("/home/u/train.py", 80, "main"), Frame("/home/u/model.py", 12, "forward"))


@pytest.mark.parametrize("of_first", [(), FRAMES[:1]], ids=["bare", "cut"])
def test_an_error_whose_traceback_others_lines_cut_has_the_frames_of_an_equal_one(of_first: tuple[Frame, ...]) -> None:
    text = "RuntimeError: sizes differ"
    found = Findings(Matcher(Patterns(built_in_knowledge(), cache_folder())))
    first, whole = (
        replace(
            event_at(number, text, rank), where=Where.EXCEPTION, chain=(Raised("RuntimeError", "sizes differ", frames),)
        )
        for number, rank, frames in ((1, 1, of_first), (9, 0, FRAMES))
    )
    found.add([first, whole])
    (only,) = found.found()
    assert only.event.exception is not None
    assert only.event.exception.frames == FRAMES
    assert (only.event.rank, only.event.line.number, only.ranks) == (1, 1, frozenset({0, 1}))


def test_a_traceback_of_another_place_keeps_its_frames() -> None:
    text = "RuntimeError: sizes differ"
    found = Findings(Matcher(Patterns(built_in_knowledge(), cache_folder())))
    elsewhere = (Frame("/home/u/train.py", 95, "main"),)
    for number, frames in ((1, elsewhere), (9, FRAMES)):
        raised = Raised("RuntimeError", "sizes differ", frames)
        found.add([replace(event_at(number, text, number), where=Where.EXCEPTION, chain=(raised,))])
    (only,) = found.found()
    assert only.event.exception is not None
    assert only.event.exception.frames == elsewhere
