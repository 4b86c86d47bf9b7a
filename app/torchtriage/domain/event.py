"""A failure or message that one extractor found in the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from torchtriage.domain.line import Line

_LOOKUPS = ("__getattr__", "__getattribute__")


class Where(StrEnum):
    """The kind of text that an event has. The field `in` of a sign selects among these; `any` means all."""

    EXCEPTION = "exception"  # "Type: message", of a traceback or of a line in that form
    LINE = "line"  # a single line that an extractor or a sign pointed at
    EXIT = "exit"  # how a process ended, in the canonical form "exitcode -9 SIGKILL rank 3"
    FRAME = "frame"  # the frames of a traceback: file, function and source line


class EventSource(StrEnum):
    """Where an event comes from: the form of log text that an extractor read, or the later search that found it."""

    TRACEBACK = "traceback"  # a Python traceback with frames
    EXCEPTION_LINE = "exception line"  # `Type: message` without frames
    CUT_TRACEBACK = "cut traceback"  # frames whose exception is no longer in the log
    LAUNCHER = "launcher"  # a traceback through a launcher's own frames, such as ChildFailedError
    ELASTIC_AGENT = "torchelastic agent"  # the agent's line about one ended worker
    FIRST_FAILURE = "first observed failure"  # the root cause named in torchelastic's report
    OTHER_FAILURE = "other failure"  # any other worker in torchelastic's report
    PROCESS_EXIT = "process exit"  # how a process ended, as a parent, shell or C++ runtime reports it
    DEVICE_ERROR = "device error"  # a failed assertion of a kernel, or an Xid of the driver
    COLLECTIVE = "collective"  # NCCL, Gloo, a watchdog or Horovod about a collective
    COLLECTIVE_MISMATCH = "collective mismatch"  # ranks that called different collectives
    SLURM = "slurm"
    MATCHED_LINE = "matched line"  # a line that no extractor reads and an entry's sign matches
    QUOTED_ERROR = "quoted error"  # an error message inside a sentence of a short paste
    ALARMING_LINE = "alarming line"  # a line of a short paste that mentions an error without an entry
    TITLE = "title"  # the heading that a person put above a log
    TRAILING_ERROR = "trailing error"  # an error at the very end that no entry matches
    HANG = "hang"  # no progress, while a monitor continued to print
    EVIDENCE = "evidence"  # the flight recorder's dumps, or stacks, of ranks that wait


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback; `user_code` is False for installed packages and the standard library. `marked` is the
    part of the code that Python 3.11 and later underline."""

    file: str
    line: int
    function: str
    code: str = ""
    user_code: bool = True
    marked: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception of a traceback: its dotted type, whole message, frames (outermost first), and the lines that name
    it.

    `quoted` are frames of the user's code that the message contains, as in Dynamo's. `forward` are the frames of the
    call whose backward failed, as anomaly mode prints them. `outer` are a few frames of the user's code that were left
    out of a very deep stack.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    lines: tuple[Line, ...] = ()
    implicit: bool = False  # raised while the exception before it in the chain was being handled
    quoted: tuple[Frame, ...] = ()
    forward: tuple[Frame, ...] = ()
    outer: tuple[Frame, ...] = ()

    @property
    def text(self) -> str:
        """`Type: message`, as Python prints it."""
        return f"{self.type}: {self.message}" if self.type and self.message else self.type or self.message

    @property
    def frames_without_lookups(self) -> tuple[Frame, ...]:
        """The frames without the last ones in which a class only looks up an attribute. See `without_lookups`."""
        return without_lookups(self.frames, self.type)


def without_lookups(frames: tuple[Frame, ...], exception_type: str) -> tuple[Frame, ...]:
    """Returns the frames of an AttributeError without the last ones in which a class only looks up an attribute, as
    nn.Module does. The last frame left is the line that asked for the attribute. Other exceptions keep all frames."""
    last = len(frames)
    while exception_type.endswith("AttributeError") and last > 1 and frames[last - 1].function in _LOOKUPS:
        last -= 1
    return frames[:last]


@dataclass(frozen=True, slots=True)
class Event:
    """A failure or message that was found in the log.

    Signs are searched in `text`. `chain` are the exceptions of one traceback, in the order in which they were raised;
    the last is the event's own exception. `ranks` are all ranks that showed an equal event. `fatal` is False if the
    text alone does not say that a process ended (a warning, a log line).
    """

    where: Where
    text: str
    lines: tuple[Line, ...]
    source: EventSource
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int = 0
    time: str | None = None
    fatal: bool = True
    chain: tuple[Raised, ...] = ()
    ranks: frozenset[int] = field(default_factory=frozenset)
    exit_code: int | None = None

    @classmethod
    def at(cls, line: Line, text: str, source: EventSource, where: Where = Where.LINE) -> Event:
        """Returns the event of a single line, with that line's rank, host, attempt and time."""
        return cls(where, text, (line,), source, line.rank, line.local_rank, line.host, line.attempt, line.time)

    @property
    def line(self) -> Line:
        """The line that names the failure."""
        return self.lines[0]

    @property
    def exception(self) -> Raised | None:
        return self.chain[-1] if self.chain else None
