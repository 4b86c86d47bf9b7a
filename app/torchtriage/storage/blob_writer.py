"""Writes one file of the log store: independent zstd frames with an index of lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import TypeVar

from torchtriage.errors import DamagedLog, NotFound, StorageUnavailable
from torchtriage.reading.block_features import BlockFeatures, features_of
from torchtriage.reading.zstd import CompressionParameter, ZstdError, compress
from torchtriage.storage import zstd_frames

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_LINE_LENGTH = 16 << 10  # bytes of a line that continues in the next frame
_MAX_OPEN_FILES = 16  # files that are handled at the same time
_OPTIONS = {int(CompressionParameter.compression_level): 3, int(CompressionParameter.checksum_flag): 1}


class BlobWriter:
    """One file that is being written. Get it from `BlobStore.writing`, finish it, then pass it to `BlobStore.keep`."""

    def __init__(self, file: FileIO, path: Path) -> None:
        self._file, self.path = file, path
        self._digest = hashlib.sha256()
        self._waiting = bytearray()
        self._entries: list[zstd_frames.Entry] = []
        self._marks: list[BlockFeatures] = []
        self._cut = b""  # the line that continues after the last frame
        self.bytes = 0
        self._last = b""

    def write(self, data: bytes) -> None:
        self._digest.update(data)
        self.bytes += len(data)
        self._last = data[-1:] or self._last
        self._waiting += data
        while len(self._waiting) >= zstd_frames.FRAME:
            frame = self._framed(bytes(self._waiting[: zstd_frames.FRAME]))
            with store_errors():
                _write(self._file, frame)
            del self._waiting[: zstd_frames.FRAME]

    def flush(self, behind: Callable[[], bytes] = bytes) -> None:
        """Writes the data that waits for a full frame, and then the result of `behind`."""
        last = b""
        if self._waiting:
            last = self._framed(bytes(self._waiting))
            self._waiting.clear()
        with store_errors():
            _write(self._file, last + behind())

    def finish(self) -> tuple[str, int, int]:
        """Ends the file. Returns (sha256, bytes, lines) of the uncompressed content. Raises StorageUnavailable."""
        self.flush(lambda: self._index().dump())  # in one write, because most files are small
        with store_errors():
            self._file.close()
        return self.sha256, self.bytes, self._index().lines

    @property
    def sha256(self) -> str:
        """The sha256 of the uncompressed content, which is the file's key."""
        return self._digest.hexdigest()

    def _index(self) -> zstd_frames.Index:
        marks = self._marks if len(self._marks) > 1 else ()
        return zstd_frames.Index(self._entries, self._last not in (b"", b"\n"), marks)

    def _framed(self, data: bytes) -> bytes:
        """Returns the data as a compressed frame and adds the frame to the index."""
        compressed = compress(data, options=_OPTIONS)
        self._entries.append(zstd_frames.Entry(len(compressed), len(data), data.count(b"\n")))
        self._mark(data)
        return compressed

    def _mark(self, data: bytes) -> None:
        """Stores the features of a frame. A log of only one frame needs none."""
        if not self._marks and len(data) < zstd_frames.FRAME:
            return
        if self._marks:  # a line that continues or begins here also counts for the frame before
            rest = data[: data.find(b"\n", 0, _MAX_LINE_LENGTH) + 1 or _MAX_LINE_LENGTH]
            self._marks[-1] |= features_of(self._cut + rest)
        self._marks.append(features_of(data))
        self._cut = data[data.rfind(b"\n") + 1 :][-_MAX_LINE_LENGTH:]


def concurrently(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Calls `work` for each item, several at a time: a disk syncs many files in the time of one, and an object store
    answers many requests in the time of one. Returns the results in order."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_MAX_OPEN_FILES, thread_name_prefix="files") as pool:
        return list(pool.map(work, items))


def spool(chunks: Iterable[bytes], path: Path) -> int:
    """Writes a new file and returns its size in bytes. Raises StorageUnavailable and the errors of reading
    the chunks."""
    size = 0
    with store_errors():
        file = FileIO(path, "wb")
    with file:
        for chunk in chunks:
            with store_errors():
                _write(file, chunk)
            size += len(chunk)
    return size


@contextmanager
def store_errors(read: str = "") -> Iterator[None]:
    """Converts errors of the log store to StorageUnavailable. If `read` names a log by digest or file name, also to
    NotFound and DamagedLog. Without it, a missing file counts as a missing folder of ours."""
    try:
        yield
    except (ZstdError, zstd_frames.Damaged) as error:
        raise DamagedLog(f"the stored log is damaged: {read}: {_reason(error)}", sha256=read) from error
    except OSError as error:
        if read and isinstance(error, FileNotFoundError):
            raise NotFound("the log no longer exists", sha256=read) from error
        raise StorageUnavailable(f"the log store is unavailable: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).split("\n")[0]


def _write(file: FileIO, data: bytes) -> None:
    # Unbuffered, because a full buffer on a full disk would fail again when the file is closed.
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
