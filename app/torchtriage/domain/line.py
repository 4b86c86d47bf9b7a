"""A line of a training log, with its prefix taken off."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """One line of one file of a run.

    `number` counts from 1 in `file`; `raw` is the line as it stands, decoded; `text` is what its writer printed,
    without prefixes, colours and carriage returns. `order` is its place in the whole run (files in name order).
    What the line does not tell is None. A tuple, as they are many: a frozen dataclass takes five times as long to make.
    """

    number: int
    raw: str
    text: str
    order: int
    file: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    stream: str = ""
    attempt: int = 0
    pod: str | None = None
    node: int | None = None  # the rank of its host among the run's hosts
