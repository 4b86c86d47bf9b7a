import pytest

from tests.collected import Collected
from torchtriage.domain.event import Event
from torchtriage.parsing.extractor import SharedState
from torchtriage.parsing.horovod import Horovod

STALLED = (
    "[2026-05-01 09:00:00.1: W /build/horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be reduced, "
    "gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds."
)


def read(*texts: str, rank: int = 0) -> tuple[list[Event], SharedState]:
    shared = SharedState()
    return Collected(Horovod.for_run(shared)).texts(texts, rank=rank).events, shared


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        (["Missing ranks:", "3: [allreduce.conv.weight, allreduce.conv.bias ...]"], {3}),
        (["Missing ranks:", "1: [allreduce.a]", "12: [allreduce.b]", "step 4", "7: [no rank]"], {1, 12}),
        (["[2026-05-01 09:00:00.2: W operations.cc:588] allreduce.a [missing ranks: 1, 3]"], {1, 3}),
        (["3: [allreduce.conv.weight]"], set()),
    ],
)
def test_the_ranks_that_others_wait_for(expected: list[str], missing: set[int]) -> None:
    events, shared = read(STALLED, *expected)
    assert shared.missing == missing
    assert {event.text for event in events} == {STALLED}


def test_the_coordinators_own_rank_is_none_of_the_stall() -> None:
    event = read(STALLED)[0][0]
    assert (event.rank, event.fatal) == (None, False)


def test_who_says_that_horovod_was_shut_down_lost_the_others() -> None:
    text = (
        "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to"
    )
    assert read(text, rank=5)[1].timed_out == {5}
