"""Reads Horovod's own lines: which ranks the coordinator still waits for, and that a rank lost the others."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar, Self

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import Extractor, FeedResult, SharedState, taken

# One or more tensors were submitted … by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.
STALLED = "waiting for remainder of ranks for more than"
# Below it `Missing ranks:` and `1: [allreduce.conv.weight, …]`; before 0.20 `allreduce.conv.weight [missing ranks: 1, 3]`.
_OF_TENSOR = lazy_regex(r"\[missing ranks: ?([\d, ]+)\]")
_LISTED = lazy_regex(r"^(\d{1,6}): \[")
_SHUT_DOWN = "Horovod has been shut down. This was caused by an exception on one of the ranks"  # raised by another rank


class Horovod(Extractor):
    """Reports one event for each stall. Ranks that others wait for are shared as `missing`, and those that waited as
    `timed_out`."""

    name: ClassVar = "horovod"
    words: ClassVar = (STALLED, "issing ranks:", _SHUT_DOWN)
    sources: ClassVar = frozenset({EventSource.COLLECTIVE})

    def __init__(self, shared: SharedState | None = None) -> None:
        self._shared = shared or SharedState()
        self._finished: list[Event] = []
        self._listing: set[str] = set()  # streams that list the missing ranks, one on each line
        self._stalled: Event | None = None

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        return cls(shared)

    def feed(self, line: Line, above: str = "") -> FeedResult:
        text = line.text
        if line.stream in self._listing and (listed := _LISTED.match(text)):
            self._add_missing(line, listed[1])
            return taken(False, self._finished)
        self._listing.discard(line.stream)
        if STALLED in text:  # The coordinator's line does not show its own rank.
            self._stalled = replace(
                Event.at(line, text, EventSource.COLLECTIVE), rank=None, local_rank=None, fatal=False
            )
            return FeedResult((self._stalled,), True)
        if text.startswith("Missing ranks:"):
            self._listing.add(line.stream)
        elif lacking := _OF_TENSOR.search(text):
            self._add_missing(line, lacking[1])
        elif _SHUT_DOWN in text and line.rank is not None:
            self._shared.timed_out.add(line.rank)
        return taken(False, self._finished)

    def continues(self, stream: str) -> bool:
        """Returns whether the next line of a stream may name a missing rank."""
        return stream in self._listing

    def _add_missing(self, line: Line, ranks: str) -> None:
        """Adds ranks that a tensor waits for. The stall continues at least to this line."""
        self._shared.missing.update(int(rank) for rank in re.findall(r"\d{1,6}", ranks))
        if self._stalled is not None:
            self._finished.append(replace(self._stalled, lines=(line,)))
