"""NCCL, Gloo and watchdog lines: which rank waited in which collective."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from app.domain.event import Event
from app.domain.line import Line

# [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, …) ran for 600029 milliseconds
_WATCHDOG = re.compile(
    r"\[?[Rr]ank (\d+)\]?\]?:? ?Watchdog caught collective operation timeout:? ?"
    r"(?:WorkNCCL\((?:SeqNum=(\d+), )?OpType=(\w+))?"
)
# [Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms
_MONITORED = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier")
_NCCL_WARN = re.compile(r"^([\w.-]+):(\d+):\d+ \[\d+\] .{0,200}?NCCL WARN ")


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank that waited in vain: the collective's sequence number and its operation."""

    rank: int
    sequence: int | None
    operation: str | None
    line: Line


class Collectives:
    """Feed it every kept line; it keeps who waited, and who was named as missing."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.waits: list[Wait] = []
        self.missing: set[int] = set()

    def feed(self, line: Line) -> bool:
        text = line.text
        if "Watchdog caught" in text and (found := _WATCHDOG.search(text)):
            rank, sequence = int(found[1]), int(found[2]) if found[2] else None
            self.waits.append(Wait(rank, sequence, found[3], line))
            event = Event.at(line, text[found.start() :], "collective")
            self.events.append(replace(event, rank=rank))
            return True
        if "NCCL WARN" in text and (warned := _NCCL_WARN.match(text)):
            self.events.append(replace(Event.at(line, text, "collective"), host=line.host or warned[1]))
            return True
        if "monitoredBarrier" in text and (named := _MONITORED.search(text)):
            self.missing.update(int(rank) for rank in re.findall(r"\d+", named[1]))
        return False

    def close(self) -> None:
        """Nothing stays open."""


def suspects(waits: list[Wait], world_size: int | None) -> tuple[set[int], str | None]:
    """-> the ranks that a watchdog's lines point at by their absence or by the lowest sequence number, and why."""
    ranks = {wait.rank for wait in waits}
    numbers = {wait.rank: wait.sequence for wait in waits if wait.sequence is not None}
    if len(ranks) >= 2 and numbers and len(set(numbers.values())) > 1:
        lowest = min(numbers.values())
        behind = {rank for rank, number in numbers.items() if number == lowest}
        if len(behind) * 2 <= len(ranks):
            return behind, f"stopped at collective {lowest}, others at {max(numbers.values())}"
    absent = set(range(world_size or max(ranks, default=-1) + 1)) - ranks
    if len(ranks) >= 2 and 0 < len(absent) <= len(ranks):
        return absent, "never reported this collective"
    return set(), None
