"""Rows of a log: what repeats is folded, and in an incident's excerpt also what rank after rank repeats."""

from __future__ import annotations

from torchtriage.domain.rank_set import RankSet
from torchtriage.reading.prefixes.strip import learn_labels
from torchtriage.services.log_search import Writers
from torchtriage.web.pages.log_rows import Row, folded, joined, settled


def watchdog(rank: int) -> list[str]:
    prefix = f"[rank{rank}]:[E0501 09:12:0{rank % 10}.100000 ProcessGroupNCCL.cpp:683] [Rank {rank}]"
    return [
        f"{prefix} Watchdog caught collective operation timeout: WorkNCCL(SeqNum=118) ran for 60001{rank} ms.",
        f"{prefix} failure detected by watchdog at work sequence id: 118",
        f"{prefix} To avoid data inconsistency, we are taking the entire process down.",
    ]


def made(lines: list[str], **marks: int) -> tuple[tuple[Row, ...], Writers]:
    """Returns a row for each line, and who wrote them; `marks` are numbers of lines by the field that is set."""
    known = Writers(learn_labels(lines), None)
    rows = [
        Row(number, text, rank=known.rank(text), focus=marks.get("focus") == number, hit=marks.get("hit") == number)
        for number, text in enumerate(lines, 1)
    ]
    return tuple(rows), known


def test_what_other_ranks_repeat_is_one_fold() -> None:
    rows, known = made([line for rank in (0, 1, 2, 4) for line in watchdog(rank)] + ["launcher: stopping"])
    shown = joined(rows, known)
    assert [row.number for row in shown] == [1, 2, 3, 13]
    assert [row.number for row in shown[2].folded] == list(range(4, 13))
    assert shown[2].ranks == RankSet.of((1, 2, 4))
    assert (shown[1].last, shown[2].last) == (2, 12)


def test_a_rank_that_says_something_else_is_seen() -> None:
    lines = [line for rank in (0, 1) for line in watchdog(rank)]
    odd = "[rank2]:[E0501 09:12:03.100000 train.py:7] [Rank 2] the loader ran dry"
    rows, known = made([*lines, odd, *watchdog(3)])
    assert odd in [row.text for row in joined(rows, known)]


def test_steps_of_one_rank_are_not_folded() -> None:
    rows, known = made([f"[rank 0] step {step} loss 0.{step}" for step in range(20)])
    assert joined(rows, known) == rows


def test_a_line_that_is_asked_for_is_seen() -> None:
    lines = [line for rank in range(6) for line in watchdog(rank)]
    for mark in ("focus", "hit"):
        rows, known = made(lines, **{mark: 11})
        assert 11 in [row.number for row in joined(rows, known)]


def test_folds_of_ranks_and_of_equal_lines_keep_every_line() -> None:
    lines = [line for rank in range(6) for line in watchdog(rank)] + ["the same warning"] * 9
    rows, known = made(lines)
    shown = folded(joined(rows, known), known)
    assert [row.number for row in shown] == [1, 2, 3, 19]
    assert [one.number for row in shown for one in (row, *row.folded)] == list(range(1, len(lines) + 1))


def test_a_progress_bar_is_shown_once_a_line() -> None:
    bar = "".join(f"\r{step}%|##   | {step}/100" for step in range(9))
    rows, _ = made(["starting", f"{bar}\r[rank1]: RuntimeError: no data", "a\rb"])
    assert [(row.text, row.redrawn) for row in settled(rows)] == [
        ("starting", 0), ("[rank1]: RuntimeError: no data", 9), ("a\rb", 0),
    ]  # fmt: skip
