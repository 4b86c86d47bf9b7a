from __future__ import annotations

from typing import Any

from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark
from torchtriage.web.pages.rank_timeline import rank_timeline


def mark(ranks: str, kind: str, line: int | None, **other: Any) -> RankMark:
    return RankMark(RankSet.from_json(ranks), kind, line, **other)


FIRST = mark("2", "first", 10, time="2026-05-01T09:00:00", entry="cuda.oom")
WAITED = mark("0-1", "waited", 20, time="2026-05-01T09:10:00", until="2026-05-01T09:20:00", waited=900.0)


def test_who_failed_first_stands_on_top_and_marks_by_time() -> None:
    picture = rank_timeline([FIRST, WAITED])
    assert picture is not None
    first, waited = picture.lanes
    assert (waited.mark, waited.count, first.mark) == (WAITED, 2, FIRST)
    # The picture goes from where waiting began, 08:55, to 09:20.
    assert (picture.began, picture.ended) == ("2026-05-01T08:55:00.000", "2026-05-01T09:20:00.000")
    assert picture.seconds == 1500
    assert waited.since == 3.0
    assert waited.until == 97.0
    assert first.at is not None
    assert waited.at is not None
    assert waited.since < first.at < waited.at < waited.until


def test_times_without_a_year_are_compared_and_shown_without_one() -> None:
    marks = [mark(str(rank), "waited", rank, time=f"--08-10T03:04:1{rank}.5", waited=600.0) for rank in (1, 3)]
    picture = rank_timeline(marks)
    assert picture is not None
    assert (picture.began, picture.ended, picture.seconds) == ("08-10T02:54:11.500", "08-10T03:04:13.500", 602)


def test_lanes_of_single_ranks_stand_by_rank() -> None:
    marks = [FIRST, mark("3", "waited", 20), mark("0", "waited", 30), mark("1,4-7", "silent", None)]
    picture = rank_timeline(marks)
    assert picture is not None
    assert [str(lane.mark.ranks) for lane in picture.lanes] == ["0", "2", "3", "1,4-7"]


def test_where_one_time_is_missing_the_order_of_lines_counts() -> None:
    without = mark("3", "waited", 30)
    picture = rank_timeline([FIRST, WAITED, without])
    assert picture is not None
    assert picture.began is None
    assert picture.timed
    assert {str(lane.mark.ranks): lane.at for lane in picture.lanes} == {"2": 3.0, "0-1": 50.0, "3": 97.0}


def test_times_with_and_without_a_zone_are_not_compared() -> None:
    zoned = mark("3", "waited", 30, time="2026-05-01T09:00:00+02:00")
    picture = rank_timeline([FIRST, zoned])
    assert picture is not None
    assert picture.began is None


def test_who_showed_nothing_has_a_lane_and_no_mark() -> None:
    picture = rank_timeline([FIRST, mark("0-1,3", "silent", None)])
    assert picture is not None
    assert picture.lanes[-1].at is None
    assert picture.kinds == (("first", 1), ("silent", 3))


def test_lines_of_which_none_tells_a_time_are_told_from_those_of_which_some_do() -> None:
    picture = rank_timeline([mark("2", "first", 10), mark("0-1", "waited", 20)])
    assert picture is not None
    assert not picture.timed


def test_ranks_that_all_showed_nothing_make_no_picture() -> None:
    assert rank_timeline([mark("0-7", "silent", None)]) is None


def test_one_rank_makes_no_picture() -> None:
    assert rank_timeline([FIRST]) is None
    assert rank_timeline([]) is None


def test_who_was_waited_for_stands_where_waiting_began() -> None:
    picture = rank_timeline([mark("3", "missing", 20), WAITED])
    assert picture is not None
    missing, waited = picture.lanes
    assert picture.began == "2026-05-01T08:55:00.000"
    assert missing.at == waited.since
