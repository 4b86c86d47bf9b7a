from __future__ import annotations

from tests.logs import PEER_CLOSED, WAITING, agent, report, steps, text, traceback
from torchtriage.answer.rank_timeline import MAX_OWN_MARKS
from torchtriage.domain.verdict import RankMark
from torchtriage.engine import Engine
from torchtriage.reading.sources import Run, from_bytes

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79 GiB"


def timed_out(rank: int, second: int) -> str:
    return (
        f"[rank{rank}]:[E0501 09:20:{second:02}.000000 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
        "600029 milliseconds before timing out."
    )


def marks_of(engine: Engine, run: Run) -> tuple[RankMark, ...]:
    return engine.triage(run).timeline


def kinds(marks: tuple[RankMark, ...]) -> dict[str, str]:
    return {str(mark.ranks): mark.kind for mark in marks}


def test_who_failed_first_who_waited_and_who_was_stopped(engine: Engine) -> None:
    waiting = traceback(PEER_CLOSED, WAITING, "[rank0]: ")
    log = text(steps(range(3)), traceback(OOM, prefix="[rank1]: "), waiting, agent(1, 1), report((1, 1), [(2, -15)]))
    marks = marks_of(engine, from_bytes(log))
    assert kinds(marks) == {"1": "first", "0": "waited", "2": "stopped"}
    assert marks[0].entry == "cuda.oom"
    lines = log.decode().splitlines()
    for mark in marks:
        assert mark.line is not None
        assert f"rank{mark.ranks}" in lines[mark.line - 1] or f"rank      : {mark.ranks}" in "".join(lines)


def test_times_and_how_long_it_waited_are_those_of_the_log(engine: Engine) -> None:
    log = text("2026-05-01 09:00:00,000 started", steps(range(3)), timed_out(0, 1), timed_out(2, 5))
    marks = {str(mark.ranks): mark for mark in marks_of(engine, from_bytes(log))}
    assert marks["2"].time == "2026-05-01T09:20:05.000000"
    assert marks["2"].waited == 600.029
    assert (marks["1"].kind, marks["1"].time, marks["1"].waited) == ("silent", None, None)


def test_a_time_without_a_year_is_reported_as_it_is(engine: Engine) -> None:
    verdict = engine.triage(from_bytes(text(timed_out(0, 1), timed_out(2, 5), timed_out(1, 2))))
    assert {str(mark.ranks): mark.time for mark in verdict.timeline} == {
        "0": "--05-01T09:20:01.000000", "2": "--05-01T09:20:05.000000", "1": "--05-01T09:20:02.000000",
    }  # fmt: skip
    assert verdict.run.seconds_after_failure == 4.0
    assert (verdict.run.started, verdict.run.ended) == (None, None)


def test_many_ranks_of_a_kind_share_a_mark(engine: Engine) -> None:
    ranks = [rank for rank in range(2 * MAX_OWN_MARKS) if rank != 7]
    log = text("2026-05-01 09:00:00,000 started", traceback(OOM, prefix="[rank7]: "),
               [timed_out(rank, rank % 60) for rank in ranks])  # fmt: skip
    first, waited = marks_of(engine, from_bytes(log))
    assert (str(first.ranks), first.kind) == ("7", "first")
    assert (str(waited.ranks), waited.kind) == (f"0-6,8-{2 * MAX_OWN_MARKS - 1}", "waited")
    assert waited.time == "2026-05-01T09:20:00.000000"
    assert waited.until == "2026-05-01T09:20:59.000000"


def test_ranks_without_a_failure_of_their_own_are_reported_as_such(engine: Engine) -> None:
    log = text([f"[rank{rank}]: step 1" for rank in range(4)], traceback(OOM, prefix="[rank1]: "))
    marks = marks_of(engine, from_bytes(log))
    assert kinds(marks) == {"1": "first", "0,2-3": "silent"}
    assert marks[-1].line is None


def test_a_healthy_run_has_none(engine: Engine) -> None:
    assert marks_of(engine, from_bytes(text(steps(range(4))))) == ()


def test_one_that_never_came_has_no_time_of_its_own(engine: Engine) -> None:
    lines = [timed_out(rank, rank) for rank in (0, 1, 3)]
    log = text("2026-05-01 09:00:00,000 started with world_size=4", steps(range(4)), lines, agent(-6),
               report((0, -6), [(1, -6), (3, -6)]))  # fmt: skip
    verdict = engine.triage(from_bytes(log))
    assert verdict.root_cause is not None
    assert verdict.root_cause.rank == 2
    first, *others = verdict.timeline
    assert (str(first.ranks), first.kind, first.time) == ("2", "missing", None)
    assert {mark.kind for mark in others} == {"waited"}
