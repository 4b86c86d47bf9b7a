from tests.collected import Collected
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.collectives import Collectives


def read(*texts: str) -> Collected:
    collectives = Collected(Collectives())
    for number, text in enumerate(texts, 1):
        collectives.feed(Line(number, text, text, Position(1, number)))
    collectives.close()
    return collectives


def waiting(rank: int, sequence: int, operation: str = "ALLREDUCE", size: int = 1024) -> str:
    return (
        f"[rank{rank}]:[E501 09:10:00.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600012 milliseconds"
    )


def suspected(collectives: Collected, world_size: int | None = None) -> tuple[set[int], str] | None:
    suspects = collectives.suspects(world_size)
    return (set(suspects.ranks), suspects.why) if suspects else None


def test_of_whom_no_watchdog_speaks_is_missing() -> None:
    collectives = read(*(waiting(rank, 78) for rank in (0, 1, 3)))
    assert suspected(collectives, 4) == ({2}, "absent")


def test_a_paste_of_two_ranks_accuses_no_one() -> None:
    assert suspected(read(waiting(0, 78), waiting(5, 78))) is None


def test_the_lowest_number_is_behind() -> None:
    collectives = read(waiting(0, 80), waiting(0, 78), waiting(1, 78), waiting(2, 41), waiting(3, 78))
    suspects = collectives.suspects(4)
    assert suspects is not None
    assert (suspects.ranks, suspects.why, suspects.sequence, suspects.others) == (
        frozenset({2}),
        "behind",
        41,
        78,
    )


def test_numbers_of_different_groups_are_not_compared() -> None:
    groups = [
        f"[PG ID {group} PG GUID {group} Rank {rank}] failure detected by watchdog at work sequence id: {sequence} PG status:"
        for group, rank, sequence in ((1, 0, 900), (2, 1, 17))
    ]
    assert suspected(read(*groups), 2) is None


def test_different_operations_under_one_number_are_reported_with_both_sides() -> None:
    collectives = read(waiting(0, 78), waiting(1, 78), waiting(2, 78, "BROADCAST", 8))
    assert collectives.sides() == [
        ("ALLREDUCE of 1024", frozenset({0, 1})),
        ("BROADCAST of 8", frozenset({2})),
    ]
    assert suspected(collectives, 3) == ({2}, "torn")
    assert collectives.events[-1].text == "ranks disagree on a collective: ALLREDUCE of 1024, BROADCAST of 8"


def test_the_lines_of_a_disagreement_begin_with_one_of_each_side() -> None:
    collectives = read(*(waiting(rank, 78) for rank in range(7)), waiting(7, 78, "BROADCAST", 8))
    assert ["[Rank 0]" in line.text or "[Rank 7]" in line.text for line in collectives.events[-1].lines[:2]] == [
        True
    ] * 2
    assert len(collectives.events[-1].lines) == 8


def test_other_sizes_are_a_disagreement_where_sizes_must_agree() -> None:
    assert read(waiting(0, 5, size=64), waiting(1, 5, size=32)).sides()
    assert read(waiting(0, 5, "_ALLGATHER_BASE", 64), waiting(1, 5, "_ALLGATHER_BASE", 32)).sides()
    assert not read(waiting(0, 5, "ALLGATHER", 64), waiting(1, 5, "ALLGATHER", 32)).sides()
    assert not read(waiting(0, 5, "ALLTOALL_BASE", 64), waiting(1, 5, "ALLTOALL_BASE", 32)).sides()


def test_the_detail_checks_fingerprints_give_both_sides() -> None:
    text = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
        "SequenceNumber=12, OpType=ALLREDUCE, TensorShape=[10], TensorDtypes=Float), but Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=12, OpType=BROADCAST, TensorShape=[4], TensorDtypes=Float)."
    )
    assert read(text).sides() == [
        ("BROADCAST of [4]", frozenset({0})),
        ("ALLREDUCE of [10]", frozenset({1})),
    ]


def test_the_desync_report_names_who_lags_and_who_started_what() -> None:
    collectives = read(
        "\t - [0] Timeout at collective: ALLREDUCE, #78",
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        "\t     [3] finished collective #77, but didn't join collective #78 (count from 1)",
        "\t #78 started ranks:",
        "\t   [0,1,2] started ALLREDUCE",
    )
    assert suspected(collectives) == ({3}, "named")
    lagging = read(" - To our best knowledge, ranks [2, 5] are the lagging ranks that caused this timeout.")
    assert suspected(lagging) == ({2, 5}, "named")


def test_the_flight_recorders_missing_ranks() -> None:
    found = read(
        "Not all ranks joining collective, sequence number: 3", "missing ranks: {3}, collective: nccl:all_reduce"
    )
    assert suspected(found) == ({3}, "named")


def test_who_is_not_in_the_store_based_barrier_is_missing() -> None:
    text = "Timed out initializing process group in store based barrier on rank: {}, for key: store_based_barrier_key:1 (world_size=3, worker_count=2, timeout=0:30:00)"
    assert suspected(read(text.format(0), text.format(2))) == ({1}, "absent")
    assert suspected(read(text.format(0))) is None


def test_the_rank_that_others_could_not_reach_at_a_barrier_is_missing() -> None:
    lost = "RuntimeError: Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank {}."
    assert suspected(read(lost.format(1, 0), lost.format(3, 0))) == ({0}, "named")
    assert read(lost.format(1, 0)).timed_out == {1}
    named = "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms"
    assert suspected(read(named, lost.format(1, 0))) == ({2}, "named")  # Who names the missing one is none.
    assert read(named).timed_out == {0}


def test_groups_of_their_own_disagree_on_nothing() -> None:
    status = "[rank{0}]:[E501 09:10:00.1 ProcessGroupNCCL.cpp:2241] [PG ID 5 PG GUID {1}(dp) Rank {0}]  failure detected by watchdog at work sequence id: 5"
    lines = [waiting(rank, 5, "_ALLGATHER_BASE", size) for rank, size in ((0, 64), (1, 32))]
    assert read(*lines, status.format(0, 11), status.format(1, 11)).sides()
    assert not read(*lines, status.format(0, 11), status.format(1, 17)).sides()
