"""Keeps a stream of any length in a file of at most so many bytes: its beginning and its end, with a line between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path


def keep_log(chunks: Iterable[bytes], target: Path, most: int) -> int:
    """Writes at most about `most` bytes of the chunks: a quarter from the beginning, the rest from the end.

    -> how many bytes were left out. Needs no memory; raises OSError, and what reading the chunks raises.
    """
    head, half = most // 4, (most - most // 4) // 2
    target.parent.mkdir(parents=True, exist_ok=True)
    ends = [target.with_name(target.name + ".end0"), target.with_name(target.name + ".end1")]
    size = dropped = 0
    try:
        with target.open("wb") as begin:
            end = None
            for chunk in chunks:
                taken = chunk[: max(0, head - size)]
                begin.write(taken)
                size += len(taken)
                if len(taken) == len(chunk):
                    continue
                if end is None:
                    end = ends[1].open("wb")
                elif end.tell() >= half:  # The older of the two pieces goes, this one becomes the older.
                    end.close()
                    dropped += ends[0].stat().st_size if ends[0].exists() else 0
                    os.replace(ends[1], ends[0])
                    end = ends[1].open("wb")
                end.write(chunk[len(taken) :])
            if end is not None:
                end.close()
            if dropped:
                begin.write(b"\n[torchtriage left out %d bytes here]\n" % dropped)
            for piece in ends:
                if piece.exists():
                    with piece.open("rb") as rest:
                        shutil.copyfileobj(rest, begin)
    finally:
        for piece in ends:
            piece.unlink(missing_ok=True)
    return dropped
