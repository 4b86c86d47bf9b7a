"""The form of a stored file: zstd frames that can be read one by one, and an index of them at the end.

The index is a skippable frame, so `zstd -d` reads the whole as it stands. Before it, where there are two frames or
more, stands another one with the landmarks of each; files that were stored before there were any go without.
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

MOST = 8 << 20  # compressed bytes read at a time
_FIRST = 1 << 20  # of the second reading of who goes on from frame to frame
_HELD = 2  # frames: a line can begin in one and end in the next

FRAME = 4 << 20  # bytes of the log in one frame
_SKIPPABLE = struct.Struct("<II")  # magic, bytes that follow
_ENTRY = struct.Struct("<III")  # bytes compressed, bytes uncompressed, line feeds
_END = struct.Struct("<IB3x8s")  # entries, whether the file's last line lacks its line feed, form
_MAGIC = 0x184D2A5E
_FORM = b"ttlogix1"
END_BYTES = _END.size
INDEX_GUESS = 64 << 10  # bytes at the end that hold the index of most files


class Damaged(ValueError):
    """The stored bytes are not as they were written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One frame: its sizes, and how many line feeds it holds."""

    compressed: int
    uncompressed: int
    feeds: int


class Index:
    """Where the frames of a stored file are, and which lines they hold."""

    def __init__(self, entries: Sequence[Entry], open_end: bool, marks: Sequence[BlockFeatures] = ()) -> None:
        """`marks` are those of each frame, of the lines that begin in it, or none."""
        self.entries = tuple(entries)
        self.marks = tuple(marks)
        self.starts = (0, *accumulate(entry.compressed for entry in self.entries))
        self._feeds = (0, *accumulate(entry.feeds for entry in self.entries))
        self.bytes = sum(entry.uncompressed for entry in self.entries)
        self.lines = self._feeds[-1] + open_end
        self.open_end = open_end

    def find(self, line: int) -> tuple[int, int]:
        """-> (frame, line feeds to skip in it) where a line of 1 … `lines` starts."""
        frame = max(bisect_left(self._feeds, line - 1) - 1, 0)
        return frame, line - 1 - self._feeds[frame]

    def first_line(self, frame: int) -> int:
        """-> the first line that `find` says is in the frame; the next frame's, where it holds no line feed."""
        return self._feeds[frame] + (2 if frame else 1)

    def dump(self) -> bytes:
        """-> landmarks and index as the end of a stored file."""
        marks = b"".join(mark.dump() for mark in self.marks)
        before = _SKIPPABLE.pack(_MAGIC, len(marks)) + marks if marks else b""
        content = b"".join(_ENTRY.pack(e.compressed, e.uncompressed, e.feeds) for e in self.entries)
        content += _END.pack(len(self.entries), self.open_end, _FORM)
        return before + _SKIPPABLE.pack(_MAGIC, len(content)) + content


def index_bytes(end: bytes) -> int:
    """-> how many bytes at the end of a file are its index, from its last END_BYTES; raises Damaged."""
    if len(end) < END_BYTES or end[-8:] != _FORM:
        raise Damaged("no index at the end")
    entries: int = _END.unpack(end[-END_BYTES:])[0]
    return _SKIPPABLE.size + entries * _ENTRY.size + END_BYTES


def load(end: bytes) -> Index:
    """-> the index that `end`, at least the last `index_bytes` of a file, holds; its landmarks come later. Raises
    Damaged."""
    size = index_bytes(end)
    if size > len(end):
        raise Damaged("the index is cut")
    _check_skippable(end[len(end) - size :])
    content = end[len(end) - size + _SKIPPABLE.size : len(end) - END_BYTES]
    open_end = bool(_END.unpack(end[-END_BYTES:])[1])
    return Index([Entry(*numbers) for numbers in _ENTRY.iter_unpack(content)], open_end)


def with_marks(index: Index, between: bytes) -> Index:
    """-> the index with the landmarks that stand `between` the frames and it; as it is where those are not as known.
    Raises Damaged where something else is there."""
    _check_skippable(between)
    stored = between[_SKIPPABLE.size :]
    if len(stored) != len(index.entries) * block_features.SIZE:
        return index
    parts = (stored[at : at + block_features.SIZE] for at in range(0, len(stored), block_features.SIZE))
    return Index(index.entries, index.open_end, [block_features.load(part) for part in parts])


def _check_skippable(data: bytes) -> None:
    """Raises Damaged where this is not one skippable frame of ours."""
    if len(data) < _SKIPPABLE.size or _SKIPPABLE.unpack_from(data) != (_MAGIC, len(data) - _SKIPPABLE.size):
        raise Damaged("the index is broken")


class FrameReader:
    """One frame is read alone; who goes on to the next ones gets more at a time, as each reading of an object store
    takes its while."""

    def __init__(self, index: Index, read: Callable[[int, int], bytes | memoryview]) -> None:
        """`read` gives the stored bytes from one offset to another."""
        self._index, self._read = index, read
        self._data = memoryview(b"")
        self._first = self._after = -1  # frames that `_data` holds
        self._span = 0
        self._held: OrderedDict[int, bytes] = OrderedDict()

    def get(self, frame: int) -> bytes:
        """-> the frame's bytes; nothing behind the last one. Raises Damaged and ZstdError where they are others than
        were written."""
        if frame >= len(self._index.entries):
            return b""
        if frame not in self._held:
            if not self._first <= frame < self._after:
                self._fetch(frame)
            start = self._index.starts[self._first]
            piece = self._data[self._index.starts[frame] - start : self._index.starts[frame + 1] - start]
            data, told = decompress(piece), self._index.entries[frame]
            if (len(data), data.count(b"\n")) != (told.uncompressed, told.feeds):
                raise Damaged("a frame is not what the index says")
            self._held[frame] = data
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
        return self._held[frame]

    def on(self, frame: int) -> Iterator[bytes]:
        """Yields the frames from one on."""
        yield from map(self.get, range(frame, len(self._index.entries)))

    def _fetch(self, frame: int) -> None:
        starts = self._index.starts
        self._span = min(max(_FIRST, self._span * 4), MOST) if frame == self._after else 0
        after = frame + 1
        while after < len(self._index.entries) and starts[after + 1] - starts[frame] <= self._span:
            after += 1
        self._data = memoryview(self._read(starts[frame], starts[after]))
        self._first, self._after = frame, after
