"""Checkpoints that a run wrote: lines that speak of saving in, those that were written to their end out."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import re2

from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import Checkpoint
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex

NAME = "checkpoint messages"
LIST = "checkpoint-messages"  # of the vocabulary: its patterns are named STARTED, WRITTEN or FAILED
STARTED, WRITTEN, FAILED = "started", "written", "failed"
MOST = 5  # checkpoints told of a run, the newest
# What a path says about the step: checkpoint-500, iter_0000500, global_step500, epoch=3-step=500.ckpt, checkpoint_6_4000.pt,
# and a folder that is named by nothing else.
_STEP = lazy_regex(
    r"(?i)(?:(?:step|iter(?:ation)?)[-_=]?|(?:checkpoint|ckpt)[-_](?:\d{1,6}_)?)(\d{1,12})(?!\d|_\d)|[/\\](\d{1,12})$"
)
_PATH_GROUP = lazy_regex(r"(?:\(\?:[^()]*)?\(\?P<path>.*$")


class Message(NamedTuple):
    """What a line says about a checkpoint: that saving started, that it was written, or that it could not be."""

    kind: str
    path: str | None = None
    step: int | None = None


class Messages:
    """The messages of training libraries and scripts, compiled once per knowledge base."""

    def __init__(self, patterns: Iterable[VocabularyPattern]) -> None:
        self._patterns = tuple(patterns)
        self._compiled: list[tuple[str, re2._Regexp]] = []

    @property
    def pointers(self) -> tuple[str, ...]:
        """What precedes the path in each pattern: each character of a path would be a match of its own."""
        return tuple(dict.fromkeys(_PATH_GROUP.sub("", pattern.regex) for pattern in self._patterns))

    def read(self, text: str) -> Message | None:
        """-> what a line says about a checkpoint; None where it says nothing."""
        if not self._compiled:
            self._compiled = [(pattern.name or STARTED, re2.compile(pattern.regex)) for pattern in self._patterns]
        for kind, pattern in self._compiled:
            if found := pattern.search(text):
                groups = found.groupdict()
                path = (groups.get("path") or groups.get("file") or "").rstrip(".,:;)")
                step = int(groups["step"]) if groups.get("step") else _step(path)
                return Message(kind, _of_all_files(path, step) or None, step)
        return None


@dataclass(slots=True)
class _Saving:
    """One checkpoint as far as lines spoke of it."""

    line: Line
    path: str | None
    step: int | None
    written: bool = False
    writers: set[str] = field(default_factory=set)  # the streams that spoke of it

    def is_same(self, message: Message) -> bool:
        """-> whether a message speaks of this checkpoint: several ranks and several files report one."""
        if message.step is not None and self.step is not None:
            return message.step == self.step
        if message.path is None or self.path is None:
            return message.path is self.path is None or not self.written
        return self.path.endswith(message.path) or message.path.endswith(self.path)

    def add(self, line: Line, message: Message) -> None:
        """Takes a further message on this checkpoint, which is later than those before."""
        self.line, self.written = line, self.written or message.kind == WRITTEN
        self.writers.add(line.stream)
        self.path = self.path or message.path
        self.step = message.step if self.step is None else self.step


def written(
    told: Sequence[tuple[Line, Message]], progress: Sequence[Position], failed_at: Position | None, failed_saving: bool
) -> tuple[Checkpoint, ...]:
    """-> the newest checkpoints that were written to their end, the last one last.

    `progress` holds the positions of lines of progress, in order, `failed_at` that of the root cause. Where a library says
    only that it starts to save, what it does next shows that it could: progress, or the next checkpoint. Progress of
    other ranks does not count where the run `failed_saving`.
    """
    savings: list[_Saving] = []
    for line, message in sorted(told, key=lambda one: one[0].position):
        if failed_at is not None and line.position > failed_at:
            break
        last = savings[-1] if savings else None
        if last is not None and message.kind != FAILED:
            last.written |= _went_on(progress, last.line.position, line.position)
        if message.kind == FAILED:
            savings = [saving for saving in savings if saving.written]
        elif (known := _spoken_of(savings, line, message)) is not None:
            known.add(line, message)
        else:
            if last is not None and last.line.stream == line.stream:
                last.written = True
            savings.append(_Saving(line, message.path, message.step, message.kind == WRITTEN, {line.stream}))
    if savings and not failed_saving:
        savings[-1].written |= _went_on(progress, savings[-1].line.position, failed_at)
    done = (saving for saving in savings if saving.written)
    return tuple(
        Checkpoint(saving.path, saving.step, saving.line.time, saving.line.number, saving.line.file) for saving in done
    )[-MOST:]


def _spoken_of(savings: Sequence[_Saving], line: Line, message: Message) -> _Saving | None:
    """-> the checkpoint that a message speaks of, where lines spoke of it before: the newest one, or, of a rank that comes
    later than the others, one above the newest. Who spoke of a newer one and now of an older step began anew there."""
    for saving in reversed(savings):
        if saving.is_same(message):
            return saving
        if message.step is None or line.stream in saving.writers:
            return None
    return None


def _went_on(progress: Sequence[Position], start: Position, end: Position | None) -> bool:
    """-> whether there is progress behind one line and before another."""
    after = bisect_right(progress, start)
    return after < (len(progress) if end is None else bisect_left(progress, end))


def _step(path: str) -> int | None:
    """-> the step that a path names."""
    found = [one or other for one, other in _STEP.findall(path)]
    return int(found[-1]) if found else None


def _of_all_files(path: str, step: int | None) -> str:
    """-> the part of a path that names the checkpoint: each rank may write a file of its own in a folder of the step."""
    for found in _STEP.finditer(path) if step is not None else ():
        if int(found[1] or found[2]) == step:
            return path[: found.end()] + re.split(r"[/\\]", path[found.end() :], maxsplit=1)[0]
    return path
