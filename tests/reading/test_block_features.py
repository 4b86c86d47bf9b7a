from __future__ import annotations

import pytest

from torchtriage.reading.block_features import SIZE, BlockFeatures, features_of, load


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        (b"[rank3]: step 5", 3),
        (b"[Rank 03] loss 2.1", 3),
        (b"RANK=1170 waits", 1170),
        (b"[default7]:[rank15]: x", 7),
        (b"[default7]:[rank15]: x", 15),
        (b"[role_a12]: x", 12),
        (b"rank: 100 x", 100),
    ],
)
def test_a_rank_is_reported_by_its_label(line: bytes, rank: int) -> None:
    found = features_of(b"nothing\n" + line + b"\nnothing\n")
    assert found.may_hold(rank)
    assert not found.may_hold(rank + 1)
    assert not found.error


@pytest.mark.parametrize("line", [b"[1,3]<stdout>:step", b"[gpu-01:3] step"])
def test_a_bare_number_in_brackets_may_be_any_rank(line: bytes) -> None:
    assert features_of(line).may_hold(3)
    assert features_of(line).may_hold(88)


def test_nothing_is_seen_in_plain_progress() -> None:
    assert features_of(b"step 3 | loss 2.11 | lr 3e-4\n" * 1000) == BlockFeatures()


@pytest.mark.parametrize("line", [b"ValueError: x", b"Traceback (most recent call last):", b"[rank0]: Killed"])
def test_an_error_is_seen(line: bytes) -> None:
    assert features_of(b"a\n" + line + b"\nb\n").error


def test_what_is_kept_comes_back() -> None:
    marks = BlockFeatures(True, False, 1 << 99 | 1)
    assert len(marks.dump()) == SIZE
    assert load(marks.dump()) == marks
    assert marks | BlockFeatures(brackets=True, ranks=2) == BlockFeatures(True, True, 1 << 99 | 3)
