"""Draws who waits for whom in a hang: boxes with states of ranks, and lines between them."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.evidence import RankState
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import Verdict

_HIGH, _APART = 84, 12  # pixels of a box, and between two
_MAX_LENGTH = 30  # characters of ranks in a box
_MAX_LINES = 60


@dataclass(frozen=True, slots=True)
class Box:
    """A state and its position `y` in pixels. `label` is the shortened list of its ranks."""

    state: RankState
    y: int
    label: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A line from waiting ranks to the ranks that they wait for: the heights of both ends in pixels, and whether each
    end is at the boxes on the right. `stuck`: the waiting ranks are suspects themselves."""

    y1: int
    y2: int
    from_right: bool
    to_right: bool
    stuck: bool


@dataclass(frozen=True, slots=True)
class WaitDiagram:
    """Waiting ranks on the left, and the ranks that they wait for on the right."""

    left: tuple[Box, ...]
    right: tuple[Box, ...]
    lines: tuple[Wait, ...]
    height: int
    box_height: int = _HIGH


def wait_diagram(verdict: Verdict) -> WaitDiagram | None:
    """Returns the picture, or None if the verdict has no states of ranks, as older ones do not."""
    states = verdict.run.waits
    if not states:
        return None
    right = _boxes([state for state in states if _stands_right(state)])
    left = _boxes([state for state in states if not _stands_right(state)])
    high = max(len(left), len(right)) * (_HIGH + _APART) - _APART
    return WaitDiagram(left, right, tuple(_lines(left, right)), high)


def _stands_right(state: RankState) -> bool:
    return state.suspect or state.kind == "lost"


def _boxes(states: list[RankState]) -> tuple[Box, ...]:
    return tuple(Box(state, at * (_HIGH + _APART), short(state.ranks)) for at, state in enumerate(states))


def short(ranks: RankSet) -> str:
    """Returns the ranks, shortened after a range if there are many."""
    text = str(ranks).replace(",", ", ")
    return text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH].rsplit(",", 1)[0] + ", …"


def _lines(left: tuple[Box, ...], right: tuple[Box, ...]) -> list[Wait]:
    boxes = [*((box, False) for box in left), *((box, True) for box in right)]
    home = {rank: at for at, (box, _) in enumerate(boxes) for rank in box.state.ranks}
    found = []
    for at, (box, from_right) in enumerate(boxes):
        for to in sorted({home[rank] for rank in box.state.waits_for if rank in home} - {at}):
            target, to_right = boxes[to]
            found.append(Wait(_middle(box), _middle(target), from_right, to_right, box.state.suspect))
    return found[:_MAX_LINES]


def _middle(box: Box) -> int:
    return box.y + _HIGH // 2
