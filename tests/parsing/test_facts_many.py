"""Lines that are taken many at once tell what they tell one by one."""

from __future__ import annotations

from tests.facts import line_regexes, prefilter
from torchtriage.domain.line import Line, Position
from torchtriage.facts import CollectedFacts

TEXTS = (
    "step 1 loss 0.5", "rank 1 step 2 loss 0.4", "nothing", "step 3 loss 0.3", "epoch 1", "global_step 40 loss 0.1",
    "[Rank 2] step 4 loss 0.2", "using cuda", "train loss 0.7",
)  # fmt: skip


def lines(first: int, rank: int | None) -> list[Line]:
    return [Line(at, text, text, Position(1, at), rank=rank) for at, text in enumerate(TEXTS, first)]


def signs(line: Line) -> tuple[int, ...]:
    seen = prefilter().hints([line.text])
    return seen[line.text].facts if line.text in seen else ()


def test_lines_that_show_that_the_run_continues_are_counted_alike() -> None:
    single, many = CollectedFacts(line_regexes()), CollectedFacts(line_regexes())
    for first, rank in ((1, None), (100, 5), (200, None)):
        items = [line for line in lines(first, rank) if line_regexes().form_of(signs(line)).passes]
        assert len(items) == len(TEXTS)
        for line in items:
            single.note(line, signs(line), claimed=False)
        many.note_progress(items, list(map(signs, items)))
        single.feed(items)
        many.feed(items)
    assert many.progress_of == single.progress_of
    assert single.progress_of == {1: Position(1, 201), 2: Position(1, 206), 5: Position(1, 108)}
    assert (many.progress, many.training_lines, many.batch_system_lines, many.training_word_kinds) == (
        single.progress, single.training_lines, single.batch_system_lines, single.training_word_kinds
    )  # fmt: skip
    assert (many.step, many.phase_at(Position(1, 250))) == (single.step, single.phase_at(Position(1, 250)))
    assert (many.step, many.phase_at(Position(1, 250))) == (4, "train")


def test_a_sample_that_is_after_lines_read_later_leaves_progress_in_order() -> None:
    facts = CollectedFacts(line_regexes())
    facts.sample(Position(1, 50), "step 9 loss 0.1")
    result = lines(10, None)
    facts.note_progress(result, list(map(signs, result)))
    assert facts.progress == sorted(facts.progress)
    assert facts.progress[-1] == Position(1, 50)
