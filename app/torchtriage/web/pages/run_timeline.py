"""Shows a verdict as a timeline: curves, rows of hosts and ranks, and a list of the same events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import Evidence, RankMark, RunEvent, Verdict
from torchtriage.web.pages import timeline_curves
from torchtriage.web.pages.timeline_axis import Axis, Spot, axis, measured
from torchtriage.web.pages.timeline_curves import STEP, Curve, Gap, Point
from torchtriage.web.pages.timeline_rows import KINDS, Row, Sign, rows

# What is drawn, in the order of the legend.
SIGNS = ("first", "missing", "failed", "waited", "stopped", "ended", "kernel", "scheduler", "watchdog", "launcher",
         "program", "exit", "warning", "unknown", "checkpoint", "progress")  # fmt: skip
_STRONG = ("kernel", "unknown")  # seen well, also where they only followed
_FAINT = ("waited", "stopped", "ended")  # marks of what only followed
_NO_RANKS = RankSet()
_MAX_OWN_MARKS = 4  # ranks that an event of their own has a sign for


@dataclass(frozen=True, slots=True)
class Item:
    """One event in the list. `at` is its position, or None if unknown. `moment` is its time in UTC if the time zone of
    the log is known, and `moment_until` that of the last of several events. `seconds` is the length of a gap."""

    kind: str
    line: int | None
    file: str | None = None
    time: str | None = None
    until: str | None = None
    ranks: RankSet = _NO_RANKS
    host: str | None = None
    text: str | None = None
    entry: str | None = None
    step: int | None = None
    count: int = 1
    seconds: float | None = None
    waited: float | None = None
    faint: bool = False
    at: float | None = None
    moment: str | None = None
    moment_until: str | None = None


@dataclass(slots=True)
class _Placed:
    """An item and its values on the axis: its own, that of the start of waiting, and that of the last of several
    events."""

    item: Item
    marks: list[RankMark] = field(default_factory=list)  # of ranks, of which it tells
    at: float | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """`items` are all events in order; `marks` say what happened to each rank, for the tables. `job` are symbols about
    the whole run. `silent` is the time in seconds from the last line of progress to the failure, if that is a gap.
    `step_time` is the usual time of a step in seconds. `some_times`: lines have times, but too few for a time axis."""

    axis: Axis
    curves: tuple[Curve, ...]
    points: tuple[Point, ...]
    gaps: tuple[Gap, ...]
    rows: tuple[Row, ...]
    job: tuple[Sign, ...]
    items: tuple[Item, ...]
    marks: tuple[RankMark, ...]
    file: str | None = None
    silent: float | None = None
    step_time: float | None = None
    some_times: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Returns the kinds of signs that are drawn."""
        drawn = {sign.kind for sign in self.job}
        for row in self.rows:
            drawn |= {sign.kind for part in (row, *row.rows) for sign in part.signs}
        return tuple(kind for kind in SIGNS if kind in drawn)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the columns of the table of the curves."""
        return tuple(curve.name for curve in self.curves if curve.name != STEP)

    @property
    def failure(self) -> Item | None:
        return next((item for item in self.items if item.kind == "first" and item.at is not None), None)

    @property
    def checkpoints(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.kind == "checkpoint" and item.at is not None)


def run_timeline(verdict: Verdict) -> RunTimeline | None:
    """Returns the timeline of the run, or None if the log shows fewer than two moments."""
    placed = [*_of_ranks(verdict), *_events(verdict), *_steps_saved(verdict)]
    points = timeline_curves.points(verdict.run.progress)
    file = verdict.run.progress.file if verdict.run.progress else None
    spots = [Spot(point.line, file, point.time) for point in points]
    for item in (one.item for one in placed):
        spots += [Spot(item.line or 0, item.file, item.time), Spot(item.line or 0, item.file, item.until or item.time)]
    spots += [
        Spot(mark.line or 0, mark.file, time)
        for mark in verdict.timeline
        for time in (mark.time, mark.until or mark.time)
    ]
    if len({(spot.file, spot.line) for spot in spots if spot.line}) < 2:
        return None
    values, timed, zone = measured(spots, len(points))
    of_points, rest = [value or 0.0 for value in values[: len(points)]], values[len(points) :]
    for n, one in enumerate(placed):
        one.at, one.until = rest[2 * n], rest[2 * n + 1] if timed else None
    of_marks = rest[2 * len(placed) :]
    places = {id(mark): (of_marks[2 * n], of_marks[2 * n + 1]) for n, mark in enumerate(verdict.timeline)}
    return _drawn(verdict, placed, points, of_points, places, timed, zone)


def _drawn(
    verdict: Verdict,
    items: list[_Placed],
    points: list[Point],
    of_points: list[float],
    places: dict[int, tuple[float | None, float | None]],
    timed: bool,
    zone: float | None,
) -> RunTimeline | None:
    waits = [at - mark.waited for mark in verdict.timeline if timed and mark.waited and (at := places[id(mark)][0])]
    for one in items:
        if one.item.kind == "missing":  # What shows it is a line of the others: it was missing since they waited.
            one.at = min(waits, default=one.at)
    failures = [one.at for one in items if one.item.kind in KINDS and one.at is not None]
    focus = min([*waits, *failures], default=None)
    every = [*of_points, *waits, *(value for one in items for value in (one.at, one.until) if value is not None)]
    if len(set(every)) < 2:
        return None
    line = axis(every, focus, timed, zone, not any((one.item.time or "").startswith("--") for one in items))
    shown = min(
        [at for one in items if one.item.kind in KINDS[:1] + KINDS[2:] and (at := one.at) is not None], default=None
    )
    stretches = timeline_curves.gaps(points, of_points, shown) if timed else []
    gaps = tuple(Gap(line.at(a), round(line.at(b) - line.at(a), 1), b - a, points[n].line) for a, b, n in stretches)
    file = verdict.run.progress.file if verdict.run.progress else None
    items += [
        _Placed(Item("gap", gap.after, file, points[n].time, seconds=gap.seconds), at=a)
        for gap, (a, _, n) in zip(gaps, stretches, strict=True)
    ]
    items.sort(key=lambda one: (one.at is None, one.at or 0.0, one.item.line or 0))
    placed = [replace(point, at=line.at(value)) for point, value in zip(points, of_points, strict=True)]
    below, job = _rows(verdict, items, places, line, timed)
    return RunTimeline(
        axis=line,
        curves=timeline_curves.curves(placed, {gap.left for gap in gaps}),
        points=timeline_curves.sliced(placed) if placed else (),
        gaps=gaps,
        rows=below,
        job=job,
        items=tuple(
            replace(
                one.item,
                at=line.at(one.at) if one.at is not None else None,
                moment=line.moment(one.at),
                moment_until=line.moment(one.until),
            )
            for one in items
        ),
        marks=_by_rank(verdict.timeline),
        file=file,
        silent=gaps[-1].seconds if gaps and stretches[-1][2] == len(points) - 1 else None,
        step_time=timeline_curves.usual(points),
        some_times=not timed and any(one.item.time for one in items),
    )


def _of_ranks(verdict: Verdict) -> list[_Placed]:
    """Returns what happened to ranks, merged by kind and entry, with the text of the event for the same line."""
    words = {(event.line, event.file): event for event in reversed(verdict.events)}
    alike: dict[tuple[str, str | None], list[RankMark]] = defaultdict(list)
    for mark in verdict.timeline:
        alike[mark.kind, mark.entry].append(mark)
    made = []
    for (kind, entry), marks in alike.items():
        first = min(marks, key=lambda mark: mark.line or 0)
        times = sorted(time for mark in marks for time in (mark.time, mark.until) if time)
        ranks = marks[0].ranks if len(marks) == 1 else RankSet.of(rank for mark in marks for rank in mark.ranks)
        event = words.get((first.line or 0, first.file))
        until = times[-1] if len(times) > 1 and times[-1] != first.time else None
        item = Item(
            kind, first.line, first.file, first.time, until, ranks,
            host=event.host if event else None, text=event.text if event else None, entry=entry,
            count=event.count if event else 1, waited=first.waited, faint=kind in _FAINT,
        )  # fmt: skip
        made.append(_Placed(item, marks))
    return made


def _events(verdict: Verdict) -> list[_Placed]:
    """Returns the other events, which the marks of ranks do not cover."""
    missing = any(mark.kind == "missing" for mark in verdict.timeline)
    known = {(mark.line, mark.file) for mark in verdict.timeline}
    waited = {mark.entry for mark in verdict.timeline if mark.kind == "waited"}
    events = verdict.events or tuple(_from_cascades(verdict))
    return [
        _Placed(_event(event, missing))
        for event in events
        if (event.line, event.file) not in known and not (event.ranks and event.entry in waited)
    ]


def _steps_saved(verdict: Verdict) -> list[_Placed]:
    """Returns checkpoints, and how far each rank came if they differ."""
    saved = [
        Item("checkpoint", one.line, one.file, one.time, text=one.path, step=one.step)
        for one in verdict.run.checkpoints
    ]
    last = verdict.run.last_progress if len(verdict.run.last_progress) > 1 else ()
    came = [Item("progress", one.line, one.file, one.time, ranks=one.ranks, step=one.step) for one in last]
    return [_Placed(item) for item in (*saved, *came)]


def _event(event: RunEvent, missing: bool) -> Item:
    kinds = {"cause": event.kind if missing else "first", "survived": "warning", "unknown": "unknown"}
    kind = kinds.get(event.standing, event.kind)
    return Item(
        kind, event.line, event.file, event.time, event.until, event.ranks, event.host, event.text, event.entry,
        count=event.count, faint=event.standing == "consequence" and kind not in _STRONG,
    )  # fmt: skip


def _from_cascades(verdict: Verdict) -> Iterable[RunEvent]:
    """Yields the events of an older verdict that stored only cascades."""
    root = verdict.root_cause
    line: Evidence | None = root.evidence[0] if root and root.evidence else None
    if root is not None and line is not None:
        ranks = RankSet.of(() if root.rank is None else (root.rank,))
        yield RunEvent(
            "program", "cause", line.line, line.text[:160], line.file, root.time, None, ranks, root.host, root.entry
        )
    for one in verdict.cascades:
        yield RunEvent("program", "consequence", one.line, one.text[:160], one.file, ranks=one.ranks, entry=one.entry)


def _rows(
    verdict: Verdict,
    placed: Sequence[_Placed],
    places: dict[int, tuple[float | None, float | None]],
    line: Axis,
    timed: bool,
) -> tuple[tuple[Row, ...], tuple[Sign, ...]]:
    """Returns rows of hosts and ranks, and the signs of the whole job, which belong to no row."""
    marks: list[tuple[RankMark, Sign | None]] = []
    for n, one in enumerate(placed):
        marks += [(mark, _sign_of(mark, one, n, places[id(mark)], line, timed)) for mark in one.marks]
    hosts = dict(verdict.run.host_ranks)
    root = verdict.root_cause
    named = root.host if root and root.host != "localhost" else None
    if root and named and root.rank is not None and not any(root.rank in ranks for ranks in hosts.values()):
        hosts[named] = RankSet.of((*hosts.get(named, ()), root.rank))
    several = sum(len(mark.ranks) for mark in verdict.timeline) > 1
    home = {rank: host for host, ranks in hosts.items() for rank in ranks}
    of_host: dict[str, list[Sign]] = defaultdict(list)
    job: list[Sign] = []
    for n, one in enumerate(placed):
        item = one.item
        if one.at is None or item.kind in ("gap", "silent"):
            continue
        until = line.at(one.until) if one.until is not None and one.until != one.at else None
        sign = Sign(item.kind, line.at(one.at), item.line or 0, item.file, n, None, until, item.faint)
        theirs = (
            dict.fromkeys(home[rank] for rank in item.ranks if rank in home)
            if 0 < len(item.ranks) <= _MAX_OWN_MARKS
            else {}
        )
        if item.host in hosts or (item.host and several):
            theirs = {item.host: None}
        if one.marks and (several or theirs):
            continue  # They stand in the rows of their ranks.
        for host in theirs:
            of_host[str(host)].append(sign)
        if not theirs:
            job.append(sign)
    below = rows(marks, hosts, of_host) if several or hosts else ()
    return below, tuple(sorted(job, key=lambda sign: not sign.faint))


def _sign_of(
    mark: RankMark, one: _Placed, n: int, place: tuple[float | None, float | None], line: Axis, timed: bool
) -> Sign | None:
    at = one.at if mark.kind == "missing" else place[0]
    if at is None or mark.kind == "silent":
        return None
    since = line.at(at - mark.waited) if timed and mark.waited else None
    until = line.at(place[1]) if timed and place[1] is not None and place[1] != at and mark.until else None
    return Sign(mark.kind, line.at(at), mark.line or 0, mark.file, n, since, until, one.item.faint)


def _by_rank(marks: Sequence[RankMark]) -> tuple[RankMark, ...]:
    return tuple(sorted(marks, key=lambda mark: (mark.kind == "silent", next(iter(mark.ranks.ranges), (0, -1)))))
