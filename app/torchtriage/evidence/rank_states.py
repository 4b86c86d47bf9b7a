"""Combines what each rank waits in with the stacks, to describe where all ranks are while a run hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from torchtriage.domain.evidence import Call, Hang, RankState
from torchtriage.domain.rank_set import RankSet

_MAX_COUNT = 24  # states in a verdict

_Key = tuple[str, str | None, str | None, str | None, str | None]  # the fields of a state, except its ranks
# the call, the name of its group, and the ranks that did not join it
Standing = tuple[Call | None, str, tuple[int, ...]]


def states_of(
    hang: Hang,
    standing: Mapping[int, Standing],
    waits: Callable[[int], bool],
    lost: Iterable[int],
    doing: Mapping[int, str],
) -> tuple[RankState, ...]:
    """Returns the states of the ranks in a hang: first those of the suspects, then those of the most ranks. `standing`
    says where each rank with a dump is; `waits` returns whether it waits there. `lost` are the ranks without a dump.
    `doing` says where each stack is."""
    suspects = frozenset(hang.suspects)
    folded: dict[_Key, tuple[list[int], set[tuple[int, ...]]]] = {}
    for rank in sorted({*standing, *lost, *suspects, *hang.waiting}):
        call, group, others = standing.get(rank, (None, "", ()))
        if rank in suspects:
            kind = hang.kind
        elif rank in standing:
            kind = "waits" if waits(rank) else "left"
        else:
            kind = "waits" if rank in hang.waiting else "lost"
        stack = doing.get(rank) if kind != "waits" else None
        place = (f"{call.operation} {call.sequence}", group, call.where) if call else (None, None, None)
        ranks, missing = folded.setdefault((kind, *place, stack), ([], set()))
        ranks.append(rank)
        missing.add(() if rank in suspects and suspects.issuperset(others) else others)
    found = [
        RankState(
            RankSet.of(ranks), kind, call, group, RankSet.of(chain.from_iterable(missing)), where, stack,
            not suspects.isdisjoint(ranks),
        )
        for (kind, call, group, where, stack), (ranks, missing) in folded.items()
    ]  # fmt: skip
    found.sort(key=lambda state: (not state.suspect, -len(state.ranks)))
    kept, rest = found[:_MAX_COUNT], found[_MAX_COUNT:]
    left_over = RankState(RankSet.of(rank for state in rest for rank in state.ranks), "others")
    return (*kept, left_over) if rest else tuple(kept)
