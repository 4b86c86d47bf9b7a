from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from torchtriage.domain.evidence import Call, RankDump
from torchtriage.engine import Engine
from torchtriage.evidence.call_order import departures
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.flight_recorder import read_dump
from torchtriage.evidence.wait_for import hang_of

STEP = ("small@data", "large@data", "loss@world")
SIZES = {"small": [16], "large": [64, 4], "loss": [1], "other": [7]}


@pytest.fixture(scope="module")
def words(engine: Engine) -> CollectiveVocabulary:
    return CollectiveVocabulary(engine.knowledge.vocabulary)


def dump(rank: int, calls: Sequence[str], over: bool = False) -> RankDump:
    """Returns what Gloo's recorder leaves of a rank that made these calls and waits in the last one, unless that is `over`."""
    counts: dict[str, int] = {}
    entries = []
    for at, call in enumerate(calls):
        name, _, group = call.partition("@")
        counts[group] = counts.get(group, 0) + 1
        entries.append({
            "process_group": [group, "default_pg" if group == "world" else group.partition("-")[0]],
            "collective_seq_id": counts[group], "profiling_name": "gloo:all_reduce", "input_sizes": [SIZES[name]],
            "state": "scheduled", "retired": over or at < len(calls) - 1, "time_created_ns": at,
        })  # fmt: skip
    return read_dump(json.dumps({"pg_config": {}, "entries": entries}).encode(), f"dump_{rank}", rank + 1, rank)


def form(call: Call) -> str:
    return f"{call.operation} {call.sizes}"


def dumps_of(*ranks: Sequence[str]) -> dict[int, RankDump]:
    return {rank: dump(rank, calls) for rank, calls in enumerate(ranks)}


def test_a_rank_that_skipped_a_call_left_the_order() -> None:
    usual = [*STEP, "small@data"]
    [(rank, left)] = departures(dumps_of(usual, usual, [*STEP, "large@data"]), form).items()
    assert (rank, left.own.sizes, left.theirs.sizes) == (2, "[[64, 4]]", "[[16]]")


def test_of_groups_of_the_same_ranks_the_rank_in_the_other_one_left(words: CollectiveVocabulary) -> None:
    """The rank waits in a call too many of one group, all others in another group: each waits for the other."""
    usual = [*STEP, *STEP]
    hang = hang_of(dumps_of(usual, [*STEP, "small@data", "large@data", "other@data"], usual, usual), words)
    assert hang is not None
    assert (hang.kind, hang.suspects, hang.other_group) == ("other-call", (1,), "data")


def test_a_rank_that_is_only_after_did_not_leave() -> None:
    assert departures(dumps_of([*STEP, "small@data"], [*STEP, "small@data"], STEP, STEP[:1]), form) == {}


def test_ranks_that_differ_all_the_time_have_programs_of_their_own() -> None:
    first, last = ["small@data", "loss@world"] * 6, ["small@data", "large@data"] * 6
    assert departures(dumps_of(first, last, last, last), form) == {}


def test_where_as_many_did_one_as_the_other_no_one_left() -> None:
    usual, other = [*STEP, "small@data"], [*STEP, "large@data"]
    assert departures(dumps_of(usual, usual, other, other), form) == {}


def test_a_call_that_another_rank_made_too_outweighs_one_that_none_made() -> None:
    """Rank 0 waits in a pair, to which rank 2 does not belong; only with rank 1 does it disagree."""
    before = ["small@pair", "small@data", "large@data"]
    dumps = dumps_of([*before, "large@pair"], [*before, "small@data"], [*before[1:], "small@data"])
    assert list(departures(dumps, form)) == [0]


def test_a_rank_that_never_used_its_pair_is_known_by_the_other_pairs(words: CollectiveVocabulary) -> None:
    """Rank 2 skipped the call of its pair; rank 3 waits there for it, and all others for rank 3."""
    one, other = "small@pair-0", "small@pair-1"
    hang = hang_of(
        dumps_of([*STEP, one, "large@world"], [*STEP, one, "large@world"], [*STEP, "large@world"], [*STEP, other]),
        words,
    )
    assert hang is not None
    assert (hang.kind, hang.suspects, hang.other_group) == ("other-call", (2,), "default_pg")


def test_who_is_in_no_pair_that_its_dump_shows_is_not_guessed(words: CollectiveVocabulary) -> None:
    """Rank 4 has no pair, so that rank 1 may wait for it as well as for rank 0; but all are not in one call."""
    usual = [*STEP, "small@pair-1", "large@world"]
    alone = [*STEP, "large@world"]
    hang = hang_of(dumps_of(alone, [*STEP, "small@pair-0"], usual, usual, alone), words)
    assert hang is not None
    assert (hang.kind, hang.suspects) == ("crossed", ())


def test_a_dead_rank_is_named_and_not_its_peer_that_raised(words: CollectiveVocabulary) -> None:
    """Rank 0 is dead; rank 1, its only peer in a pair, left its call there with an exception and is missed elsewhere."""
    step = "small@data"
    dumps = {
        1: dump(1, [step, "small@pair-0"], over=True),
        2: dump(2, [step, "small@pair-1", step]),
        3: dump(3, [step, "small@pair-1", step]),
    }
    hang = hang_of(dumps, words)
    assert hang is not None
    assert (hang.kind, hang.suspects) == ("absent", (0,))


def test_where_two_disagree_a_rank_without_a_dump_is_not_to_blame(words: CollectiveVocabulary) -> None:
    """Gloo aborts the rank that receives too much, which did nothing wrong."""
    hang = hang_of({0: dump(0, [*STEP, "large@data"]), 1: dump(1, [*STEP, "small@data"], over=True)}, words, 3)
    assert hang is not None
    assert (hang.kind, hang.suspects) == ("crossed", ())


def test_the_states_of_all_ranks_are_reported(words: CollectiveVocabulary) -> None:
    usual = [*STEP, "small@data"]
    hang = hang_of(
        dumps_of(usual, usual, STEP, usual) | {2: dump(2, STEP, over=True)}, words, doing={2: "read (data.py:7)"}
    )
    assert hang is not None
    lines = [(str(state.ranks), state.kind, state.call, state.group, str(state.waits_for)) for state in hang.states]
    assert lines == [
        ("2", "missing", "all_reduce 1", "default_pg", ""),
        ("0-1,3", "waits", "all_reduce 3", "data", "2"),
    ]
    assert hang.states[0].doing == "read (data.py:7)"
    assert hang.states[0].suspect
