"""The format of a stored file: zstd frames that can be read separately, and an index of them at the end.

The index is a skippable frame, so `zstd -d` can read the whole file. With two or more frames, another skippable frame
before the index has the features of each. Older files have no features.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from torchtriage.reading import block_features
from torchtriage.reading.block_features import BlockFeatures
from torchtriage.reading.zstd import decompress

MAX_READ_BYTES = 8 << 20  # compressed bytes per read
_FIRST = 1 << 20  # bytes of the second read of consecutive frames
_HELD = 2  # frames in memory: a line can begin in one and end in the next

FRAME = 4 << 20  # bytes of the log in one frame
_SKIPPABLE = struct.Struct("<II")  # magic, length
_ENTRY = struct.Struct("<III")  # bytes compressed, bytes uncompressed, line feeds
_END = struct.Struct("<IB3x8s")  # entries, whether the last line has no line feed, format
_MAGIC = 0x184D2A5E
_FORM = b"ttlogix1"
END_BYTES = _END.size
INDEX_GUESS = 64 << 10  # bytes at the end that contain the index of most files


class Damaged(ValueError):
    """The stored bytes have changed since they were written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One frame: its sizes in bytes, and its number of line feeds."""

    compressed: int
    uncompressed: int
    feeds: int


class Index:
    """The positions of a stored file's frames, and the lines in them."""

    def __init__(self, entries: Sequence[Entry], open_end: bool, marks: Sequence[BlockFeatures] = ()) -> None:
        """`marks` are the features of the lines that begin in each frame; empty if unknown."""
        self.entries = tuple(entries)
        self.marks = tuple(marks)
        self.starts = (0, *accumulate(entry.compressed for entry in self.entries))
        self._feeds = (0, *accumulate(entry.feeds for entry in self.entries))
        self.bytes = sum(entry.uncompressed for entry in self.entries)
        self.lines = self._feeds[-1] + open_end
        self.open_end = open_end

    def find(self, line: int) -> tuple[int, int]:
        """Returns (frame, line feeds to skip in it) for the start of a line from 1 to `lines`."""
        frame = max(bisect_left(self._feeds, line - 1) - 1, 0)
        return frame, line - 1 - self._feeds[frame]

    def first_line(self, frame: int) -> int:
        """Returns the first line that `find` assigns to the frame. If the frame has no line feed, that is the next
        frame's line."""
        return self._feeds[frame] + (2 if frame else 1)

    def dump(self) -> bytes:
        """Returns features and index, as they are written at the end of a stored file."""
        marks = b"".join(mark.dump() for mark in self.marks)
        before = _SKIPPABLE.pack(_MAGIC, len(marks)) + marks if marks else b""
        content = b"".join(_ENTRY.pack(e.compressed, e.uncompressed, e.feeds) for e in self.entries)
        content += _END.pack(len(self.entries), self.open_end, _FORM)
        return before + _SKIPPABLE.pack(_MAGIC, len(content)) + content


def index_bytes(end: bytes) -> int:
    """Returns the size of the index in bytes, read from the last END_BYTES of a file. Raises Damaged."""
    if len(end) < END_BYTES or end[-8:] != _FORM:
        raise Damaged("no index at the end")
    entries: int = _END.unpack(end[-END_BYTES:])[0]
    return _SKIPPABLE.size + entries * _ENTRY.size + END_BYTES


def load(end: bytes) -> Index:
    """Returns the index in `end`, which has at least the last `index_bytes` of a file; without features. Raises
    Damaged."""
    size = index_bytes(end)
    if size > len(end):
        raise Damaged("the index is cut")
    _check_skippable(end[len(end) - size :])
    content = end[len(end) - size + _SKIPPABLE.size : len(end) - END_BYTES]
    open_end = bool(_END.unpack(end[-END_BYTES:])[1])
    return Index([Entry(*numbers) for numbers in _ENTRY.iter_unpack(content)], open_end)


def with_marks(index: Index, between: bytes) -> Index:
    """Returns the index with the features from the bytes `between` frames and index. Returns it unchanged if the
    features have an unknown format. Raises Damaged if the bytes are no skippable frame."""
    _check_skippable(between)
    stored = between[_SKIPPABLE.size :]
    if len(stored) != len(index.entries) * block_features.SIZE:
        return index
    parts = (stored[at : at + block_features.SIZE] for at in range(0, len(stored), block_features.SIZE))
    return Index(index.entries, index.open_end, [block_features.load(part) for part in parts])


def _check_skippable(data: bytes) -> None:
    """Raises Damaged if this is not one skippable frame of ours."""
    if len(data) < _SKIPPABLE.size or _SKIPPABLE.unpack_from(data) != (_MAGIC, len(data) - _SKIPPABLE.size):
        raise Damaged("the index is broken")


class FrameReader:
    """Reads frames. The first read gets one frame; consecutive reads get more at a time, because each request to an
    object store takes time."""

    def __init__(self, index: Index, read: Callable[[int, int], bytes | memoryview]) -> None:
        """`read` returns the stored bytes from one offset up to another."""
        self._index, self._read = index, read
        self._data = memoryview(b"")
        self._first = self._after = -1  # the frames in `_data`, first and after last
        self._span = 0
        self._held: OrderedDict[int, bytes] = OrderedDict()

    def get(self, frame: int) -> bytes:
        """Returns the frame's uncompressed bytes, empty after the last frame. Raises Damaged or ZstdError if they have
        changed."""
        if frame >= len(self._index.entries):
            return b""
        if frame not in self._held:
            if not self._first <= frame < self._after:
                self._fetch(frame)
            start = self._index.starts[self._first]
            piece = self._data[self._index.starts[frame] - start : self._index.starts[frame + 1] - start]
            data, sizes = decompress(piece), self._index.entries[frame]
            if (len(data), data.count(b"\n")) != (sizes.uncompressed, sizes.feeds):
                raise Damaged("a frame is not what the index says")
            self._held[frame] = data
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
        return self._held[frame]

    def on(self, frame: int) -> Iterator[bytes]:
        """Yields the frames from `frame` on."""
        yield from map(self.get, range(frame, len(self._index.entries)))

    def _fetch(self, frame: int) -> None:
        starts = self._index.starts
        self._span = min(max(_FIRST, self._span * 4), MAX_READ_BYTES) if frame == self._after else 0
        after = frame + 1
        while after < len(self._index.entries) and starts[after + 1] - starts[frame] <= self._span:
            after += 1
        self._data = memoryview(self._read(starts[frame], starts[after]))
        self._first, self._after = frame, after
