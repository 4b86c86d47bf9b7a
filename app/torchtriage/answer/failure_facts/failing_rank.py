"""The rank that failed, its host, and the other ranks with the same failure."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.rank_set import RankSet


def failing_rank(failure: Failure) -> Iterator[Fact]:
    """`rank`, `local_rank`, `host`, `time`; `ranks` and `rank_count` that show the same failure, where several do."""
    root = failure.root
    for name, value in (("rank", root.rank), ("local_rank", root.local_rank), ("host", root.host), ("time", root.time)):
        if value is not None:
            yield failure.fact(name, value)
    on_one_host = root.rank is not None and root.rank == root.local_rank  # the local ranks are the ranks
    same = failure.finding.ranks or (failure.finding.local_ranks if on_one_host else frozenset())
    if len(same) > 1:
        yield failure.fact("ranks", str(RankSet.of(same)))
        yield failure.fact("rank_count", len(same), "ranks")
