"""Reads lines of NCCL, Gloo, watchdogs and barriers: which rank waited in which collective, and which ranks are
missing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import NOTHING, Extractor, FeedResult, SharedState

# [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=8, NumelOut=8, …
_WATCHDOG = lazy_regex(
    r"\[?[Rr]ank (\d{1,6})\]?\]?:? ?Watchdog caught collective operation timeout:? ?"
    r"(?:WorkNCCL\((?:SeqNum=(\d{1,19}), )?(?:OpType=(\w++)(?!$)(?:, NumelIn=(\d{1,19}))?)?)?"
)  # the end of a name at the end of a line may be cut off
# [PG ID 1 PG GUID 7(tp) Rank 0] … detected by watchdog at work: 2847 · [PG 1 Rank 0] Timeout at NCCL work: 2847, …
_AT_WORK = lazy_regex(
    r"\[PG (?:ID )?(\w+)(?: PG GUID (\w+))?[^\]\n]{0,120}?Rank (\d{1,6})\].{0,120}?"
    r"(?:detected by watchdog at work(?: sequence id)?|Timeout at NCCL work): (\d{1,19})"
)
# [Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms
_MONITORED = lazy_regex(r"(?:\[Rank (\d{1,6})\]: )?Ranks? ([\d, ]+) failed to pass monitoredBarrier")
# Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.
_FAULTY = lazy_regex(r"Rank (\d{1,6}) successfully reached monitoredBarrier, but .{0,80}?(?:from|to) rank (\d{1,6})\b")
# … in store based barrier … rank: 0, key: store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)
_STORE_BARRIER = lazy_regex(
    r"store based barrier .{0,60}?rank: (\d{1,6}), .{0,80}?\(world_size=(\d{1,6}), worker_count=(\d{1,6}),"
)
# Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[10], …)
_FINGERPRINT = lazy_regex(
    r"Rank (\d{1,6}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((?:SequenceNumber=(\d{1,19}),? ?)?"
    r"OpType=(\w+)(?:, TensorShape=(\[[\d, ]*\]))?"
)
# The desync report: `ranks [3] are the lagging ranks`, `[3] finished collective #77, but didn't join collective #78`,
# `[0,1] started ALLREDUCE`; the flight recorder's: `missing ranks: {3}`.
_LAGGING = lazy_regex(
    r"ranks \[([\d, ]+)\] are the lagging ranks|\[([\d, ]+)\] finished collective #\d+, but didn't join|missing ranks: \{([\d, ]+)\}"
)
_STARTED = lazy_regex(r"^\s*\[([\d, ]+)\] started (\w+)")


class Wait(NamedTuple):
    """A rank that timed out waiting: the sequence number, operation and size of the collective, as far as the line
    gives them."""

    rank: int
    sequence: int | None
    operation: str | None
    size: str | None
    line: Line


class Suspects(NamedTuple):
    """The ranks that the waiting ranks point to.

    `why` is `named`, `absent`, `torn` (these ranks called something else than most others) or `behind` (with both
    sequence numbers).
    """

    ranks: frozenset[int]
    why: str
    sequence: int | None = None
    others: int | None = None


class Collectives(Extractor):
    """Reports one event for each watchdog timeout, and one at the end if ranks called different collectives. Remembers
    which rank waited in which collective, and which ranks are missing."""

    name: ClassVar = "collectives"
    words: ClassVar = (
        "Watchdog",
        "at NCCL work",
        "watchdog",
        "arrier",
        "CollectiveFingerPrint",
        "ranks",
        "collective #",
        "] started ",
    )
    sources: ClassVar = frozenset({EventSource.COLLECTIVE, EventSource.COLLECTIVE_MISMATCH})
    anchors: ClassVar = (r"Watchdog caught",)

    def __init__(self, shared: SharedState | None = None) -> None:
        shared = shared or SharedState()
        self._waits: dict[int, Wait] = {}  # each rank's first; later ones never began
        self.missing, self.timed_out = (
            shared.missing,
            shared.timed_out,
        )  # ranks that a watchdog reported as timed out
        self._faulty: set[int] = set()  # ranks that others could not reach at a barrier
        self._groups: set[str] = set()
        self._barrier: set[int] = set()
        self._barrier_sizes: tuple[int, int] = (0, 0)  # world size, and ranks at the barrier

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        return cls(shared)

    def feed(self, line: Line, above: str = "") -> FeedResult:
        text = line.text
        for word in self.words:
            if word in text:
                break
        else:
            return NOTHING
        if "Watchdog caught" in text and (found := _WATCHDOG.search(text)):
            rank, sequence = int(found[1]), int(found[2]) if found[2] else None
            self._wait(Wait(rank, sequence, found[3], found[4], line))
            self.timed_out.add(rank)
            event = Event.at(line, text[found.start() :], EventSource.COLLECTIVE)
            return FeedResult((replace(event, rank=rank),), True)
        self._note(line, text)
        return NOTHING

    def close(self) -> tuple[Event, ...]:
        """Returns an event if ranks waited in different collectives with the same sequence number."""
        sides = self.sides()
        if len(sides) > 1:
            torn = {rank for _, ranks in sides for rank in ranks}
            waits = sorted(
                (wait for wait in self._waits.values() if wait.rank in torn), key=lambda wait: wait.line.position
            )
            shown = [
                next(wait for wait in waits if wait.rank in ranks) for _, ranks in sides
            ]  # one line of each side before all others
            lines = tuple(dict.fromkeys(wait.line for wait in [waits[0], *shown, *waits]))
            event = Event.at(
                lines[0],
                f"ranks disagree on a collective: {', '.join(what for what, _ in sides)}",
                EventSource.COLLECTIVE_MISMATCH,
            )
            return (replace(event, lines=lines, rank=None, local_rank=None),)
        return ()

    def wait_of(self, rank: int | None) -> Line | None:
        """Returns the line that shows where a rank timed out, or None if no line shows it."""
        wait = self._waits.get(rank) if rank is not None else None
        return wait.line if wait is not None else None

    def waits(self) -> tuple[Wait, ...]:
        """Returns the timeout of each rank, in the order of ranks."""
        return tuple(wait for _, wait in sorted(self._waits.items()))

    def sides(self) -> list[tuple[str, frozenset[int]]]:
        """Returns the different calls that ranks made under the same sequence number, each with its ranks, the most
        common call first. Returns nothing if the calls agree or no line shows them."""
        if len(self._groups) > 1:
            return []  # Each process group has its own count.
        by_number: dict[int | None, dict[str, set[int]]] = {}
        for wait in self._waits.values():
            if wait.operation is not None:
                what = wait.operation + (f" of {wait.size}" if wait.size else "")
                by_number.setdefault(wait.sequence, {}).setdefault(what, set()).add(wait.rank)
        torn = [calls for calls in by_number.values() if len(calls) > 1]
        # In a gather, a scatter and the uneven collectives, the sizes may differ between ranks.
        torn = [calls for calls in torn if len({what.split()[0] for what in calls}) > 1 or _have_equal_sizes(calls)]
        return sorted(
            ((what, frozenset(ranks)) for calls in torn[:1] for what, ranks in calls.items()), key=_largest_first
        )

    def suspects(self, world_size: int | None) -> Suspects | None:
        """Returns the ranks that the waiting ranks point to, because a barrier or report names them, or because they
        are absent or behind. Returns None if there are none."""
        if named := self.missing or self._faulty:
            return Suspects(frozenset(named), "named")
        size, came = self._barrier_sizes
        if self._barrier and len(self._barrier) == came < size:
            return Suspects(frozenset(range(size)) - self._barrier, "absent")
        ranks = set(self._waits)
        if len(ranks) < 2:
            return None
        return self._mismatched() or self._lagging(len(ranks)) or self._silent_ranks(ranks, world_size)

    def _mismatched(self) -> Suspects | None:
        """Returns the few ranks that called something else than most others, or None."""
        sides = self.sides()
        few = sides[-1][1] if sides else frozenset()
        return Suspects(few, "torn") if few and len(few) < len(sides[0][1]) else None

    def _lagging(self, count: int) -> Suspects | None:
        """Returns the few ranks that stopped at a lower sequence number than the others, or None."""
        numbers = {wait.rank: wait.sequence for wait in self._waits.values() if wait.sequence is not None}
        if len(set(numbers.values())) < 2 or len(self._groups) > 1:
            return None
        lowest = min(numbers.values())
        behind = frozenset(rank for rank, number in numbers.items() if number == lowest)
        return Suspects(behind, "behind", lowest, max(numbers.values())) if len(behind) * 2 <= count else None

    @staticmethod
    def _silent_ranks(ranks: set[int], world_size: int | None) -> Suspects | None:
        """Returns the ranks for which no watchdog reported a timeout, or None."""
        absent = frozenset(range(world_size or max(ranks) + 1)) - ranks
        # If the number of ranks is unknown, a paste may have been cut. Then only a few missing ranks among many mean
        # something.
        told_enough = len(absent) <= len(ranks) if world_size else len(absent) * 3 <= len(ranks)
        return Suspects(absent, "absent") if absent and told_enough else None

    def _note(self, line: Line, text: str) -> None:
        if at := _AT_WORK.search(text):
            self._groups.add(at[2] or at[1])  # Each process has its own number; a name is shared.
            if int(at[3]) not in self._waits:
                self._wait(Wait(int(at[3]), int(at[4]), None, None, line))
        self._note_missing(text)
        if faulty := _FAULTY.search(text):
            self.timed_out.add(int(faulty[1]))
            self._faulty.add(int(faulty[2]))
        if barrier := _STORE_BARRIER.search(text):
            self._barrier.add(int(barrier[1]))
            self._barrier_sizes = int(barrier[2]), int(barrier[3])
        for print_ in _FINGERPRINT.finditer(text):
            sequence = int(print_[2]) if print_[2] else None
            self._wait(Wait(int(print_[1]), sequence, print_[3], print_[4], line))
        if started := _STARTED.match(text):
            for rank in _ranks(started[1]):
                self._wait(Wait(rank, None, started[2], None, line))

    def _note_missing(self, text: str) -> None:
        if monitored := _MONITORED.search(text):
            self.missing.update(_ranks(monitored[2]))
            if monitored[1]:
                self.timed_out.add(int(monitored[1]))
        elif lagging := _LAGGING.search(text):
            self.missing.update(_ranks(next(filter(None, lagging.groups()))))

    def _wait(self, wait: Wait) -> None:
        known = self._waits.get(wait.rank)
        if known is None or (wait.sequence or 0) < (known.sequence or 0):
            self._waits[wait.rank] = wait


def _have_equal_sizes(calls: dict[str, set[int]]) -> bool:
    return all(
        re.match(r"_?(?:ALLREDUCE|BROADCAST|REDUCE(?!_SCATTER)|\w+(?<!ALLTOALL)_BASE\b)", what) for what in calls
    )


def _largest_first(side: tuple[str, frozenset[int]]) -> tuple[int, int]:
    return -len(side[1]), min(side[1])


def _ranks(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\b\d{1,6}\b", text)}
