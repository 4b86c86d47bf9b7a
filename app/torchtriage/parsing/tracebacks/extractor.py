"""Reads tracebacks line by line, one writer's stream at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Self

from torchtriage.domain.event import Event, EventSource, Frame, Raised, Where
from torchtriage.domain.line import Line
from torchtriage.parsing.extractor import Extractor, FeedResult, SharedState, taken
from torchtriage.parsing.repeated_frames import RepeatedFrames
from torchtriage.parsing.tracebacks import grammar
from torchtriage.parsing.tracebacks.open_traceback import OpenTraceback

MAX_MESSAGE_LINES = 40  # lines
IGNORED_FOR = 3  # lines in which the traceback that Python ignored must begin
LINES_KEPT = 6  # lines of a message kept as evidence
OUTER_FRAMES = 4  # the user's frames that are kept of those that are left out of a deep stack
MAX_FRAMES = 60  # frames kept of one traceback, the innermost
_NEAR_END = 2000  # lines; a traceback that is still open this close to the end of its file was cut off there


class Tracebacks(Extractor):
    """Reports one event for each traceback, and for each exception that is printed without one.

    `deep`: a traceback had more frames than are kept. `repeated_frames` has the frames of other runs in the same files.
    """

    name: ClassVar = "tracebacks"
    words: ClassVar = grammar.WORDS
    sources: ClassVar = frozenset(
        {EventSource.TRACEBACK, EventSource.CUT_TRACEBACK, EventSource.EXCEPTION_LINE, EventSource.LAUNCHER}
    )
    anchors: ClassVar = (
        r"(\b|\\[nrt])[A-Z]\w{2,40}(Error|Exception)\b: ",  # also after a line feed that is escaped as in JSON
        r"\bKeyboardInterrupt\b",
    )
    wide_anchors: ClassVar = (r"Traceback \((most|innermost) (recent|last)",)
    skips_claimed: ClassVar = True  # a traceback that torchelastic's report quotes belongs to the report

    def __init__(
        self, repeated_frames: RepeatedFrames | None = None, launcher_frames: re.Pattern[str] | None = None
    ) -> None:
        self._streams: dict[str, OpenTraceback] = {}
        self._code_places: dict[str, tuple[str, int]] = {}  # where each line of code was read first
        self._ends: dict[str | None, int] = {}
        self._repeated_frames = repeated_frames or RepeatedFrames()
        self._launcher_frames = launcher_frames
        self._last_head: Line | None = None  # the last line that started a traceback
        self._above = ""
        self.deep = False
        self._finished: list[Event] = []

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        return cls(shared.repeated_frames, shared.launcher_frames)

    def feed(self, line: Line, above: str = "") -> FeedResult:
        self._above = above
        return taken(self._read(line), self._finished)

    def _read(self, line: Line) -> bool:
        stream = self._streams.get(line.stream)
        if stream is None:
            stream = self._streams[line.stream] = OpenTraceback(code_places=self._code_places)
        text = line.text
        if grammar.FORWARD in text:
            stream.forwarding, stream.frames = True, []
            return False
        if stream.reading == "nothing" and not grammar.may_begin(text):
            stream.names_child(text)  # The line above it was cut off.
            if text.startswith(grammar.AT_EXIT):
                self._end(stream)
            return text.startswith(grammar.IGNORED) and self._ignore(stream, line)
        if (
            stream.ignored is not None
            and stream.reading == "nothing"
            and line.position.lines_below(stream.ignored) > IGNORED_FOR
        ):
            stream.ignored = None
        if stream.reading == "nothing" and not stream.chain:
            logged = bool(grammar.LOGGED.search(self._above))
            apart = grammar.UNCOMPILED.search(line.raw) or self._above.startswith(grammar.AT_EXIT)
            stream.logged = bool(apart) or (logged and "torch" not in self._above)
            stream.logged_rank = grammar.logged_rank(self._above) if logged else None
        if stream.has_gap(line):
            self._end(stream)
        stream.position = line.position
        barred = text.lstrip()[:1] in ("|", "+") and not (stream.reading == "message" and grammar.SHELL.match(text))
        return self._step(stream, line, grammar.GROUP.sub("", text, count=1) if barred else text)

    def read_ahead(self, stream: str, lines: Iterable[Line]) -> int:
        """Reads frames of the open traceback of the lines' stream. Returns how many of the lines it read."""
        known = self._streams.get(stream)
        if known is None or known.reading != "frames" or known.half:
            return 0
        read = known.read_frames(lines)
        known.heads = max(known.heads, 1)
        self._cut(known)
        return read

    def continues(self, stream: str) -> bool:
        return stream in self._streams and self._streams[stream].reading != "nothing"

    @property
    def has_open(self) -> bool:
        """Whether an exception was read that the next lines may continue."""
        return any(stream.chain or stream.reading == "message" for stream in self._streams.values())

    def expect(self, lines: Sequence[Line]) -> None:
        """Notes the writers of the next lines, and the number of the last line so far of the file."""
        for stream in dict.fromkeys([line.stream for line in lines]):
            if stream not in self._streams:
                self._streams[stream] = OpenTraceback(code_places=self._code_places)
        self._ends[lines[-1].file] = lines[-1].number
        self._repeated_frames.expect(lines)

    def close(self) -> tuple[Event, ...]:
        """Returns the tracebacks that are still open. If the log was cut before the exception's line, the frames
        count."""
        for stream in self._streams.values():
            head = stream.head or (stream.place[0] if len(stream.frames) > 2 and stream.missed < 3 else None)
            if head and stream.reading == "frames" and not stream.has_exception and self._at_end(head):
                code = stream.frames[-1].code if stream.frames else ""
                raised = grammar.RAISE.match(code)
                stream.type, stream.message = (raised[1], [raised[2] or ""]) if raised else (stream.cut_type, [""])
                if code.startswith("assert "):
                    stream.type = "AssertionError"  # Only a failed check stops at such a line.
                stream.lines, stream.cut = [head], stream.type == stream.cut_type
            self._end(stream)
        return taken(False, self._finished).events

    def _at_end(self, head: Line) -> bool:
        return head.number + _NEAR_END > self._ends.get(head.file, 0)

    def _ignore(self, stream: OpenTraceback, line: Line) -> bool:
        stream.ignored = line.position
        return True

    def _step(self, stream: OpenTraceback, line: Line, text: str) -> bool:
        if text.startswith(grammar.IGNORED):
            self._end(stream)
            return self._ignore(stream, line)
        if text.startswith(grammar.AT_EXIT):
            self._end(stream)
            return False
        text = stream.join_wrapped(text)
        if stream.reading == "message" and stream.summary(line, text):
            return True
        if stream.reading == "message" and stream.is_quoted_frame(text):
            return True
        if "Traceback (" in text and grammar.HEAD.search(text):
            return self._head(stream, line, text)
        if frame := stream.frame_of(text):
            stream.place = [line]
            return self._frame(stream, text, frame)
        if stream.reading == "nothing" and grammar.CONNECTOR.match(text.lstrip()):
            stream.head, stream.cut_type = line, "exception"  # The lines above were cut off.
            return True
        if stream.reading == "frames":
            return self._in_frames(stream, line, text)
        if stream.reading == "message":
            return self._in_message(stream, line, text)
        return self._bare(stream, line, text)

    def _head(self, stream: OpenTraceback, line: Line, text: str) -> bool:
        stream.names_child(text)  # It is on the same line as the traceback if a web form removed the line feeds.
        if stream.reading == "message":
            carried = grammar.WRAPPED.fullmatch("".join(stream.message).strip())
            stream.inner |= (
                "Original Traceback" in text or "(RANK " in text or stream.spawned is not None or bool(carried)
            )
            self._keep(stream)
            if not (stream.linked or stream.inner):
                self._end(stream)
        self._last_head = line
        named = grammar.NOTEBOOK.match(text)
        stream.head, stream.cut_type = line, named[1].rstrip() if named else "exception"
        if "(RANK " in text and not stream.chain:  # The exception of torch.distributed.checkpoint above was cut off.
            stream.logged_rank = grammar.logged_rank(f"{text} ")
        if stream.forwarding:
            stream.forward, stream.forwarding = tuple(stream.frames), False
        stream.heads, stream.outer = min(stream.heads + 1, 64), []
        stream.reading, stream.frames, stream.linked, stream.missed = "frames", [], False, 0
        stream.cells, stream.cell_indent = named is not None, len(text) - len(text.lstrip()) if named else 0
        return True

    def _frame(self, stream: OpenTraceback, text: str, frame: Frame) -> bool:
        headed = self._last_head
        if stream.reading == "nothing" and headed is not None and stream.place[0].position == headed.position.down(1):
            stream.logged_rank = headed.rank  # A logger's label is only on the first line.
        if stream.reading == "message":
            self._keep(stream)
            if stream.heads < 1 and not stream.linked:
                self._end(stream)
        stream.reading, stream.missed = "frames", 0
        stream.heads = max(stream.heads, 1)
        stream.indent = len(text) - len(text.lstrip())
        stream.frames.append(frame)
        self._cut(stream)
        return True

    def _cut(self, stream: OpenTraceback) -> None:
        self.deep = self.deep or len(stream.frames) > MAX_FRAMES + 1
        cut = stream.frames[: -MAX_FRAMES - 1]
        if cut:
            stream.outer = [frame for frame in (*stream.outer, *cut) if frame.user_code][-OUTER_FRAMES:]
            del stream.frames[: -MAX_FRAMES - 1]

    def _in_frames(self, stream: OpenTraceback, line: Line, text: str) -> bool:
        bare = text.strip("│╭╰─╮╯❱ ")
        if not bare or text[:1] in "│╭╰":
            stream.keep_boxed_code(text, line)
            return True
        if bare[:1] == "F" and grammar.CUT_FRAME.match(bare):
            stream.half = text
            return True
        if stream.cells and stream.frames and stream.cell_code(stream.without_cell_indent(text), line):
            return True
        indent = len(text) - len(text.lstrip())
        # If the indents were lost, code is directly below its frame. Further down, only `raise` and `assert` are known.
        unindented = indent == stream.indent == 0 and (
            bare.startswith(("raise ", "assert "))
            or (_is_next(stream, line) and bool(grammar.LOST_INDENT.match(bare)) and not grammar.LOG_LINE.match(text))
        )
        if stream.frames and (indent > stream.indent or unindented) and not grammar.BARE.match(bare):
            stream.keep_code(text, line)
            return True
        raised = grammar.raised_of(grammar.MARKS.sub("", text.strip()))
        if raised is None and stream.cells and bare.startswith(f"{stream.cut_type}: "):  # OpenCV's `error`
            raised = stream.cut_type, bare.removeprefix(f"{stream.cut_type}: ")
        if raised is None or grammar.LOG_LINE.match(text):
            stream.missed += 1
            if stream.missed > 40:
                self._end(stream)
            return False
        stream.type, stream.message, stream.lines = raised[0], [raised[1]], [line]
        if stream.head is not None:
            stream.frames, stream.place = self._repeated_frames.between(stream.head, line, stream.frames, stream.place)
        stream.reading, stream.blank = "message", False
        stream.heads = max(stream.heads - 1, 0)
        return True

    def _in_message(self, stream: OpenTraceback, line: Line, text: str) -> bool:
        if grammar.CONNECTOR.search(text):
            stream.linked = True
            stream.implicit = text.lstrip().startswith("During")
            return True
        if not text.strip(" .\u2026"):  # people write dots where they shorten a log
            stream.blank = True
            return True
        if stream.names_child(text):
            return True
        unfinished = not any(part.strip() for part in stream.message)
        if unfinished and stream.spawned is not None and not stream.inner and grammar.BARE.match(text):
            stream.inner = True  # The spawned process's exception has no traceback of its own.
            self._keep(stream)
            return self._bare(stream, line, text)
        ended = (
            (stream.blank and not unfinished and not stream.is_source_line(text))
            or (grammar.LOG_LINE.match(text) and not grammar.QUOTED.match(text))
            or len(stream.message) >= MAX_MESSAGE_LINES
        )
        if ended or not stream.continues(line, text):
            if text[:1] == " " and not stream.quoted and stream.type.startswith(grammar.OF_DYNAMO):
                stream.blank = True
                return False  # The frames of the user's code follow.
            self._keep(stream)
            if stream.heads and not stream.linked and text.startswith("    "):
                stream.reading = "frames"  # Another rank's traceback started above and continues here.
                return True
            self._end(stream)
            return self._step(stream, line, text) if grammar.may_begin(text) else False
        stream.message.append(text)
        stream.lines.append(line)
        return True

    def _bare(self, stream: OpenTraceback, line: Line, text: str) -> bool:
        text = grammar.MARKS.sub("", text)
        found = grammar.BARE.match(text) or grammar.INTERLEAVED.match(text)
        passed = not found or found[1].endswith("Warning") or self._above.endswith(grammar.REFUSED)
        raised = None if passed else grammar.raised_of(text)
        if raised is None:
            return False
        stream.type, stream.message, stream.lines = raised[0], [raised[1]], [line]
        stream.reading, stream.blank = "message", False
        return True

    def _keep(self, stream: OpenTraceback) -> None:
        """Adds the exception that was read to the chain, in which a cause comes before its effect."""
        if not stream.lines:
            return
        message = "\n".join(stream.message).strip()
        implicit = stream.implicit and bool(stream.chain)
        lines = (*stream.lines[:LINES_KEPT], *(stream.place if stream.frames else ()))
        context = tuple(stream.quoted), stream.forward, tuple(stream.outer)
        # A notebook shows no line of compiled code.
        frames = tuple(frame for frame in stream.frames if frame.line or not stream.cells)
        raised = Raised(stream.type, message, frames, lines, implicit, *context)
        place = len(stream.chain) - 1 if stream.inner and stream.chain and not grammar.HEAD.search(message) else None
        if place is not None:
            stream.chain.insert(max(place, 0), raised)
        else:
            stream.chain.append(raised)
        stream.lines, stream.message, stream.frames, stream.reading = [], [], [], "nothing"
        stream.quoted, stream.forward, stream.outer, stream.quoting = [], (), [], False

    def _end(self, stream: OpenTraceback) -> None:
        self._keep(stream)
        chain, ignored, spawned, logged = tuple(stream.chain), stream.ignored, stream.spawned, stream.logged
        heads, cut, logged_rank, cells = stream.heads, stream.cut, stream.logged_rank, stream.cells
        stream.reset()
        stream.heads = heads if heads and chain else 0
        if chain and ignored is None and not _was_ignored(chain):
            source = EventSource.TRACEBACK if cells else _source_of(chain, self._launcher_frames)
            event = _event_of(chain, source, spawned, logged_rank, logged)
            text = event.text if spawned is None else f"-- Process {spawned} terminated with the following error:"
            self._finished.append(replace(event, source=EventSource.CUT_TRACEBACK, text=text) if cut else event)


def _is_next(stream: OpenTraceback, line: Line) -> bool:
    """Returns whether a line is directly below the innermost frame, whose code is still unknown."""
    return len(stream.place) == 1 and not stream.frames[-1].code and line.position == stream.place[0].position.down(1)


def _event_of(
    chain: tuple[Raised, ...], source: EventSource, spawned: int | None, logged_rank: int | None, logged: bool
) -> Event:
    """Returns the event of a chain of exceptions. `spawned`: the number of the process that a parent quotes.
    `logged_rank`: the rank in the logger's line above. `logged`: the exception was caught and logged."""
    last = chain[-1]
    line = last.lines[0]
    if only := grammar.ONLY_RANK.match(last.message):
        line = line._replace(rank=int(only[1]), local_rank=None)  # All ranks raise this exception.
    elif line.rank is None and (own := grammar.OWN_RANK.search(last.message)):
        line = line._replace(rank=int(own[1] or own[2]))
    elif line.rank is None and spawned is None:
        line = line._replace(rank=logged_rank)
    lines = tuple(raised.lines[0] for raised in reversed(chain))
    return Event(
        where=Where.EXCEPTION,
        text=last.text,
        lines=lines,
        source=source,
        rank=line.rank if line.rank is not None else spawned,
        local_rank=line.local_rank if line.local_rank is not None else spawned,
        host=line.host,
        attempt=line.attempt,
        time=line.time,
        fatal=not logged,
        chain=chain,
    )


def _source_of(chain: tuple[Raised, ...], launcher_frames: re.Pattern[str] | None) -> EventSource:
    """Returns the source of the chain: a traceback, only an exception's line, or a launcher, whose files match
    `launcher_frames`."""
    if launcher_frames and any(launcher_frames.search(frame.file) for frame in chain[-1].frames):
        return EventSource.LAUNCHER
    return EventSource.TRACEBACK if any(raised.frames for raised in chain) else EventSource.EXCEPTION_LINE


def _was_ignored(chain: tuple[Raised, ...]) -> bool:
    """Returns whether Python ignored the exception, as in `__del__`. Such an exception ends no program."""
    frames = chain[-1].frames
    return bool(frames) and frames[0].function == "__del__"
