"""Writes one file of the log store: bytes in, independent zstd frames with an index of their lines out."""

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

_LONGEST_LINE = 16 << 10  # bytes of one that goes on in the next frame
_BESIDE = 16  # files that are worked on at the same time
_OPTIONS = {int(CompressionParameter.compression_level): 3, int(CompressionParameter.checksum_flag): 1}


class BlobWriter:
    """One file that is being written; get it from `BlobStore.writing`, finish it and hand it to `BlobStore.keep`."""

    def __init__(self, file: FileIO, path: Path) -> None:
        self._file, self.path = file, path
        self._digest = hashlib.sha256()
        self._waiting = bytearray()
        self._entries: list[zstd_frames.Entry] = []
        self._marks: list[BlockFeatures] = []
        self._cut = b""  # the line that the last frame ends in
        self.bytes = 0
        self._last = b""

    def write(self, data: bytes) -> None:
        self._digest.update(data)
        self.bytes += len(data)
        self._last = data[-1:] or self._last
        self._waiting += data
        while len(self._waiting) >= zstd_frames.FRAME:
            frame = self._framed(bytes(self._waiting[: zstd_frames.FRAME]))
            with told():
                _write(self._file, frame)
            del self._waiting[: zstd_frames.FRAME]

    def flush(self, behind: Callable[[], bytes] = bytes) -> None:
        """Writes what waits for its frame to be full, and what is to stand `behind` it."""
        last = b""
        if self._waiting:
            last = self._framed(bytes(self._waiting))
            self._waiting.clear()
        with told():
            _write(self._file, last + behind())

    def finish(self) -> tuple[str, int, int]:
        """Ends the file -> (sha256, bytes, lines) of what was written. Raises StorageUnavailable."""
        self.flush(lambda: self._index().dump())  # in one go, as most files are small
        with told():
            self._file.close()
        return self.sha256, self.bytes, self._index().lines

    @property
    def sha256(self) -> str:
        """-> the digest of what was written, under which the file is kept."""
        return self._digest.hexdigest()

    def _index(self) -> zstd_frames.Index:
        marks = self._marks if len(self._marks) > 1 else ()
        return zstd_frames.Index(self._entries, self._last not in (b"", b"\n"), marks)

    def _framed(self, data: bytes) -> bytes:
        """-> a frame that holds the data, which the index reports from here on."""
        compressed = compress(data, options=_OPTIONS)
        self._entries.append(zstd_frames.Entry(len(compressed), len(data), data.count(b"\n")))
        self._mark(data)
        return compressed

    def _mark(self, data: bytes) -> None:
        """Keeps the features of a frame. A small log is one frame, and nobody needs to find one there."""
        if not self._marks and len(data) < zstd_frames.FRAME:
            return
        if self._marks:  # the line that goes on here, or begins right here, counts among those of the frame before
            rest = data[: data.find(b"\n", 0, _LONGEST_LINE) + 1 or _LONGEST_LINE]
            self._marks[-1] |= features_of(self._cut + rest)
        self._marks.append(features_of(data))
        self._cut = data[data.rfind(b"\n") + 1 :][-_LONGEST_LINE:]


def beside(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """-> what `work` makes of each, some at the same time: a disk brings many files to rest in the time that it takes
    for one, and an object store answers many questions in the time of one.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_BESIDE, thread_name_prefix="files") as pool:
        return list(pool.map(work, items))


def spool(chunks: Iterable[bytes], path: Path) -> int:
    """Writes a new file -> its bytes. Raises StorageUnavailable, and what reading the chunks raises."""
    size = 0
    with told():
        file = FileIO(path, "wb")
    with file:
        for chunk in chunks:
            with told():
                _write(file, chunk)
            size += len(chunk)
    return size


@contextmanager
def told(read: str = "") -> Iterator[None]:
    """Turns what the log store raises into StorageUnavailable; where a log is `read`, by its digest or name, also into
    NotFound and DamagedLog. Without one, what is not there is a folder of ours."""
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
    # Unbuffered, as a full buffer on a full disk would fail once more when the file is closed.
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
