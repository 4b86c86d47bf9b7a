from __future__ import annotations

from torchtriage.web.pages.timeline_axis import Spot, axis, measured


def spot(line: int, time: str | None = None, file: str | None = None) -> Spot:
    return Spot(line, file, time and f"2026-05-01T{time}")


def test_places_grow_evenly_with_time() -> None:
    values, timed, zone = measured([spot(1, "09:00:00"), spot(9, "09:00:05"), spot(10, "09:00:10")])
    drawn = axis([value for value in values if value is not None], None, timed, zone)
    assert [drawn.at(value) for value in values if value is not None] == [0, 500, 1000]
    assert [tick.text for tick in drawn.ticks] == ["2026-05-01 09:00:00", "2026-05-01 09:00:10"]
    assert drawn.ticks[0].moment is None


def test_a_line_without_a_time_has_that_of_the_line_above() -> None:
    values, _, _ = measured([spot(5, "09:00:00"), spot(7), spot(9, "09:00:10"), spot(2)])
    assert values[1] == values[0]
    assert values[3] == values[0]  # above it there is none


def test_where_few_lines_tell_a_time_they_stand_in_their_order() -> None:
    values, timed, _ = measured([spot(5, "09:00:00"), spot(7), spot(9), spot(2)])
    assert (values, timed) == ([5, 7, 9, 2], False)
    of_two_files, timed, _ = measured([spot(900, file="a"), spot(3, file="b"), spot(2, file="a")])
    assert (of_two_files, timed) == ([1, 2, 0], False)


def test_a_curve_whose_lines_tell_no_time_does_not_fall_into_one_place() -> None:
    curve, others = [spot(line) for line in range(1, 4)], [spot(line, f"09:00:0{line}") for line in range(4, 9)]
    assert measured([*curve, *others], len(curve))[:2] == ([1, 2, 3, 4, 5, 6, 7, 8], False)


def test_the_end_is_enlarged_where_it_would_be_small() -> None:
    drawn = axis([0, 50_000, 99_000, 99_600], 99_000, True, None)
    assert drawn.enlarged == 570
    assert drawn.at(50_000) < 300
    assert 570 <= drawn.at(99_000) < 620
    assert drawn.at(99_600) == 1000
    assert len(drawn.ticks) == 3
    assert axis([0, 50_000, 99_599, 99_600], 99_599, True, None).enlarged is None  # a second is not worth it
    assert axis([0, 600, 1000], 600, True, None).enlarged is None  # it is large enough as it is


def test_times_of_another_zone_are_converted_to_the_runs() -> None:
    zoned = [spot(line, f"09:00:0{line}+00:00") for line in range(5)]
    for clock in ("09:00:05", "17:00:05"):  # of the same zone; eight hours ahead
        values, timed, zone = measured([*zoned, spot(6, clock)])
        assert timed
        assert zone == 0
        assert (values[-1] or 0) - (values[0] or 0) == 5
    # What waited ten minutes for others was not written in a zone that is a quarter of an hour off.
    values, _, _ = measured([*zoned, spot(6, "09:10:04")])
    assert (values[-1] or 0) - (values[0] or 0) == 604


def test_times_without_a_year_are_shown_without_one() -> None:
    values, timed, zone = measured([Spot(1, None, "--05-01T09:00:00"), Spot(2, None, "--05-01T09:00:10")])
    drawn = axis([value for value in values if value is not None], None, timed, zone, dated=False)
    assert [tick.text for tick in drawn.ticks] == ["05-01 09:00:00", "05-01 09:00:10"]
