"""Shows on one line of standard error how far a long command has come.

The line appears after two seconds, is updated in place, and is removed at the end, so it does not mix with the output.
Nothing is shown if standard error is not a terminal, or with --quiet.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from torchtriage.reading.sources import LogFile, Run

_DELAY = 2.0  # seconds before the line appears
_INTERVAL = 0.2  # seconds between two updates
_CLEAR = "\r\x1b[K"
_PACKED = (".gz", ".tgz", ".zst", ".zip", ".tar")


class Progress:
    """The progress line. Use it in a `with` block, whose end removes the line. `clock` and `stream` are for tests."""

    def __init__(self, quiet: bool, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._enabled = not quiet and self._stream is not None and self._stream.isatty()
        self._next = clock() + _DELAY
        self._shown = False

    def show(self, text: str) -> None:
        """Replaces the line by `text`, at most five times per second."""
        if not self._enabled or self._clock() < self._next:
            return
        self._next = self._clock() + _INTERVAL
        self._shown = True
        self._stream.write(f"{_CLEAR}{text}")
        self._stream.flush()

    def clear(self) -> None:
        """Removes the line, so that something else can be printed."""
        if self._shown:
            self._shown = False
            self._stream.write(_CLEAR)
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress on standard error")


def counted(run: Run, progress: Progress, total: int | None) -> Run:
    """Returns the same run; reading it shows on the progress line how many bytes were read, of `total` if that is
    known."""
    done = 0

    def chunks(file: LogFile) -> Iterator[bytes]:
        nonlocal done
        for chunk in file.chunks():
            done += len(chunk)
            progress.show(f"{run.name}: {_size(done)}{f' of {_size(total)}' if total else ''} read")
            yield chunk

    def files() -> Iterator[LogFile]:
        for file in run.files():
            yield replace(file, chunks=partial(chunks, file))

    return replace(run, files=files)


def plain_size(path: Path, run: Run) -> int | None:
    """Returns the size in bytes of the files of `run`, or None if some of them are compressed or cannot be
    inspected."""
    paths = [path / name for name in run.names] if path.is_dir() else [path]
    if any(each.name.endswith(_PACKED) for each in paths):
        return None
    try:
        return sum(each.stat().st_size for each in paths)
    except OSError:
        return None


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
