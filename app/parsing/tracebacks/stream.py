"""What was read so far of the traceback that one writer is printing."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.domain.event import Frame, Raised
from app.domain.line import Line
from app.parsing.tracebacks.forms import ABOVE_SUMMARY


@dataclass(slots=True)
class Stream:
    """One writer's traceback as it comes in. `heads` counts tracebacks that were begun and not ended."""

    frames: list[Frame] = field(default_factory=list)
    chain: list[Raised] = field(default_factory=list)
    reading: str = "nothing"  # nothing, frames, message
    heads: int = 0
    indent: int = 0
    type: str = ""
    message: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    place: list[Line] = field(default_factory=list)  # the innermost frame's own lines
    half: str = ""  # a frame's line that a terminal wrapped inside of the path
    blank: bool = False
    linked: bool = False
    implicit: bool = False
    logged: bool = False
    teller: int | None = None  # the rank that the logger's line above names
    inner: bool = False
    ignored: int | None = None  # the order of the line that says so
    head: Line | None = None
    cut: bool = False
    cut_type: str = ""
    spawned: int | None = None
    missed: int = 0
    summed: bool = False  # between an exception's name and its summary

    def summary(self, line: Line, text: str) -> bool:
        """-> whether a line belongs to what stands between Paddle's exception and its message, or is that message."""
        if self.reading != "message" or any(self.message) or self.frames == []:
            return False
        if ABOVE_SUMMARY.match(text):
            self.summed = True
            return True
        if not self.summed or not text.strip():
            return self.summed
        self.message, self.lines, self.summed = [text], [line], False
        return True

    @property
    def told(self) -> bool:
        """-> whether an exception was read; a parent's is none of the spawned process that it quotes."""
        return bool(self.chain) and self.spawned is None

    def forget(self) -> None:
        """Makes the stream as it was before anything was read."""
        Stream.__init__(self)
