"""Finds the checkpoints that a run wrote completely, from the lines about saving."""

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
LIST = "checkpoint-messages"  # the vocabulary list; its patterns have the names STARTED, WRITTEN and FAILED
STARTED, WRITTEN, FAILED = "started", "written", "failed"
MAX_CHECKPOINTS = 5  # the number of newest checkpoints that a verdict lists
# Paths that contain the step: checkpoint-500, iter_0000500, global_step500, epoch=3-step=500.ckpt,
# checkpoint_6_4000.pt, or a folder whose name is only the number.
_STEP = lazy_regex(
    r"(?i)(?:(?:step|iter(?:ation)?)[-_=]?|(?:checkpoint|ckpt)[-_](?:\d{1,6}_)?)(\d{1,12})(?!\d|_\d)|[/\\](\d{1,12})$"
)
_PATH_GROUP = lazy_regex(r"(?:\(\?:[^()]*)?\(\?P<path>.*$")


class CheckpointMessage(NamedTuple):
    """A line about a checkpoint: saving started, was completed, or failed."""

    kind: str
    path: str | None = None
    step: int | None = None


class Messages:
    """The messages of training libraries and scripts about checkpoints, compiled once per knowledge base."""

    def __init__(self, patterns: Iterable[VocabularyPattern]) -> None:
        self._patterns = tuple(patterns)
        self._compiled: list[tuple[str, re2._Regexp]] = []

    @property
    def pointers(self) -> tuple[str, ...]:
        """The part of each pattern before the path. The path is left out because each of its characters would be a
        match of its own."""
        return tuple(dict.fromkeys(_PATH_GROUP.sub("", pattern.regex) for pattern in self._patterns))

    def read(self, text: str) -> CheckpointMessage | None:
        """Returns the message that a line contains, or None."""
        if not self._compiled:
            self._compiled = [(pattern.name or STARTED, re2.compile(pattern.regex)) for pattern in self._patterns]
        for kind, pattern in self._compiled:
            if found := pattern.search(text):
                groups = found.groupdict()
                path = (groups.get("path") or groups.get("file") or "").rstrip(".,:;)")
                step = int(groups["step"]) if groups.get("step") else _step(path)
                return CheckpointMessage(kind, _of_all_files(path, step) or None, step)
        return None


@dataclass(slots=True)
class _Saving:
    """One checkpoint, as known from the lines so far."""

    line: Line
    path: str | None
    step: int | None
    written: bool = False
    writers: set[str] = field(default_factory=set)  # the streams with lines about it

    def is_same(self, message: CheckpointMessage) -> bool:
        """Returns whether a message is about this checkpoint. Several ranks report it, and it may have several
        files."""
        if message.step is not None and self.step is not None:
            return message.step == self.step
        if message.path is None or self.path is None:
            return message.path is self.path is None or not self.written
        return self.path.endswith(message.path) or message.path.endswith(self.path)

    def add(self, line: Line, message: CheckpointMessage) -> None:
        """Adds a later message about this checkpoint."""
        self.line, self.written = line, self.written or message.kind == WRITTEN
        self.writers.add(line.stream)
        self.path = self.path or message.path
        self.step = message.step if self.step is None else self.step


def completed_checkpoints(
    messages: Sequence[tuple[Line, CheckpointMessage]],
    progress: Sequence[Position],
    failed_at: Position | None,
    failed_saving: bool,
) -> tuple[Checkpoint, ...]:
    """Returns the newest checkpoints that were written completely, the newest last.

    `progress` has the sorted positions of progress lines; `failed_at` is the position of the root cause. Some libraries
    report only the start of saving. Then later progress or the next checkpoint shows that it was completed. If saving
    was what failed (`failed_saving`), progress of other ranks does not count.
    """
    savings: list[_Saving] = []
    for line, message in sorted(messages, key=lambda one: one[0].position):
        if failed_at is not None and line.position > failed_at:
            break
        last = savings[-1] if savings else None
        if last is not None and message.kind != FAILED:
            last.written |= _progressed_between(progress, last.line.position, line.position)
        if message.kind == FAILED:
            savings = [saving for saving in savings if saving.written]
        elif (known := _find_saving(savings, line, message)) is not None:
            known.add(line, message)
        else:
            if last is not None and last.line.stream == line.stream:
                last.written = True
            savings.append(_Saving(line, message.path, message.step, message.kind == WRITTEN, {line.stream}))
    if savings and not failed_saving:
        savings[-1].written |= _progressed_between(progress, savings[-1].line.position, failed_at)
    done = (saving for saving in savings if saving.written)
    return tuple(
        Checkpoint(saving.path, saving.step, saving.line.time, saving.line.number, saving.line.file) for saving in done
    )[-MAX_CHECKPOINTS:]


def _find_saving(savings: Sequence[_Saving], line: Line, message: CheckpointMessage) -> _Saving | None:
    """Returns the known checkpoint that a message is about, or None if it is a new one. It is the newest, or the one
    before it for a rank that is slower than the others. A rank that reported a newer checkpoint and now an older step
    has started a new one."""
    for saving in reversed(savings):
        if saving.is_same(message):
            return saving
        if message.step is None or line.stream in saving.writers:
            return None
    return None


def _progressed_between(progress: Sequence[Position], start: Position, end: Position | None) -> bool:
    """Returns whether there is progress after `start` and before `end`."""
    after = bisect_right(progress, start)
    return after < (len(progress) if end is None else bisect_left(progress, end))


def _step(path: str) -> int | None:
    """Returns the step in a path, or None."""
    found = [one or other for one, other in _STEP.findall(path)]
    return int(found[-1]) if found else None


def _of_all_files(path: str, step: int | None) -> str:
    """Returns the part of a path that names the checkpoint. Each rank may write its own file into a folder of the
    step."""
    for found in _STEP.finditer(path) if step is not None else ():
        if int(found[1] or found[2]) == step:
            return path[: found.end()] + re.split(r"[/\\]", path[found.end() :], maxsplit=1)[0]
    return path
