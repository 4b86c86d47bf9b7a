"""The base class of extractors. An extractor reads lines with one form of failure text and returns events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, Self

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.parsing.repeated_frames import RepeatedFrames


class FeedResult(NamedTuple):
    """The result of reading a line: the events that the line completes, and whether the line is part of the extractor's
    text. If it is, other patterns in it do not count."""

    events: tuple[Event, ...]
    claimed: bool


NOTHING = FeedResult((), False)
CLAIMED = FeedResult((), True)


@dataclass(slots=True)
class SharedState:
    """What the extractors of one run share, and what they know about launchers from the vocabulary: the files of their
    code and the commands that start them."""

    repeated_frames: RepeatedFrames = field(default_factory=RepeatedFrames)
    launcher_frames: re.Pattern[str] | None = None
    launch_commands: tuple[str, ...] = ()
    missing: set[int] = field(default_factory=set)  # ranks that others reported as missing from a collective
    timed_out: set[int] = field(default_factory=set)  # ranks that timed out waiting


class Extractor(Protocol):
    """Reads one form of failure text. A subclass declares how its text can begin, and implements `feed`.

    `words`: every line that begins such text contains one of these strings; the prefilter searches for them. `anchors`:
    regexes; a matching line in the middle of a large log is kept with some lines around it. `wide_anchors` keep many
    lines below it. `sources`: the possible sources of its events. `skips_claimed`: whether the extractor skips a line
    that an earlier extractor has claimed.
    """

    name: ClassVar[str]
    words: ClassVar[tuple[str, ...]]
    sources: ClassVar[frozenset[EventSource]]
    anchors: ClassVar[tuple[str, ...]] = ()
    wide_anchors: ClassVar[tuple[str, ...]] = ()
    skips_claimed: ClassVar[bool] = False

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        """Returns a new extractor for one run."""
        return cls()

    def feed(self, line: Line, above: str = "") -> FeedResult:
        """Reads a line that contains one of the words or continues an unfinished event. `above` is the text of the kept
        line above it."""
        ...

    def continues(self, stream: str) -> bool:
        """Returns whether the next line of a stream belongs to an unfinished event, whatever words it contains."""
        return False

    def close(self) -> Iterable[Event]:
        """Returns the events that are complete because the log has ended."""
        return ()

    def expect(self, lines: Sequence[Line]) -> None:
        """Takes the next kept lines of a file, before any of them is fed."""
        return

    def read_ahead(self, stream: str, lines: Iterable[Line]) -> int:
        """Reads several lines at once that continue the unfinished event of a stream. Returns how many of the first
        lines it read."""
        return 0


def taken(claimed: bool, events: list[Event]) -> FeedResult:
    """Returns the result of `feed`, and empties the list of finished events."""
    if not events:
        return CLAIMED if claimed else NOTHING
    finished = FeedResult(tuple(events), claimed)
    events.clear()
    return finished
