"""The event that a traceback is: its exceptions in, what went wrong where out."""

from __future__ import annotations

import re

from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.domain.line import Line
from torchtriage.parsing.tracebacks import grammar


def event_of(
    chain: tuple[Raised, ...], source: EventSource, spawned: int | None, logged_rank: int | None, logged: bool
) -> Event:
    """-> the event of a chain of exceptions. `spawned`: the number of the process that a parent quotes; `logged_rank`: the
    rank that the logger's line above names; `logged`: somebody caught it and wrote it down."""
    last = chain[-1]
    line = last.lines[0]
    if only := grammar.ONLY_RANK.match(last.message):
        line = line._replace(rank=int(only[1]), local_rank=None)  # All ranks raise it.
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


def source_of(chain: tuple[Raised, ...], launcher_frames: re.Pattern[str] | None) -> EventSource:
    """-> what tells of the chain: its traceback, its last line alone, or a launcher, whose files `launcher_frames`
    finds."""
    if launcher_frames and any(launcher_frames.search(frame.file) for frame in chain[-1].frames):
        return EventSource.LAUNCHER
    return EventSource.TRACEBACK if any(raised.frames for raised in chain) else EventSource.EXCEPTION_LINE


def unraisable(chain: tuple[Raised, ...]) -> bool:
    """-> whether Python ignored the exception, as it does where it deletes an object: that ends no program."""
    frames = chain[-1].frames
    return bool(frames) and frames[0].function == "__del__"


def labelled(line: Line) -> bool:
    """-> whether torch's own label of the rank precedes the text."""
    return bool(grammar.RANK_LABEL.search(line.raw.removesuffix(line.text)[-16:]))
