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
_MIN_OWN_CODE = 20  # characters: as a rule, a line of this length stands in one place of a program only
GAP = 400  # lines; if more are missing, the rest of a traceback is not in the log


@dataclass(slots=True)
class OpenTraceback:
    """One writer's traceback while it is being read. `heads` counts the tracebacks that started and have not ended."""

    frames: list[Frame] = field(default_factory=list)
    chain: list[Raised] = field(default_factory=list)
    reading: str = "nothing"  # nothing, frames, message
    heads: int = 0
    indent: int = 0
    code_indent: int = 0  # the indent of the last line of code
    type: str = ""
    message: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    place: list[Line] = field(default_factory=list)  # the innermost frame's own lines
    half: str = ""  # the first part of a frame's line that a terminal wrapped inside the path
    blank: bool = False
    linked: bool = False
    implicit: bool = False
    logged: bool = False
    logged_rank: int | None = None  # the rank that the logger's line above names
    inner: bool = False
    ignored: Position | None = None  # the position of the line that says so
    head: Line | None = None
    cut: bool = False
    cut_type: str = ""
    spawned: int | None = None
    missed: int = 0
    position: Position | None = None  # the position of the last line that was read
    quoted: list[Frame] = field(default_factory=list)  # frames of the user's code, printed below the message
    quoting: bool = False
    forward: tuple[Frame, ...] = ()  # the frames of the forward call whose backward failed
    forwarding: bool = False  # the next frames belong to that call
    outer: list[Frame] = field(default_factory=list)  # the user's frames that were left out of a deep stack
    summed: bool = False  # whether the next lines are between an exception's name and its summary
    cells: bool = False  # whether the frames are those of a notebook
    cell_indent: int = 0  # the indent of all lines of that traceback, if a notebook was exported to Markdown
    code_places: dict[str, tuple[str, int]] = field(default_factory=dict)  # where each line of code was read first

    def summary(self, line: Line, text: str) -> bool:
        """Returns whether a line is the message of Paddle or MindSpore, or between their exception and its message."""
        if self.reading != "message" or any(self.message) or self.frames == []:
            return False
        if grammar.ABOVE_SUMMARY.match(text):
            self.summed = True
            return True
        if not self.summed or not text.strip():
            return self.summed
        self.message, self.lines, self.summed = [text], [line], False
        return True

    def read_frames(self, lines: Iterable[Line]) -> int:
        """Reads frames with their code, in the form in which Python prints them. Returns how many of the lines it
        read."""
        taken = 0
        for line in lines:
            text = line.text
            if self.has_gap(line):
                break
            if text[:8] == '  File "' and (frame := grammar.python_frame(text)):
                self.frames.append(frame)
                self.place, self.indent, self.missed = [line], 2, 0
            elif self.indent == 2 and self.frames and grammar.code_of(text):
                self.keep_code(text, line)
            else:
                break
            self.position = line.position
            taken += 1
        return taken

    def join_wrapped(self, text: str) -> str:
        """Returns the line, joined with the line above if a terminal or rich's box wrapped a frame."""
        half, self.half = self.half, ""
        whole = half + (text[2:] if half[:1] == "│" else text)
        if half and grammar.frame_of(whole):
            return whole
        if text[:1] == "│" and grammar.RICH_PATH.match(whole):
            self.half = whole.rstrip(" │")
        return text

    def keep_boxed_code(self, text: str, line: Line) -> None:
        """Keeps the line of code to which rich's box points."""
        found = grammar.RICH_CODE.match(text) if self.frames else None
        if found is not None:
            self.keep_code(found[1], line)

    def names_child(self, text: str) -> bool:
        """Returns whether a parent process says in this line which child's traceback follows. Keeps the child's
        number."""
        found = grammar.SPAWNED.search(text) if "-- Process " in text else None
        if found is not None:
            self.spawned = int(found[1])
        return found is not None

    def is_quoted_frame(self, text: str) -> bool:
        """Returns whether a line below a message belongs to the frames of the user's code that Dynamo quotes."""
        bare = text.strip()
        if bare == grammar.QUOTES_CODE:
            self.quoting, self.quoted = True, []
            return self.blank  # Otherwise it is the last line of the message.
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

    def keep_code(self, text: str, line: Line) -> None:
        """Keeps the line of code below the innermost frame, or the marks that underline a part of it."""
        last, code = self.frames[-1], text.strip().partition(_OTHER_FRAME)[0].rstrip()
        if not last.code and "^" not in code and not self._is_of_another_frame(code):
            half = len(code) // 2  # Two ranks wrote this line at the same time.
            twice = half > _MIN_CODE and code[:half] == code[half:]
            self.frames[-1] = _with_code(last, code[:half] if twice else code, last.marked)
            self.code_indent = text.find(code)
            self.place.append(line)
        elif last.code and not last.marked and grammar.UNDERLINE.fullmatch(code):
            start = text.find(code) - self.code_indent
            self.frames[-1] = _with_code(last, last.code, last.code[start : start + len(code)] if start >= 0 else "")

    def _is_of_another_frame(self, code: str) -> bool:
        """Returns whether a line of code was read below another frame already, while ranks write their tracebacks into
        one another. Wrappers, which pass all arguments on, have the same code in many places."""
        if len(code) < _MIN_OWN_CODE or "*" in code:
            return False
        place = self.frames[-1].file, self.frames[-1].line
        return self.code_places.setdefault(code, place) != place and self.heads > 1

    def frame_of(self, text: str) -> Frame | None:
        """Returns the frame that a line names. If a notebook's traceback is open, its form counts too."""
        frame = grammar.frame_of(text)
        if frame is None and self.reading == "frames":
            frame = grammar.cell_frame(self.without_cell_indent(text))
            self.cells = self.cells or frame is not None
        return frame

    def without_cell_indent(self, text: str) -> str:
        """Returns a line without the indent that all lines of the notebook's traceback have."""
        indent = self.cell_indent
        return text[indent:] if indent and not text[:indent].strip() else text

    def cell_code(self, text: str, line: Line) -> bool:
        """Returns whether a line is part of the source below a notebook's frame. Keeps the one at the arrow."""
        found = grammar.CELL_CODE.match(text)
        if found is None:
            return text[:1] == " "
        last = self.frames[-1]
        if found[1] and last.line in (0, int(found[2])):
            self.frames[-1] = Frame(last.file, int(found[2]), last.function, (found[3] or "").strip(), last.user_code)
            self.place.append(line)
        return True

    def has_gap(self, line: Line) -> bool:
        """Returns whether too many lines are missing above this one to continue the traceback."""
        return self.position is not None and line.position.lines_below(self.position) > GAP

    def continues(self, line: Line, text: str) -> bool:
        """Returns whether a line continues the exception's message."""
        if grammar.BARE.match(text) and not text.startswith("nccl"):  # NCCL's status names end like exceptions
            return self.message[-1].rstrip().endswith(" raised:")  # torch._dynamo quotes what its backend raised
        first = self.lines[0]
        if grammar.is_whole(self.type, self.message, first.text) or _labelled(first) > _labelled(line):
            return False
        # "Original exception:" is part of Gloo's messages.
        if text[0] != " " or text.startswith(" Original exception:") or grammar.ITEM.match(text):
            return True
        above = self.message[-1]
        if self.type.rpartition(".")[2] in grammar.INDENTED:
            return True
        if self.type.startswith(grammar.OF_DYNAMO):  # a tensor in Dynamo's explanation can take several lines
            return not text.lstrip().startswith(grammar.DYNAMO_HINTS)
        return not above.strip() or above.rstrip().endswith((":", ",")) or above[:1] in " \t" or len(self.message) > 1

    def is_source_line(self, text: str) -> bool:
        """Returns whether a line is part of the source that a compiler's message quotes, which can have empty lines."""
        return (
            text[:1] in (" ", "\t")
            and bool(grammar.SOURCE_PLACE.fullmatch(self.message[0].strip()))
            and not any(grammar.UNDERLINE.fullmatch(part.strip()) for part in self.message)
        )

    @property
    def has_exception(self) -> bool:
        """Whether an exception was read that is not only a parent's quote of a spawned process."""
        return bool(self.chain) and self.spawned is None

    def reset(self) -> None:
        """Returns to the state before anything was read."""
        OpenTraceback.__init__(self, position=self.position, code_places=self.code_places)


@lru_cache(maxsize=1024)
def _with_code(frame: Frame, code: str, marked: str) -> Frame:
    """Returns the frame with its line of code and the underlined part of it. Cached, because ranks print the same
    frames. `replace` would take five times as long."""
    return Frame(frame.file, frame.line, frame.function, code, frame.user_code, marked)


def _labelled(line: Line) -> bool:
    """Returns whether torch's own rank label precedes the text."""
    return bool(grammar.RANK_LABEL.search(line.raw.removesuffix(line.text)[-16:]))
