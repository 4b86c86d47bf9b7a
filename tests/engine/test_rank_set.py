from __future__ import annotations

import pytest

from torchtriage.domain.rank_set import RankSet


@pytest.mark.parametrize(
    ("ranks", "text"), [([], ""), ([3], "3"), ([2, 0, 1, 5, 1], "0-2,5"), (range(512), "0-511"), ([7, 9], "7,9")]
)
def test_ranks_are_folded_to_ranges_and_back(ranks: list[int], text: str) -> None:
    folded = RankSet.of(ranks)
    assert str(folded) == text
    assert RankSet.from_json(text) == folded
    assert list(folded) == sorted(set(ranks))
    assert len(folded) == len(set(ranks))


def test_sets_of_ranks_are_joined() -> None:
    assert str(RankSet.of([0, 1]) | [2, 7]) == "0-2,7"


@pytest.mark.parametrize("text", ["a", "1-", "1-b", None, 3])
def test_what_are_not_ranges_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        RankSet.from_json(text)  # type: ignore[arg-type]
