"""Reads the frames of one stored file: a frame's number in, its uncompressed bytes out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from torchtriage.reading.zstd import decompress
from torchtriage.storage.zstd_frames import Damaged, Index

MOST = 8 << 20  # compressed bytes read at a time
_FIRST = 1 << 20  # of the second reading of who goes on from frame to frame
_HELD = 2  # frames: a line can begin in one and end in the next


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
