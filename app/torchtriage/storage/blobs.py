"""The bytes of stored logs, on a local disk or on S3. Each file's key is the sha256 of its uncompressed bytes."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from io import FileIO
from pathlib import Path
from typing import NamedTuple, TypeVar

from torchtriage.domain.incident import StoredLine
from torchtriage.errors import DamagedLog, NotFound, StorageUnavailable
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.block_features import BlockFeatures
from torchtriage.storage import zstd_frames
from torchtriage.storage.blob_writer import BlobWriter, concurrently, store_errors
from torchtriage.storage.durable_files import LocalFiles, sync_file, sync_files
from torchtriage.storage.s3_objects import AccessDenied, S3Objects
from torchtriage.storage.upload_spool import UploadSpool
from torchtriage.storage.zstd_frames import FrameReader

Made = TypeVar("Made")

log = logging.getLogger(__name__)
_MAX_LINE_LENGTH = 16 << 10  # maximum bytes of a line that are returned
_KNOWN_INDEXES = 256
_NAMED = lazy_regex(r"[0-9a-f]{2}/([0-9a-f]{64})\.zst")
_PROBE = "torchtriage"  # an object that exists if we could ever write


class Stored(NamedTuple):
    """A file of the store, and the time at which it was stored."""

    sha256: str
    at: datetime


class BlobStore:
    """The store of logs. `incoming` has the files that are being written."""

    def __init__(self, url: str, data_dir: Path) -> None:
        """`url` is a folder or `s3://bucket/prefix`. Creates missing folders. Raises StorageUnavailable if that fails,
        and MissingExtra if the library for S3 is not installed."""
        self._root = None if "://" in url else Path(url)
        self._indexes: OrderedDict[str, zstd_frames.Index] = OrderedDict()
        self._data_dir = data_dir
        with store_errors():
            self._objects = None if self._root else S3Objects(url)
            # For health checks: does not retry, so it answers faster than requests for logs do.
            self._probed = None if self._root else S3Objects(url, once=True)
            self._store = self._objects or LocalFiles(Path(url))
            self._identity = _identity(self._root) if self._root else None

    @cached_property
    def incoming(self) -> UploadSpool:
        """The folder for files being written. Created at the first write, because readers do not need it."""
        with store_errors():
            return UploadSpool((self._root or self._data_dir) / "incoming")

    @contextmanager
    def writing(self) -> Iterator[BlobWriter]:
        """Yields a file to write. If it is not finished, nothing remains. Raises StorageUnavailable."""
        handle, name = self._new_file(lambda folder: tempfile.mkstemp(dir=folder))
        try:
            with FileIO(handle, "wb") as file:
                yield BlobWriter(file, Path(name))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yields a folder for temporary files, which is deleted at the end. Raises StorageUnavailable."""
        made = self._new_file(lambda folder: tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True))
        with made as name:
            yield Path(name)

    def keep(self, writers: Iterable[BlobWriter]) -> None:
        """Moves finished files durably to their places. Can be called again if they were deleted since.

        Each file is synced before it gets its name. An existing file of the same name is verified, and replaced if
        damaged. Raises StorageUnavailable.
        """
        paths = {writer.sha256: writer.path for writer in writers}
        with store_errors():
            if self._objects is not None:
                concurrently(partial(self._upload, self._objects), list(paths.items()))
            elif self._root is not None:
                sync_files(list(paths.values()))
                named = (self._named(sha256, path, self._root) for sha256, path in paths.items())
                concurrently(sync_file, list(dict.fromkeys(named)))

    def _upload(self, objects: S3Objects, file: tuple[str, Path]) -> None:
        sha256, path = file
        if not (self.has(sha256) and self._is_whole(sha256)):
            objects.put(_key(sha256), path)

    def _named(self, sha256: str, path: Path, root: Path) -> Path:
        """Gives a synced file its name. Returns its folder, which must be synced, too."""
        place = root / _key(sha256)
        try:
            try:
                os.link(path, place)
            except FileNotFoundError:  # its folder does not exist yet, or the file being written was deleted
                place.parent.mkdir(exist_ok=True)
                sync_file(root)
                os.link(path, place)
        except FileExistsError:
            if not self._is_whole(sha256):
                _replace(place, path)
        return place.parent

    def _is_whole(self, sha256: str) -> bool:
        """Returns whether the stored file is readable and its content matches its key."""
        try:
            self.verify(sha256)
        except (DamagedLog, NotFound, StorageUnavailable) as error:
            log.warning("replaced a damaged stored log by the same log received again: %s", error.message)
            return False
        return True

    def verify(self, sha256: str) -> None:
        """Reads a whole file. Raises DamagedLog if its content does not match its key, NotFound and
        StorageUnavailable."""
        with self._reading(sha256):
            index, digest, last = self._index(sha256, fresh=True), hashlib.sha256(), b""
            for piece in self._reader(sha256).on(0):
                digest.update(piece)
                last = piece[-1:]
            if digest.hexdigest() != sha256 or index.open_end != (last not in (b"", b"\n")):
                raise zstd_frames.Damaged("its bytes do not match its checksum")

    def has(self, sha256: str) -> bool:
        """Returns whether a file exists. Raises StorageUnavailable."""
        with store_errors():
            try:
                self._store.size(_key(sha256))
            except FileNotFoundError:
                return False
            return True

    def missing(self, digests: Sequence[str]) -> list[str]:
        """Returns those of these files that do not exist. Raises StorageUnavailable."""
        there = map(self.has, digests) if self._root is not None else concurrently(self.has, digests)
        return [digest for digest, known in zip(digests, there, strict=True) if not known]

    def remove(self, sha256: str) -> None:
        """Deletes a file if it exists. Raises StorageUnavailable."""
        self._indexes.pop(sha256, None)
        with store_errors(), suppress(FileNotFoundError):
            self._store.remove(_key(sha256))

    def listed(self) -> Iterator[list[Stored]]:
        """Yields all files in pages. Raises StorageUnavailable."""
        with store_errors():
            for page in self._store.listed():
                found = ((_NAMED.fullmatch(key), at) for key, at in page)
                yield [Stored(name[1], at) for name, at in found if name]

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """Yields the uncompressed bytes in pieces of some megabytes. Raises NotFound, DamagedLog and
        StorageUnavailable."""
        with self._reading(sha256):
            # Not from the cache: a verdict depends on it, and the file may have been replaced.
            self._index(sha256, fresh=True)
            yield from self._reader(sha256).on(0)

    def lines(self, sha256: str, first: int, count: int) -> list[StoredLine]:
        """Returns at most `count` lines from line `first` (1-based) on. Reads only the frames that contain them.

        Raises NotFound, DamagedLog and StorageUnavailable.
        """
        with self._reading(sha256):
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
        self, sha256: str, line: int, back: bool = False, wanted: Callable[[BlockFeatures], bool] | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yields whole lines of the file frame by frame, each piece with the number of its first line. Starts at the
        frame with line `line`, and goes to the end or, with `back`, to the beginning. Skips frames whose known features
        are not `wanted`.

        Raises NotFound, DamagedLog and StorageUnavailable.
        """
        with self._reading(sha256):
            index, reader = self._index(sha256), self._reader(sha256)
            at = index.find(min(max(line, 1), index.lines))[0] if index.lines else 0
            for frame in range(at, -1, -1) if back else range(at, len(index.entries)):
                if wanted and index.marks and not wanted(index.marks[frame]):
                    continue
                yield from _segment(index, frame, reader.get(frame), reader.get(frame + 1))

    def check(self) -> None:
        """Raises StorageUnavailable if nothing can be written, or if the object store does not answer."""
        with self.writing() as file:
            file.write(bytes(1))
            file.flush()
        if self._probed is not None:
            with store_errors():
                try:
                    self._probed.size(_PROBE)
                except (FileNotFoundError, PermissionError, AccessDenied):
                    self._probed.put(_PROBE, b"torchtriage keeps logs here\n")

    @contextmanager
    def _reading(self, sha256: str) -> Iterator[None]:
        try:
            with store_errors(sha256):
                yield
        except NotFound:
            self._check_place()
            raise
        except (DamagedLog, StorageUnavailable):
            self._indexes.pop(sha256, None)  # the cached index may be of a file that was replaced since
            raise

    def _check_place(self) -> None:
        """Raises StorageUnavailable if the folder of logs was replaced: then a log missing there is not lost."""
        if self._root is not None:
            with store_errors():
                same = _identity(self._root) == self._identity
            if not same:
                raise StorageUnavailable(f"the log store is unavailable: {self._root} was replaced")

    def _new_file(self, make: Callable[[Path], Made]) -> Made:
        """Returns what `make` creates in the folder of files being written. Creates the folder again if it
        was deleted."""
        with store_errors():
            try:
                return make(self.incoming.folder)
            except FileNotFoundError:
                self._check_place()
                return make(self.incoming.again())

    def _index(self, sha256: str, fresh: bool = False) -> zstd_frames.Index:
        known = None if fresh else self._indexes.get(sha256)
        if known is None:
            known = self._indexes[sha256] = self._read_index(_key(sha256))
            if len(self._indexes) > _KNOWN_INDEXES:
                self._indexes.popitem(last=False)
        return known

    def _read_index(self, key: str) -> zstd_frames.Index:
        size, end = self._store.tail(key, zstd_frames.INDEX_GUESS)
        if not size:
            raise zstd_frames.Damaged("the file is empty")
        begins = size - zstd_frames.index_bytes(end)
        if 0 <= begins < size - len(end):
            end = bytes(self._store.part(key, begins, size))
        known = zstd_frames.load(end)
        if known.starts[-1] > begins:
            raise zstd_frames.Damaged("it is cut")
        if known.starts[-1] < begins:
            between = self._store.part(key, known.starts[-1], begins)
            known = zstd_frames.with_marks(known, bytes(between))
        return known

    def _reader(self, sha256: str) -> FrameReader:
        def read(start: int, end: int) -> memoryview:
            return memoryview(self._store.part(_key(sha256), start, end))

        return FrameReader(self._index(sha256), read)


def _replace(place: Path, path: Path) -> None:
    """Replaces a file by a synced one atomically. The synced one keeps its own name, too."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        os.link(path, Path(folder) / path.name)
        os.replace(Path(folder) / path.name, place)


def _identity(folder: Path) -> tuple[int, int]:
    """Returns the folder's device and inode, which change if another folder gets its name, as after an unmount."""
    state = folder.stat()
    return state.st_dev, state.st_ino


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}.zst"


def _segment(index: zstd_frames.Index, frame: int, piece: bytes, after: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that the index assigns to a frame, if any. The last one is completed from the frame `after` it;
    of a very long line, only the beginning."""
    first = index.first_line(frame)
    if first <= index.lines and (frame == 0 or index.entries[frame].feeds):
        end = after.find(b"\n", 0, _MAX_LINE_LENGTH)
        rest = after[: _MAX_LINE_LENGTH if end < 0 else end]
        yield first, piece[piece.find(b"\n") + 1 if frame else 0 :] + rest


def _pieces(chunks: Iterator[bytes], skip: int) -> Iterator[tuple[bytes, bool]]:
    """Yields the lines after the first `skip` line feeds, each with whether it was cut at the maximum length."""
    line = b""
    for chunk in chunks:
        start = 0
        for _ in range(skip):
            start = chunk.find(b"\n", start) + 1
        skip = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield _shown(line, chunk[start : min(end, start + _MAX_LINE_LENGTH + 1)])
            line, start = b"", end + 1
        line += chunk[start : start + _MAX_LINE_LENGTH + 1 - len(line)]
    yield _shown(line, b"")


def _shown(begin: bytes, rest: bytes) -> tuple[bytes, bool]:
    line = begin + rest
    return line[:_MAX_LINE_LENGTH], len(line) > _MAX_LINE_LENGTH
