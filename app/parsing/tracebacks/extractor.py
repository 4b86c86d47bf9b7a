"""Reads tracebacks line by line, one writer's stream at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from app.domain.event import Event, Frame, Raised, Where
from app.domain.line import Line
from app.parsing.tracebacks import forms

LONGEST_MESSAGE = 40  # lines
IGNORED_FOR = 3  # lines in which the traceback that Python ignored must begin
LINES_KEPT = 6  # lines of a message kept as evidence
MOST_FRAMES = 60  # frames kept of one traceback, the innermost


@dataclass(slots=True)
class _Stream:
    """One writer's traceback as it comes in. `heads` counts tracebacks that were begun and not ended."""

    frames: list[Frame] = field(default_factory=list)
    chain: list[Raised] = field(default_factory=list)
    reading: str = "nothing"  # nothing, frames, message
    heads: int = 0
    indent: int = 0
    type: str = ""
    message: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    blank: bool = False
    linked: bool = False
    implicit: bool = False
    logged: bool = False
    inner: bool = False
    ignored: int | None = None  # the order of the line that says so
    head: Line | None = None
    cut: bool = False
    cut_type: str = ""
    spawned: int | None = None
    missed: int = 0

    def forget(self) -> None:
        """Makes the stream as it was before anything was read."""
        fresh = _Stream()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))


class Tracebacks:
    """Feed it every kept line in order; `feed` says whether the line belongs to a traceback."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._last: dict[str, int] = {}
        self._above = ""
        self.events: list[Event] = []

    def feed(self, line: Line) -> bool:
        stream = self._streams.get(line.stream)
        if stream is None:
            stream = self._streams[line.stream] = _Stream()
        text, above, self._above = line.text, self._above, line.text
        if stream.reading == "nothing" and not forms.may_begin(text):
            return bool(forms.IGNORED.match(text) and self._ignore(stream, line))
        if stream.ignored is not None and stream.reading == "nothing" and line.order > stream.ignored + IGNORED_FOR:
            stream.ignored = None
        if stream.reading == "nothing" and not stream.chain:
            stream.logged = bool(forms.LOGGED.search(above)) and "torch" not in above
        if line.stream in self._last and line.order > self._last[line.stream] + 400:
            self._end(stream)  # A gap: the rest of that traceback is not there.
        self._last[line.stream] = line.order
        return self._step(stream, line, forms.GROUP.sub("", text, count=1) if text.lstrip()[:1] in ("|", "+") else text)

    def close(self) -> None:
        """Ends every traceback that is still open; where the log was cut before the last line, its frames remain."""
        for stream in self._streams.values():
            if stream.reading == "frames" and stream.head is not None and not stream.chain:
                raised = forms.RAISE.match(stream.frames[-1].code) if stream.frames else None
                stream.type, stream.message = (raised[1], [raised[2] or ""]) if raised else (stream.cut_type, [""])
                stream.lines, stream.cut = [stream.head], raised is None
            self._end(stream)

    def _ignore(self, stream: _Stream, line: Line) -> bool:
        stream.ignored = line.order
        return True

    def _step(self, stream: _Stream, line: Line, text: str) -> bool:
        if forms.HEAD.search(text):
            stream.head, named = line, forms.NOTEBOOK.match(text)
            stream.cut_type = named[1] if named else "exception"
            return self._head(stream, text)
        frame = forms.frame_of(text)
        if frame:
            return self._frame(stream, text, frame)
        if stream.reading == "frames":
            return self._in_frames(stream, line, text)
        if stream.reading == "message":
            return self._in_message(stream, line, text)
        return self._bare(stream, line, text)

    def _head(self, stream: _Stream, text: str) -> bool:
        if stream.reading == "message":
            if "Original Traceback" in text or stream.spawned is not None:
                stream.inner = True
            self._keep(stream)
            if not (stream.linked or stream.inner):
                self._end(stream)
        stream.heads = min(stream.heads + 1, 64)
        stream.reading, stream.frames, stream.linked, stream.missed = "frames", [], False, 0
        return True

    def _frame(self, stream: _Stream, text: str, frame: Frame) -> bool:
        if stream.reading == "message":
            self._keep(stream)
            if stream.heads < 1 and not stream.linked:
                self._end(stream)
        stream.reading, stream.missed = "frames", 0
        stream.heads = max(stream.heads, 1)
        stream.indent = len(text) - len(text.lstrip())
        stream.frames = [*stream.frames[-MOST_FRAMES:], frame]
        return True

    def _in_frames(self, stream: _Stream, line: Line, text: str) -> bool:
        bare = text.strip("│╭╰─╮╯❱ ")
        if not bare or text[:1] in "│╭╰":
            return True
        indent = len(text) - len(text.lstrip())
        if stream.frames and indent > stream.indent and not forms.BARE.match(bare):
            last = stream.frames[-1]
            if not last.code and "^" not in text:
                stream.frames[-1] = Frame(last.file, last.line, last.function, text.strip(), last.user_code)
            return True
        raised = forms.raised_of(forms.MARKS.sub("", text.strip()))
        if raised is None or forms.LOG_LINE.match(text):
            stream.missed += 1
            if stream.missed > 40:
                self._end(stream)
            return False
        stream.type, stream.message, stream.lines = raised[0], [raised[1]], [line]
        stream.reading, stream.blank = "message", False
        stream.heads = max(stream.heads - 1, 0)
        return True

    def _in_message(self, stream: _Stream, line: Line, text: str) -> bool:
        if forms.CONNECTOR.search(text):
            stream.linked = True
            stream.implicit = text.lstrip().startswith("During")
            return True
        if not text.strip():
            stream.blank = True
            return True
        if spawned := forms.SPAWNED.search(text):
            stream.spawned = int(spawned[1])
            return True
        unfinished = not any(part.strip() for part in stream.message)
        ended = (
            (stream.blank and not unfinished) or forms.LOG_LINE.match(text) or len(stream.message) >= LONGEST_MESSAGE
        )
        if ended or not self._continues(stream, text):
            self._keep(stream)
            if stream.heads and not stream.linked and text.startswith("    "):
                stream.reading = "frames"  # Another rank's traceback was begun above and goes on here.
                return True
            self._end(stream)
            return self._step(stream, line, text) if forms.may_begin(text) else False
        stream.message.append(text)
        stream.lines.append(line)
        return True

    def _continues(self, stream: _Stream, text: str) -> bool:
        if forms.BARE.match(text):
            return False
        if text[0] != " ":
            return True
        above = stream.message[-1]
        return not above.strip() or above.rstrip().endswith((":", ",")) or above[:1] in " \t" or len(stream.message) > 1

    def _bare(self, stream: _Stream, line: Line, text: str) -> bool:
        text = forms.MARKS.sub("", text)
        found = forms.BARE.match(text) or forms.TWICE.match(text)
        if not found or found[1].endswith("Warning"):
            return False
        raised = forms.raised_of(text)
        if raised is None:
            return False
        stream.type, stream.message, stream.lines = raised[0], [raised[1]], [line]
        stream.reading, stream.blank = "message", False
        return True

    def _keep(self, stream: _Stream) -> None:
        """Adds the exception that was read to the chain; one that caused another stands before it."""
        if not stream.lines:
            return
        message = "\n".join(stream.message).strip()
        implicit = stream.implicit and bool(stream.chain)
        raised = Raised(stream.type, message, tuple(stream.frames), tuple(stream.lines[:LINES_KEPT]), implicit)
        place = len(stream.chain) - 1 if stream.inner and stream.chain and not forms.HEAD.search(message) else None
        if place is not None and not stream.linked:
            stream.chain.insert(max(place, 0), raised)
        else:
            stream.chain.append(raised)
        stream.lines, stream.message, stream.frames, stream.reading = [], [], [], "nothing"

    def _end(self, stream: _Stream) -> None:
        self._keep(stream)
        chain, ignored, spawned, logged = tuple(stream.chain), stream.ignored, stream.spawned, stream.logged
        heads, cut = stream.heads, stream.cut
        stream.forget()
        stream.heads = heads if heads and chain else 0
        if chain and ignored is None:
            event = _event(chain, spawned, logged)
            self.events.append(replace(event, source="cut traceback") if cut else event)


def _event(chain: tuple[Raised, ...], spawned: int | None, logged: bool) -> Event:
    last = chain[-1]
    line = last.lines[0]
    lines = tuple(raised.lines[0] for raised in reversed(chain))
    launcher = any(forms.LAUNCHER.search(frame.file) for frame in last.frames)
    return Event(
        where=Where.EXCEPTION,
        text=last.text,
        lines=lines,
        source="launcher" if launcher else "traceback" if any(raised.frames for raised in chain) else "exception line",
        rank=line.rank if line.rank is not None else spawned,
        local_rank=line.local_rank if line.local_rank is not None else spawned,
        host=line.host,
        attempt=line.attempt,
        time=line.time,
        fatal=not logged,
        chain=chain,
    )
