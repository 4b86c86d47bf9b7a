"""Where all ranks stand while a run hangs: what each rank waits in and the stacks in, states of many ranks out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from torchtriage.domain.evidence import Call, Hang, RankState
from torchtriage.domain.rank_set import RankSet

_MOST = 24  # states that a verdict holds

_Key = tuple[str, str | None, str | None, str | None, str | None]  # the fields of a state but its ranks
Standing = tuple[Call | None, str, tuple[int, ...]]  # the call, its group's name, and the ranks that did not come


def states_of(
    hang: Hang,
    standing: Mapping[int, Standing],
    waits: Callable[[int], bool],
    lost: Iterable[int],
    doing: Mapping[int, str],
) -> tuple[RankState, ...]:
    """-> the states of a hang, the suspects' first, then the ones of most ranks. `standing`: where each rank stands
    that left a dump, and `waits` whether it waits there; `lost` are the ranks that left none; `doing` is where stacks
    stand."""
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
        told = (f"{call.operation} {call.sequence}", group, call.where) if call else (None, None, None)
        ranks, missing = folded.setdefault((kind, *told, stack), ([], set()))
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
    kept, rest = found[:_MOST], found[_MOST:]
    left_over = RankState(RankSet.of(rank for state in rest for rank in state.ranks), "others")
    return (*kept, left_over) if rest else tuple(kept)
