"""Lays out charts: turns counts into rectangles in a frame of 1000 × 100. The style sheet sets the colors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

from torchtriage.domain.dashboard import OTHERS, UNKNOWN, Chart

WIDTH, HEIGHT = 1000.0, 100.0
_COLOURS = 12  # of the style sheet, as many as a chart has parts
_OWNERS = {"user": "c0", "framework": "c4", "platform": "c1", "hardware": "c7"}
Links = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Bar:
    """`kind` is the class of its color. `at`, `part` and `count` are shown as its tooltip. `link` is its URL, or ""."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    at: str
    part: str
    count: int
    link: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart with its bars. `kinds` are the classes of its parts, `most` is the count at the top of the frame, and
    `links` has a URL for each time and part."""

    chart: Chart
    bars: tuple[Bar, ...]
    kinds: dict[str, str]
    most: int
    links: Links | None = None


def drawn(chart: Chart, links: Links | None = None) -> Drawn:
    """Returns stacked bars, one stack per time. `links` returns the URL for a time and a part; an empty part means all
    parts."""
    kinds = _kinds(chart)
    most = max((1, *chart.totals))
    step = WIDTH / max(len(chart.times), 1)
    bars = []
    for column, time in enumerate(chart.times):
        top = HEIGHT
        for part, counts in chart.counts.items():
            if counts[column]:
                height = round(counts[column] / most * HEIGHT, 1)
                top -= height
                left = round(column * step + step * 0.1)
                link = links(time, part) if links else ""
                width = round(step * 0.8)
                bars.append(Bar(left, round(top, 1), width, height, kinds[part], time, part, counts[column], link))
    return Drawn(chart, tuple(bars), kinds, most, links)


def spark(counts: Sequence[int], times: Sequence[str], links: Links | None = None) -> Drawn:
    """Returns the bars of one row of counts."""
    return drawn(Chart(tuple(times), {"": tuple(counts)}), links)


def _kinds(chart: Chart) -> dict[str, str]:
    """Returns the color class of each part. A name keeps its color in all ranges of time, unless another name of the
    chart uses it."""
    parts = chart.counts.keys() - {OTHERS, UNKNOWN}
    if parts <= _OWNERS.keys():
        return {part: _OWNERS[part] for part in parts} | {OTHERS: "others", UNKNOWN: "unknown"}
    kinds: dict[str, str] = {}
    free = [f"c{at}" for at in range(_COLOURS)]
    for part in sorted(parts):
        own = f"c{crc32(part.encode()) % _COLOURS}"
        kinds[part] = own if own in free else next(iter(free), own)
        free = [colour for colour in free if colour != kinds[part]]
    return kinds | {OTHERS: "others", UNKNOWN: "unknown"}
