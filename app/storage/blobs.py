"""The bytes of stored logs, each file under the sha256 of its uncompressed bytes, on a local disk or on S3."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from app.domain.incident import StoredLine
from app.errors import NotFound
from app.reading.zstd import CompressionParameter, ZstdError, compress, decompress
from app.storage import frames
from app.storage.database import StorageUnavailable
from app.storage.incoming import Incoming

_OPTIONS = {int(CompressionParameter.compression_level): 3, int(CompressionParameter.checksum_flag): 1}
_READ = 8 << 20  # compressed bytes read at a time
_LONGEST_LINE = 16 << 10  # bytes of a line that are shown
_KNOWN_INDEXES = 256


class BlobStore:
    """Where stored files are kept. `incoming` is where they are while they are being written."""

    def __init__(self, url: str, data_dir: Path) -> None:
        """`url` is a folder or `s3://bucket/prefix`. Makes the folders; raises StorageUnavailable where it can't."""
        self._root = None if "://" in url else Path(url)
        self._indexes: OrderedDict[str, frames.Index] = OrderedDict()
        with _told():
            self.incoming = Incoming((self._root or data_dir) / "incoming")
            self._store: ObjectStore = LocalStore(self._root) if self._root else from_url(url)

    @contextmanager
    def writing(self) -> Iterator[BlobWriter]:
        """A file to write; what is not finished at the end leaves nothing behind. Raises StorageUnavailable."""
        with _told():
            handle, name = tempfile.mkstemp(dir=self.incoming.folder)
        try:
            with FileIO(handle, "wb") as file:
                yield BlobWriter(self, file, Path(name))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def put(self, path: Path, sha256: str) -> None:
        """Takes a finished, synced local file, which stays where it is; once this returns, the copy survives a power
        loss, unless somebody removed it meanwhile.
        """
        if self._root is None:
            if not self.has(sha256):
                obstore.put(self._store, _key(sha256), path)
            return
        place = self._root / _key(sha256)
        if not place.parent.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            _sync(self._root)
        try:
            os.link(path, place)
        except FileExistsError:
            with suppress(FileNotFoundError):
                _sync(place)  # another that wrote the same may still be on its way
        _sync(place.parent)

    def has(self, sha256: str) -> bool:
        if self._root is not None:
            return (self._root / _key(sha256)).exists()
        try:
            obstore.head(self._store, _key(sha256))
        except FileNotFoundError:
            return False
        return True

    def remove(self, sha256: str) -> None:
        """Forgets a file; one that is not there is no error."""
        self._indexes.pop(sha256, None)
        with _told(), suppress(FileNotFoundError):
            obstore.delete(self._store, _key(sha256))

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """Yields the uncompressed bytes, some megabytes at a time. Raises NotFound and StorageUnavailable."""
        with _told(sha256):
            yield from self._frames(sha256, self._index(sha256), 0)

    def lines(self, sha256: str, first: int, count: int) -> list[StoredLine]:
        """-> at most `count` lines from `first` (1 is the file's first) on; reads only the frames that hold them.

        Raises NotFound and StorageUnavailable.
        """
        with _told(sha256):
            index = self._index(sha256)
            if not 1 <= first <= index.lines:
                return []
            frame, skip = index.find(first)
            pieces = _pieces(self._frames(sha256, index, frame), skip)
            found = []
            for number in range(first, min(first + count, index.lines + 1)):
                raw, cut = next(pieces)
                found.append(StoredLine(number, raw.decode("utf-8", "replace").removesuffix("\r"), cut))
            return found

    def check(self) -> None:
        """Raises StorageUnavailable where nothing can be written."""
        with self.writing() as file:
            file.write(bytes(1))
            file.flush()

    def _index(self, sha256: str) -> frames.Index:
        known = self._indexes.get(sha256)
        if known is None:
            key = _key(sha256)
            found = obstore.get(self._store, key, options={"range": {"suffix": frames.INDEX_GUESS}})
            size, end = found.meta["size"], bytes(found.bytes())
            wanted = frames.index_bytes(end)
            if wanted > len(end):
                end = bytes(obstore.get_range(self._store, key, start=size - wanted, end=size))
            known = self._indexes[sha256] = frames.load(end)
            if len(self._indexes) > _KNOWN_INDEXES:
                self._indexes.popitem(last=False)
        return known

    def _frames(self, sha256: str, index: frames.Index, first: int) -> Iterator[bytes]:
        """Yields the uncompressed frames from `first` on."""
        while first < len(index.entries):
            start, after = index.starts[first], first + 1
            while after < len(index.entries) and index.starts[after + 1] - start <= _READ:
                after += 1
            data = memoryview(obstore.get_range(self._store, _key(sha256), start=start, end=index.starts[after]))
            for frame in range(first, after):
                piece = data[index.starts[frame] - start : index.starts[frame + 1] - start]
                yield decompress(piece)
            first = after


class BlobWriter:
    """One file that is being written; get it from `BlobStore.writing`."""

    def __init__(self, store: BlobStore, file: FileIO, path: Path) -> None:
        self._store, self._file, self._path = store, file, path
        self._digest = hashlib.sha256()
        self._waiting = bytearray()
        self._entries: list[frames.Entry] = []
        self.bytes = 0
        self._last = b""

    def write(self, data: bytes) -> None:
        self._digest.update(data)
        self.bytes += len(data)
        self._last = data[-1:] or self._last
        self._waiting += data
        while len(self._waiting) >= frames.FRAME:
            self._frame(bytes(self._waiting[: frames.FRAME]))
            del self._waiting[: frames.FRAME]

    def flush(self) -> None:
        """Writes what waits for its frame to be full."""
        if self._waiting:
            self._frame(bytes(self._waiting))
            self._waiting.clear()

    def finish(self) -> tuple[str, int, int]:
        """Ends and syncs the file -> (sha256, bytes, lines) of what was written. Raises StorageUnavailable."""
        self.flush()
        index = frames.Index(self._entries, open_end=self._last not in (b"", b"\n"))
        with _told():
            _write(self._file, index.dump())
            os.fsync(self._file.fileno())
            self._file.close()
        return self._digest.hexdigest(), self.bytes, index.lines

    def keep(self) -> None:
        """Puts the finished file in its place, durably; can be done again where it was removed since.

        Raises StorageUnavailable.
        """
        with _told():
            self._store.put(self._path, self._digest.hexdigest())

    def _frame(self, data: bytes) -> None:
        compressed = compress(data, options=_OPTIONS)
        with _told():
            _write(self._file, compressed)
        self._entries.append(frames.Entry(len(compressed), len(data), data.count(b"\n")))


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}.zst"


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


def _write(file: FileIO, data: bytes) -> None:
    # Unbuffered, as a full buffer on a full disk would fail once more when the file is closed.
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _told(sha256: str = "") -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound("the log is not there any more", sha256=sha256) from error
    except (OSError, BaseError, ZstdError, frames.BrokenIndex) as error:
        raise StorageUnavailable(f"the log store can't be used now: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).split("\n")[0]
