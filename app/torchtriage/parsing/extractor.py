"""What every extractor offers: lines of one form of failure text in, events out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, Self

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.parsing.repeated_frames import RepeatedFrames


class Taken(NamedTuple):
    """What an extractor made of a line: the events that the line completes, and whether the line is part of its text,
    so that nothing else in it counts."""

    events: tuple[Event, ...]
    claimed: bool


NOTHING = Taken((), False)
CLAIMED = Taken((), True)


@dataclass(slots=True)
class SharedState:
    """What the extractors of one run tell one another, and what the vocabulary tells them of launchers: the files of
    their code, the commands that start them."""

    repeated_frames: RepeatedFrames = field(default_factory=RepeatedFrames)
    launcher_frames: re.Pattern[str] | None = None
    launch_commands: tuple[str, ...] = ()
    missing: set[int] = field(default_factory=set)  # ranks that others named as missing from a collective
    timed_out: set[int] = field(default_factory=set)  # ranks that timed out waiting


class Extractor(Protocol):
    """Reads one form of failure text. A subclass declares where its text can begin, and `feed` reads it.

    `words`: literals of which a line that begins such text holds one; the prefilter looks for them. `anchors`: regexes
    that keep a line in the middle of a big log, with some lines around it; `wide_anchors` keep many lines below it.
    `sources`: what its events may have as their source. `skips_claimed`: a line that an extractor before it claims is
    none of its.
    """

    name: ClassVar[str]
    words: ClassVar[tuple[str, ...]]
    sources: ClassVar[frozenset[EventSource]]
    anchors: ClassVar[tuple[str, ...]] = ()
    wide_anchors: ClassVar[tuple[str, ...]] = ()
    skips_claimed: ClassVar[bool] = False

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        """-> a fresh extractor for one run."""
        return cls()

    def feed(self, line: Line, above: str = "") -> Taken:
        """Reads a line that holds one of the words, or with which an open event continues; `above` is the text of the
        kept line above it."""
        ...

    def continues(self, stream: str) -> bool:
        """-> whether the next line of a stream belongs to what is open there, whatever words it holds."""
        return False

    def close(self) -> Iterable[Event]:
        """-> the events that the end of the log completes."""
        return ()

    def expect(self, lines: Sequence[Line]) -> None:
        """Takes note of the next kept lines of a file, before any of them is fed."""
        return

    def read_ahead(self, stream: str, lines: Iterable[Line]) -> int:
        """-> how many lines, from the first on, it read at once as part of what is open in their stream."""
        return 0


def taken(claimed: bool, events: list[Event]) -> Taken:
    """-> what `feed` returns; the list of finished events is emptied."""
    if not events:
        return CLAIMED if claimed else NOTHING
    finished = Taken(tuple(events), claimed)
    events.clear()
    return finished
