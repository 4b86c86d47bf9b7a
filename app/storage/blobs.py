"""The bytes of stored logs, each file under the sha256 of its uncompressed bytes, on a local disk or on S3."""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import PermissionDeniedError
from obstore.store import LocalStore, ObjectStore, from_url

from app.domain.incident import StoredLine
from app.reading.landmarks import Landmarks
from app.storage import frames
from app.storage.blob_writer import BlobWriter, beside, told
from app.storage.frame_reader import FrameReader
from app.storage.incoming import Incoming
from app.storage.settling import settle, settle_one

if TYPE_CHECKING:
    from obstore.store import RetryConfig

_LONGEST_LINE = 16 << 10  # bytes of a line that are shown
_KNOWN_INDEXES = 256
_PROBE = "torchtriage"  # an object that is there where we could write once
_ONCE: RetryConfig = {"max_retries": 1, "retry_timeout": timedelta(seconds=5)}


class BlobStore:
    """Where stored files are kept. `incoming` is where they are while they are being written."""

    def __init__(self, url: str, data_dir: Path) -> None:
        """`url` is a folder or `s3://bucket/prefix`. Makes the folders; raises StorageUnavailable where it can't."""
        self._root = None if "://" in url else Path(url)
        self._indexes: OrderedDict[str, frames.Index] = OrderedDict()
        self._data_dir = data_dir
        with told():
            self._store: ObjectStore = LocalStore(self._root, mkdir=True) if self._root else from_url(url)
            # Whoever asks whether it is there does not wait as long as a log does.
            self._probed = None if self._root else from_url(url, retry_config=_ONCE)

    @cached_property
    def incoming(self) -> Incoming:
        """Made when something is first written: who only reads needs none."""
        with told():
            return Incoming((self._root or self._data_dir) / "incoming")

    @contextmanager
    def writing(self) -> Iterator[BlobWriter]:
        """A file to write; what is not finished at the end leaves nothing behind. Raises StorageUnavailable."""
        with told():
            handle, name = tempfile.mkstemp(dir=self.incoming.folder)
        try:
            with FileIO(handle, "wb") as file:
                yield BlobWriter(file, Path(name))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def keep(self, writers: Iterable[BlobWriter]) -> None:
        """Puts finished files in their places, durably; can be done again where they were removed since.

        A file is settled before it has its name, so what has one is whole. Raises StorageUnavailable.
        """
        paths = {writer.sha256: writer.path for writer in writers}
        with told():
            if self._root is None:
                beside(self._upload, list(paths.items()))
                return
            settle(list(paths.values()))
            named = (_named(path, self._root, _key(sha256)) for sha256, path in paths.items())
            beside(settle_one, list(dict.fromkeys(named)))

    def _upload(self, file: tuple[str, Path]) -> None:
        sha256, path = file
        if not self.has(sha256):
            obstore.put(self._store, _key(sha256), path)

    def has(self, sha256: str) -> bool:
        if self._root is not None:
            return (self._root / _key(sha256)).exists()
        try:
            obstore.head(self._store, _key(sha256))
        except FileNotFoundError:
            return False
        return True

    def missing(self, digests: Sequence[str]) -> list[str]:
        """-> those of these files that are not there."""
        there = map(self.has, digests) if self._root is not None else beside(self.has, digests)
        return [digest for digest, known in zip(digests, there, strict=True) if not known]

    def remove(self, sha256: str) -> None:
        """Forgets a file; one that is not there is no error."""
        self._indexes.pop(sha256, None)
        with told(), suppress(FileNotFoundError):
            obstore.delete(self._store, _key(sha256))

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """Yields the uncompressed bytes, some megabytes at a time. Raises NotFound and StorageUnavailable."""
        with told(sha256):
            yield from self._reader(sha256).on(0)

    def lines(self, sha256: str, first: int, count: int) -> list[StoredLine]:
        """-> at most `count` lines from `first` (1 is the file's first) on; reads only the frames that hold them.

        Raises NotFound and StorageUnavailable.
        """
        with told(sha256):
            index = self._index(sha256)
            if not 1 <= first <= index.lines:
                return []
            frame, skip = index.find(first)
            pieces = _pieces(self._reader(sha256).on(frame), skip)
            found = []
            for number in range(first, min(first + count, index.lines + 1)):
                raw, cut = next(pieces)
                found.append(StoredLine(number, raw.decode("utf-8", "replace").removesuffix("\r"), cut))
            return found

    def segments(
        self, sha256: str, line: int, back: bool = False, wanted: Callable[[Landmarks], bool] | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yields the file in whole lines, frame by frame, each with the number of its first line: from the frame that
        holds `line` on, or from there back to the beginning. Frames whose landmarks are known and not `wanted` are left
        out unread. Raises NotFound and StorageUnavailable.
        """
        with told(sha256):
            index, reader = self._index(sha256), self._reader(sha256)
            at = index.find(min(max(line, 1), index.lines))[0] if index.lines else 0
            for frame in range(at, -1, -1) if back else range(at, len(index.entries)):
                if wanted and index.marks and not wanted(index.marks[frame]):
                    continue
                yield from _segment(index, frame, reader.get(frame), reader.get(frame + 1))

    def check(self) -> None:
        """Raises StorageUnavailable where nothing can be written, or the object store is not there."""
        with self.writing() as file:
            file.write(bytes(1))
            file.flush()
        if self._probed is not None:
            with told():
                try:
                    obstore.head(self._probed, _PROBE)
                except (
                    FileNotFoundError,
                    PermissionError,
                    PermissionDeniedError,
                ):
                    obstore.put(self._probed, _PROBE, b"torchtriage keeps logs here\n")

    def _index(self, sha256: str) -> frames.Index:
        known = self._indexes.get(sha256)
        if known is None:
            key = _key(sha256)
            found = obstore.get(self._store, key, options={"range": {"suffix": frames.INDEX_GUESS}})
            size, end = found.meta["size"], bytes(found.bytes())
            begins = size - frames.index_bytes(end)
            if begins < size - len(end):
                end = bytes(obstore.get_range(self._store, key, start=begins, end=size))
            known = frames.load(end)
            if known.starts[-1] < begins:
                between = obstore.get_range(self._store, key, start=known.starts[-1], end=begins)
                known = frames.with_marks(known, bytes(between))
            self._indexes[sha256] = known
            if len(self._indexes) > _KNOWN_INDEXES:
                self._indexes.popitem(last=False)
        return known

    def _reader(self, sha256: str) -> FrameReader:
        def read(start: int, end: int) -> memoryview:
            return memoryview(obstore.get_range(self._store, _key(sha256), start=start, end=end))

        return FrameReader(self._index(sha256), read)


def _named(path: Path, root: Path, key: str) -> Path:
    """Gives a settled file its name -> the folder that holds it, which is to be settled too."""
    place = root / key
    if not place.parent.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        settle_one(root)
    with suppress(FileExistsError):
        os.link(path, place)
    return place.parent


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}.zst"


def _segment(index: frames.Index, frame: int, piece: bytes, after: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that `find` says are in a frame, whole by what stands `after` it, if there are any. Of a line
    that goes on for long only the begin is there."""
    first = index.first_line(frame)
    if first <= index.lines and (frame == 0 or index.entries[frame].feeds):
        end = after.find(b"\n", 0, _LONGEST_LINE)
        rest = after[: _LONGEST_LINE if end < 0 else end]
        yield first, piece[piece.find(b"\n") + 1 if frame else 0 :] + rest


def _pieces(chunks: Iterator[bytes], skip: int) -> Iterator[tuple[bytes, bool]]:
    """Yields the lines after the first `skip` line feeds, each cut at the longest that is shown, and whether it was."""
    line = b""
    for chunk in chunks:
        start = 0
        for _ in range(skip):
            start = chunk.find(b"\n", start) + 1
        skip = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield _shown(line, chunk[start : min(end, start + _LONGEST_LINE + 1)])
            line, start = b"", end + 1
        line += chunk[start : start + _LONGEST_LINE + 1 - len(line)]
    yield _shown(line, b"")


def _shown(begin: bytes, rest: bytes) -> tuple[bytes, bool]:
    line = begin + rest
    return line[:_LONGEST_LINE], len(line) > _LONGEST_LINE
