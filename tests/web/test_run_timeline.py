from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

import pytest
from fastapi.testclient import TestClient

from tests.built_in import built_in_engine
from tests.logs import traceback
from tests.storage.values import verdict as stored_verdict
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import ProgressCurve, RankMark, RunEvent, Verdict
from torchtriage.reading.sources import from_bytes
from torchtriage.web.pages.run_timeline import RunTimeline, run_timeline

BEGAN = datetime(2026, 5, 1, 9)


def step(number: int, after: float) -> str:
    return f"{BEGAN + timedelta(seconds=after)} | step {number} | loss {3 / (number + 1):.4f}"


def verdict(lines: list[str]) -> Verdict:
    return built_in_engine().triage(from_bytes("\n".join(lines).encode(), "run.log"))


def drawn(told: Verdict) -> RunTimeline:
    timeline = run_timeline(told)
    assert timeline is not None
    return timeline


def watchdog(after: float, rank: int = 0) -> str:
    time = BEGAN + timedelta(seconds=after)
    return (
        f"[rank{rank}]:[E{time:%m%d %H:%M:%S}.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 "
        "milliseconds before timing out."
    )


def at(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat()


def of_ranks(marks: list[RankMark], hosts: dict[str, str] | None = None, events: tuple[RunEvent, ...] = ()) -> Verdict:
    told = replace(stored_verdict(), timeline=tuple(marks), events=events)
    placed = {host: RankSet.from_json(ranks) for host, ranks in (hosts or {}).items()}
    root = told.root_cause and replace(told.root_cause, host=None)
    return replace(
        told, root_cause=root, cascades=(), run=replace(told.run, progress=None, checkpoints=(), host_ranks=placed)
    )


def mark(ranks: str, kind: str, line: int | None, seconds: float | None = None, **more: object) -> RankMark:
    return RankMark(RankSet.from_json(ranks), kind, line, time=None if seconds is None else at(seconds), **more)  # type: ignore[arg-type]


def test_the_silence_before_the_failure_is_a_gap() -> None:
    timeline = drawn(verdict([*(step(number, 5 * number) for number in range(40)), watchdog(795)]))
    assert timeline.silent == 600
    assert timeline.step_time == 5
    (gap,) = timeline.gaps
    assert gap.seconds == 600
    assert [curve.name for curve in timeline.curves] == ["last_loss", "seconds_per_step", "step"]
    assert any(item.kind == "gap" and item.seconds == 600 for item in timeline.items)


def test_steps_that_went_by_unread_make_no_gap() -> None:
    told = verdict([*(step(number, 5 * number) for number in range(40)), watchdog(795)])
    curve = told.run.progress
    assert curve is not None
    kept = [n for n, number in enumerate(curve.steps) if number is not None and not 5 < number < 35]

    def with_steps(steps: tuple[int | None, ...]) -> Verdict:
        some = ProgressCurve(
            curve.file, tuple(curve.lines[n] for n in kept), tuple(curve.times[n] for n in kept), steps,
            {name: tuple(column[n] for n in kept) for name, column in curve.values.items()},
        )  # fmt: skip
        return replace(told, run=replace(told.run, progress=some))

    assert [gap.seconds for gap in drawn(with_steps(tuple(curve.steps[n] for n in kept))).gaps] == [600]
    stood = tuple(at if at < len(kept) // 2 else at + 1 for at in range(len(kept)))  # no step in that time
    assert len(drawn(with_steps(stood)).gaps) == 2


def test_a_checkpoint_is_drawn_at_its_time() -> None:
    lines = [step(number, 10 * number) for number in range(41)]
    lines.insert(21, f"{BEGAN + timedelta(seconds=200)} Saved checkpoint to /out/checkpoint-20")
    timeline = drawn(verdict([*lines, *traceback("RuntimeError: boom")]))
    (saved,) = timeline.checkpoints
    assert (saved.at, saved.step, saved.line, saved.text) == (500, 20, 22, "/out/checkpoint-20")
    assert timeline.failure is not None
    assert timeline.failure.at == 1000  # It has no time of its own: it stands at the last line above that has one.


def test_the_slices_cover_the_picture() -> None:
    points = drawn(verdict([step(number, number**1.5) for number in range(30)])).points
    assert points[0].left == 0
    for before, after in pairwise(points):
        assert round(before.left + before.width, 1) == after.left
    assert round(points[-1].left + points[-1].width, 1) == 1000


def test_without_times_the_order_of_lines_counts() -> None:
    lines = [f"step {number} loss {3 / (number + 1):.4f}" for number in range(20)]
    timeline = drawn(verdict([*lines, *traceback("RuntimeError: boom")]))
    assert not timeline.axis.timed
    assert not timeline.some_times
    assert (timeline.gaps, timeline.axis.ticks) == ((), ())


def test_ranks_stand_below_their_hosts_with_what_became_of_them() -> None:
    marks = [
        mark("2", "first", 10, 0, entry="cuda.oom"),
        *(mark(str(rank), "waited", 20 + rank, 600 + rank, entry="nccl.timeout", waited=590.0) for rank in (0, 1, 3)),
    ]
    timeline = drawn(of_ranks(marks, {"gpu-1": "0-1", "gpu-2": "2-3"}))
    assert [(row.hosts, str(row.ranks), row.kind) for row in timeline.rows] == [
        (("gpu-1",), "0-1", "waited"),
        (("gpu-2",), "2-3", "first"),
    ]
    assert [str(rank.ranks) for rank in timeline.rows[1].rows] == ["2", "3"]
    (waited,) = timeline.rows[1].rows[1].signs
    assert waited.since is not None
    assert waited.since < waited.at
    assert [(item.kind, str(item.ranks)) for item in timeline.items] == [("first", "2"), ("waited", "0-1,3")]
    assert timeline.items[waited.event or 0].kind == "waited"


def test_hosts_that_did_the_same_share_a_row_and_the_one_that_failed_is_on_top() -> None:
    marks = [mark("106", "first", 10, 0), mark("0-105,107-511", "waited", 20, 600, until=at(604), waited=600.0)]
    hosts = {f"gpu-{number}": f"{8 * number}-{8 * number + 7}" for number in range(64)}
    xid = RunEvent("kernel", "consequence", 30, "NVRM: Xid", time=at(601), host="gpu-7")
    timeline = drawn(of_ranks(marks, hosts, (xid,)))
    assert [(row.hosts[0], len(row.hosts), len(row.ranks)) for row in timeline.rows] == [
        ("gpu-13", 1, 8),
        ("gpu-7", 1, 8),
        ("gpu-0", 62, 496),
    ]
    assert {sign.kind for sign in timeline.rows[1].signs} == {"waited", "kernel"}
    assert [str(row.ranks) for row in timeline.rows[2].rows] == ["0-55,64-103,112-511"]


def test_ranks_of_unknown_hosts_have_rows_of_their_own() -> None:
    timeline = drawn(of_ranks([mark("2", "first", 10, 0), mark("0-1", "waited", 20, 60), mark("3", "silent", None)]))
    assert [(row.hosts, str(row.ranks), row.kind) for row in timeline.rows] == [
        ((), "0", "waited"),
        ((), "1", "waited"),
        ((), "2", "first"),
        ((), "3", "silent"),
    ]
    assert timeline.rows[3].signs == ()
    assert timeline.items[-1].kind == "silent"


def test_a_rank_that_was_waited_for_is_drawn_where_the_wait_began() -> None:
    timeline = drawn(
        of_ranks(
            [
                mark("3", "missing", 20),
                mark("0", "waited", 20, 700, waited=600.0),
                mark("1", "waited", 21, 705, waited=600.0),
            ]
        )
    )
    missing = next(row for row in timeline.rows if row.kind == "missing")
    waited = next(row for row in timeline.rows if row.kind == "waited")
    assert missing.signs[0].at == waited.signs[0].since


@pytest.mark.parametrize(
    ("standing", "shown", "faint"),
    [("survived", "warning", False), ("unknown", "unknown", False), ("consequence", "scheduler", True)],
)
def test_an_event_says_what_it_is_to_the_failure(standing: str, shown: str, faint: bool) -> None:
    event = RunEvent("scheduler", standing, 30, "what it says", time=at(60))
    timeline = drawn(of_ranks([mark("2", "first", 10, 0), mark("1", "waited", 20, 50)], events=(event,)))
    item = timeline.items[-1]
    assert (item.kind, item.faint, item.text) == (shown, faint, "what it says")
    assert [sign.kind for sign in timeline.job] == [shown]


def test_a_verdict_from_before_there_were_events_shows_its_cascades() -> None:
    told = verdict(
        [
            *(step(number, 5 * number) for number in range(20)),
            *traceback("ValueError: x", prefix="[rank1]: "),
            watchdog(900),
        ]
    )
    old = drawn(replace(told, events=()))
    assert {item.kind for item in old.items} >= {"first"}
    assert len(old.items) >= 2


def test_a_single_moment_has_no_timeline() -> None:
    assert run_timeline(of_ranks([mark("2", "first", 10)])) is None
    assert run_timeline(of_ranks([])) is None


def test_ten_thousand_ranks_fold_into_few_rows() -> None:
    marks = [mark("5603", "first", 10, 0), mark("0-5602,5604-9999", "waited", 20, 600, until=at(604), waited=600.0)]
    hosts = {f"gpu-{number}": f"{8 * number}-{8 * number + 7}" for number in range(256)}
    timeline = drawn(of_ranks(marks, hosts))
    assert len(timeline.rows) <= 20
    assert sum(len(row.ranks) for row in timeline.rows) == 10_000


def test_the_page_with_the_timeline_of_ten_thousand_ranks_takes_little(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = [mark("5603", "first", 10, 0), mark("0-5602,5604-9999", "waited", 20, 600, until=at(604), waited=600.0)]
    large = of_ranks(marks, {f"gpu-{number}": f"{8 * number}-{8 * number + 7}" for number in range(1250)})
    monkeypatch.setattr("torchtriage.web.pages.incident.run_timeline", lambda _: run_timeline(large))
    sent = "\n".join(traceback("ValueError: x", prefix="[rank1]: "))
    page = f"/incidents/{client.post('/api/v1/incidents', content=sent).json()['id']}"
    shown = client.get(page).text
    assert 'id="timeline"' in shown
    assert "hosts</b>" in shown  # rows of hosts that did the same
    seconds = []
    for _ in range(5):
        began = time.process_time()
        assert client.get(page).status_code == 200
        seconds.append(time.process_time() - began)
    assert median(seconds) <= 0.3
