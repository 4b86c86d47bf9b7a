"""Keeps the beginning and the end of a stream of any length in a file of limited size."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO


def keep_log(chunks: Iterable[bytes], target: Path, most: int) -> int:
    """Writes about `most` bytes of the chunks: a quarter from the beginning, the rest from the end. Returns how many
    bytes were left out.

    Uses the disk, not memory. Raises OSError, and whatever reading the chunks raises.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    head = most // 4
    end = _End(target, (most - head) // 2)
    size = 0
    try:
        with target.open("wb") as file:
            for chunk in chunks:
                taken = chunk[: max(0, head - size)]
                size += file.write(taken)
                if len(taken) < len(chunk):
                    end.write(chunk[len(taken) :])
            end.append_to(file)
    finally:
        end.remove()
    return end.dropped


class _End:
    """The last bytes of a stream, in two files. When the newer file is full, it replaces the older one."""

    def __init__(self, target: Path, half: int) -> None:
        self._older, self._newer = (target.with_name(f"{target.name}.end{number}") for number in (0, 1))
        self._half = half
        self.dropped = 0

    def write(self, data: bytes) -> None:
        with self._newer.open("ab") as file:
            file.write(data)
            full = file.tell() >= self._half
        if full:
            self.dropped += self._older.stat().st_size if self._older.exists() else 0
            os.replace(self._newer, self._older)

    def append_to(self, file: IO[bytes]) -> None:
        if self.dropped:
            file.write(b"\n[torchtriage left out %d bytes here]\n" % self.dropped)
        for piece in (self._older, self._newer):
            if piece.exists():
                with piece.open("rb") as rest:
                    shutil.copyfileobj(rest, file)

    def remove(self) -> None:
        self._older.unlink(missing_ok=True)
        self._newer.unlink(missing_ok=True)
