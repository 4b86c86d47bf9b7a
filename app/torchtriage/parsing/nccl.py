"""Reads NCCL's own lines: its warnings, their hosts, and the rank of the writer if a communicator was printed."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import NOTHING, Extractor, FeedResult

# gpu-3:812:1200 [2] init.cc:340 NCCL WARN … · since NCCL 2.24 with its time before it
_WARNED = lazy_regex(r"^(?:\[[\d :.,T+-]{8,40}\] )?([\w.-]+):([\dX]+):[\dX]+ \[\d+\] .{0,200}?NCCL WARN ")
# gpu-3:812:1200 [2] NCCL INFO ncclCommInitRank comm 0x55d9607ee240 rank 10 nranks 16 cudaDev 2 … - Init COMPLETE
_JOINED = lazy_regex(r"([\w.-]+):(\d+):\d+ \[\d+\] NCCL INFO .{0,60}\bcomm 0x\w+ rank (\d{1,6}) n[rR]anks (\d{1,6})\b")


def warning_of(text: str) -> str | None:
    """Returns the text of an NCCL warning without the prefix that NCCL prints, or None if the line is not a warning."""
    warned = _WARNED.match(text)
    return text[warned.end() :].strip() or None if warned else None


class Nccl(Extractor):
    """Reports one event for each warning. Remembers the rank of each process in the communicators of each size."""

    name: ClassVar = "nccl"
    words: ClassVar = ("NCCL WARN", " nranks ", " nRanks ")
    sources: ClassVar = frozenset({EventSource.COLLECTIVE})
    anchors: ClassVar = (r"NCCL WARN",)

    def __init__(self) -> None:
        self._members: dict[int, dict[tuple[str, str], int]] = {}

    def feed(self, line: Line, above: str = "") -> FeedResult:
        text = line.text
        if "NCCL WARN" in text:
            warned = _WARNED.match(text)
            if warned is None:
                return NOTHING
            return FeedResult(
                (replace(Event.at(line, text, EventSource.COLLECTIVE), host=line.host or warned[1]),), True
            )
        if " n" in text and (joined := _JOINED.search(text)):
            self._members.setdefault(int(joined[4]), {}).setdefault((joined[1], joined[2]), int(joined[3]))
        return NOTHING

    def rank_of(self, text: str, world_size: int | None) -> int | None:
        """Returns the rank of the process that wrote a warning, taken from the communicator of all ranks. Returns None
        if the log does not show this communicator, or if it shows smaller ones too but not how many ranks there are."""
        size = world_size if world_size is not None or len(self._members) != 1 else next(iter(self._members))
        members = self._members.get(size) if size is not None else None
        warned = _WARNED.match(text) if members else None
        if members is None or warned is None or len(members) > (size or 0):
            return None  # Several communicators of the same size are groups of only some ranks.
        return members.get((warned[1], warned[2]))
