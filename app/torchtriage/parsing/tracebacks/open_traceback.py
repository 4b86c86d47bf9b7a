"""What was read so far of the traceback that one writer is printing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from torchtriage.domain.event import Frame, Raised
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.tracebacks import grammar

_MIN_CODE = 8  # characters
_OTHER_FRAME = '  File "'  # another rank wrote its frame behind a line of code
_MIN_OWN_CODE = 20  # characters: so long a line stands in one place of a program, as a rule
GAP = 400  # lines; where so many are missing the rest of a traceback is not there


@dataclass(slots=True)
class Stream:
    """One writer's traceback as it comes in. `heads` counts tracebacks that were begun and not ended."""

    frames: list[Frame] = field(default_factory=list)
    chain: list[Raised] = field(default_factory=list)
    reading: str = "nothing"  # nothing, frames, message
    heads: int = 0
    indent: int = 0
    code_indent: int = 0  # of the line of code that was read last
    type: str = ""
    message: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    place: list[Line] = field(default_factory=list)  # the innermost frame's own lines
    half: str = ""  # a frame's line that a terminal wrapped inside of the path
    blank: bool = False
    linked: bool = False
    implicit: bool = False
    logged: bool = False
    logged_rank: int | None = None  # the rank that the logger's line above names
    inner: bool = False
    ignored: Position | None = None  # of the line that says so
    head: Line | None = None
    cut: bool = False
    cut_type: str = ""
    spawned: int | None = None
    missed: int = 0
    position: Position | None = None  # of the last line that was read
    quoted: list[Frame] = field(default_factory=list)  # of the user's code, below the message
    quoting: bool = False
    forward: tuple[Frame, ...] = ()  # of the call whose backward fails
    forwarding: bool = False  # the frames that come are of that
    outer: list[Frame] = field(default_factory=list)  # the user's frames that were left out of a deep stack
    summed: bool = False  # between an exception's name and its summary
    cells: bool = False  # the frames are a notebook's
    cell_indent: int = 0  # of all lines of that traceback, where a notebook was exported to Markdown
    code_places: dict[str, tuple[str, int]] = field(default_factory=dict)  # where each line of code was read first

    def summary(self, line: Line, text: str) -> bool:
        """-> whether a line belongs to what stands between Paddle's exception and its message, or is that message."""
        if self.reading != "message" or any(self.message) or self.frames == []:
            return False
        if grammar.ABOVE_SUMMARY.match(text):
            self.summed = True
            return True
        if not self.summed or not text.strip():
            return self.summed
        self.message, self.lines, self.summed = [text], [line], False
        return True

    def take_frames(self, lines: Iterable[Line]) -> int:
        """-> of how many lines, from the first on, it took the frames: those as Python prints them, with their code."""
        taken = 0
        for line in lines:
            text = line.text
            if self.lost(line):
                break
            if text[:8] == '  File "' and (frame := grammar.python_frame(text)):
                self.frames.append(frame)
                self.place, self.indent, self.missed = [line], 2, 0
            elif self.indent == 2 and self.frames and grammar.code_of(text):
                self.describe(text, line)
            else:
                break
            self.position = line.position
            taken += 1
        return taken

    def joined(self, text: str) -> str:
        """-> a line, with what is above it of a frame that a terminal or rich's box has wrapped."""
        half, self.half = self.half, ""
        whole = half + (text[2:] if half[:1] == "│" else text)
        if half and grammar.frame_of(whole):
            return whole
        if text[:1] == "│" and grammar.RICH_PATH.match(whole):
            self.half = whole.rstrip(" │")
        return text

    def boxed(self, text: str, line: Line) -> None:
        """Takes the line of code at which rich's box points."""
        found = grammar.RICH_CODE.match(text) if self.frames else None
        if found is not None:
            self.describe(found[1], line)

    def quotes(self, text: str) -> bool:
        """-> whether a line of the parent says which process's words follow; its number is kept."""
        found = grammar.SPAWNED.search(text) if "-- Process " in text else None
        if found is not None:
            self.spawned = int(found[1])
        return found is not None

    def quotes_code(self, text: str) -> bool:
        """-> whether a line below a message belongs to the frames of the user's code that are there."""
        bare = text.strip()
        if bare == grammar.QUOTES_CODE:
            self.quoting, self.quoted = True, []
            return self.blank  # else it is the message's last line
        if not self.quoting:
            return False
        frame = grammar.frame_of(text)
        if frame is not None:
            self.quoted.append(frame)
        elif self.quoted and text[:1] in " \t" and bare and not self.quoted[-1].code:
            self.quoted[-1] = _with_code(self.quoted[-1], bare, self.quoted[-1].marked)
        elif not self.quoted or not grammar.UNDERLINE.fullmatch(bare):
            self.quoting, self.blank = False, True
            return not bare
        return True

    def describe(self, text: str, line: Line) -> None:
        """Takes the line of code below the innermost frame, or the marks that underline a part of it."""
        last, code = self.frames[-1], text.strip().partition(_OTHER_FRAME)[0].rstrip()
        if not last.code and "^" not in code and not self._is_of_another_frame(code):
            half = len(code) // 2  # Two ranks wrote it into one another.
            twice = half > _MIN_CODE and code[:half] == code[half:]
            self.frames[-1] = _with_code(last, code[:half] if twice else code, last.marked)
            self.code_indent = text.find(code)
            self.place.append(line)
        elif last.code and not last.marked and grammar.UNDERLINE.fullmatch(code):
            start = text.find(code) - self.code_indent
            self.frames[-1] = _with_code(last, last.code, last.code[start : start + len(code)] if start >= 0 else "")

    def _is_of_another_frame(self, code: str) -> bool:
        """-> whether a line of code was read below another frame already, where ranks write their tracebacks into one
        another. Wrappers, which pass all arguments on, have the same code in many places."""
        if len(code) < _MIN_OWN_CODE or "*" in code:
            return False
        place = self.frames[-1].file, self.frames[-1].line
        return self.code_places.setdefault(code, place) != place and self.heads > 1

    def frame_of(self, text: str) -> Frame | None:
        """-> the frame that a line names, of a notebook where such a traceback is open."""
        frame = grammar.frame_of(text)
        if frame is None and self.reading == "frames":
            frame = grammar.cell_frame(self.outdented(text))
            self.cells = self.cells or frame is not None
        return frame

    def outdented(self, text: str) -> str:
        """-> a line without the indent that all lines of the notebook's traceback have."""
        indent = self.cell_indent
        return text[indent:] if indent and not text[:indent].strip() else text

    def cell_code(self, text: str, line: Line) -> bool:
        """-> whether a line is of the source below a notebook's frame; takes the one at which the arrow points."""
        found = grammar.CELL_CODE.match(text)
        if found is None:
            return text[:1] == " "
        last = self.frames[-1]
        if found[1] and last.line in (0, int(found[2])):
            self.frames[-1] = Frame(last.file, int(found[2]), last.function, (found[3] or "").strip(), last.user_code)
            self.place.append(line)
        return True

    def lost(self, line: Line) -> bool:
        """-> whether too many lines are missing above this one to go on with what was read."""
        return self.position is not None and line.position.lines_below(self.position) > GAP

    def continues(self, line: Line, text: str) -> bool:
        """-> whether a line goes on with the exception's message."""
        if grammar.BARE.match(text) and not text.startswith("nccl"):  # NCCL's status names end like exceptions
            return self.message[-1].rstrip().endswith(" raised:")  # torch._dynamo quotes what its backend raised
        first = self.lines[0]
        if grammar.is_whole(self.type, self.message, first.text) or _labelled(first) > _labelled(line):
            return False
        if text[0] != " " or text.startswith(" Original exception:") or grammar.ITEM.match(text):  # the first: gloo's
            return True
        above = self.message[-1]
        if self.type.rpartition(".")[2] in grammar.INDENTED:
            return True
        if self.type.startswith(grammar.OF_DYNAMO):  # its explanation, in which a tensor may take several lines
            return not text.lstrip().startswith(grammar.DYNAMO_HINTS)
        return not above.strip() or above.rstrip().endswith((":", ",")) or above[:1] in " \t" or len(self.message) > 1

    def within_source(self, text: str) -> bool:
        """-> whether a line is of the source that a compiler's message quotes: empty lines may stand in it."""
        return (
            text[:1] in (" ", "\t")
            and bool(grammar.SOURCE_PLACE.fullmatch(self.message[0].strip()))
            and not any(grammar.UNDERLINE.fullmatch(part.strip()) for part in self.message)
        )

    @property
    def has_exception(self) -> bool:
        """-> whether an exception was read; a parent's is none of the spawned process that it quotes."""
        return bool(self.chain) and self.spawned is None

    def forget(self) -> None:
        """Makes the stream as it was before anything was read."""
        Stream.__init__(self, position=self.position, code_places=self.code_places)


@lru_cache(maxsize=1024)
def _with_code(frame: Frame, code: str, marked: str) -> Frame:
    """-> the frame with its line of code, and the part of it that is underlined. Ranks print the same frames, so what they
    are is kept; `replace` takes five times as long."""
    return Frame(frame.file, frame.line, frame.function, code, frame.user_code, marked)


def _labelled(line: Line) -> bool:
    """-> whether torch's own label of the rank precedes the text."""
    return bool(grammar.RANK_LABEL.search(line.raw.removesuffix(line.text)[-16:]))
