"""Unpacks a file or upload into the log files in it, piece by piece. A pickled dump of the flight recorder is converted
to text.

The first bytes decide what it contains, because names and content types are often wrong. Memory is limited, and so is
the size of data unpacked from few bytes (decisions/0025).
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from torchtriage.domain.byte_sizes import limit_text
from torchtriage.errors import LogTooLarge, StorageUnavailable, UnreadableLog
from torchtriage.reading.pickled_dumps import HEAD, as_text, is_pickled_dump
from torchtriage.reading.zstd import DecompressionParameter, ZstdError, ZstdFile

if TYPE_CHECKING:
    import zipfile

_FIRST, _CHUNK = 64 << 10, 1 << 20  # bytes that are unpacked at once; few at first, so that `watch` is called soon
_DEPTH = 3  # for example a .gz in a .tar.gz that was sent with Content-Encoding
_MAX_FILES = 25_000  # two for each of 10,000 ranks, and some others
_MAX_MEMBERS = 4 * _MAX_FILES  # members of archives, including folders and links
_OVERHEAD = 16 << 20  # bytes of an archive besides its files
_FREELY = 32 << 20  # bytes that may be unpacked from any amount
_RATIO = 1000  # limit on the ratio beyond that; gzip's maximum is about this, and the same line repeated has 260
_MAX_NAME_LENGTH = 300
_FILE = (
    16 << 10
)  # bytes that each file in an archive counts in addition to its own, because each is checked and stored separately
_HEADERS = 1 << 20  # bytes of a tar archive between two files; long headers would be read into memory
# bytes of a zip archive's list of contents, which is read into memory; enough for 25,000 names of 100 characters
_CONTENTS = 4 << 20
_ZSTD_OPTIONS = {int(DecompressionParameter.window_log_max): 26}  # memory that a frame may require: 64 MiB
_GZIP, _ZSTD, _TAR, _PICKLE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"ustar", b"\x80"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def _unwatched(_: int) -> None:
    pass


class Upload(NamedTuple):
    """A file that was sent or found on disk: its name, if it has one, and its bytes, which can be read once. `member`
    is true if it is from an archive, which may have other files. `watch` is called with the size of every piece that is
    read or unpacked, before the piece is used. An exception that it raises ends the reading."""

    name: str
    chunks: Iterator[bytes]
    member: bool = False
    watch: Callable[[int], None] = _unwatched


class UnpackBudget:
    """Limits what the uploads of one request may unpack to, together. None means no limit.

    `limit` is the number of bytes of the logs. Data that is unpacked on the way counts each time, even if nobody reads
    it.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._logs = self._came = self._unpacked = self._files = self._members = 0

    def spend(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the same chunks of logs. Raises LogTooLarge if there are too many bytes."""
        for chunk in chunks:
            self._logs += len(chunk)
            self._bound(self._logs, 0)
            yield chunk

    def came(self, chunks: Iterator[bytes], watch: Callable[[int], None]) -> Iterator[bytes]:
        """Yields the same chunks, and counts them as received."""
        for chunk in chunks:
            self._came += len(chunk)
            watch(len(chunk))
            yield chunk

    def unpacked(self, chunks: Iterator[bytes], watch: Callable[[int], None]) -> Iterator[bytes]:
        """Yields the same chunks, and counts them as unpacked. Raises LogTooLarge if there are too many bytes, or too
        many compared with those received."""
        for chunk in chunks:
            self._unpacked += len(chunk)
            self._bound(self._unpacked, _OVERHEAD)
            if self._limit is not None and self._unpacked > max(_FREELY, self._came * _RATIO):
                message = f"the log unpacks to more than {_RATIO} times its packed size"
                raise LogTooLarge(message, unpacked=self._unpacked)
            watch(len(chunk))
            yield chunk

    def member(self, archive: Upload, is_file: bool) -> None:
        """Counts the members of archives. Raises UnreadableLog if there are too many."""
        self._members += 1
        if is_file:
            self._files += 1
            archive.watch(_FILE)
        if self._files > _MAX_FILES:
            raise UnreadableLog(f"{clean_name(archive.name)}: more than {_MAX_FILES} files")
        if self._members > _MAX_MEMBERS:
            raise UnreadableLog(f"{clean_name(archive.name)}: more than {_MAX_MEMBERS} files and folders")

    def _bound(self, count: int, beside: int) -> None:
        if self._limit is not None and count > self._limit + beside:
            raise LogTooLarge(f"the log is larger than the limit of {limit_text(self._limit)}", limit=self._limit)


def unpack(upload: Upload, budget: UnpackBudget) -> Iterator[Upload]:
    """Yields the files in an upload. Each must be read before the next.

    `budget` is shared by all uploads of a request. Raises UnreadableLog for broken or unsupported archives,
    LogTooLarge, StorageUnavailable, and what `watch` raises.
    """
    for file in _unwrapped(upload._replace(chunks=budget.came(upload.chunks, upload.watch)), budget, _DEPTH):
        yield Upload(clean_name(file.name), budget.spend(_named_errors(file.chunks, file.name)), file.member)


def clean_name(name: str) -> str:
    """Returns a name that says where a file was. It is only for display and never used as a path."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    shown = "".join(char if char.isprintable() else "?" for char in "/".join(parts))
    return shown[-_MAX_NAME_LENGTH:] or "log"


class _Source:
    """A stream over chunks that can be read ahead."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer, self._at = b"", 0
        self.headers_left: int | None = None

    def peek(self, size: int) -> bytes:
        """Returns the next `size` bytes, or all remaining ones, without consuming them."""
        while len(self._buffer) - self._at < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        return self._buffer[self._at : self._at + size]

    def read(self, size: int) -> bytes:
        self.peek(1)
        found = self._buffer[self._at : self._at + size]
        self._at += len(found)
        if self.headers_left is not None:
            self.headers_left -= len(found)
            if self.headers_left < 0:
                raise UnreadableLog("the archive's headers are too long")
        return found

    def all(self) -> Iterator[bytes]:
        while chunk := self.read(_CHUNK):
            yield chunk


def _unwrapped(upload: Upload, budget: UnpackBudget, depth: int) -> Iterator[Upload]:
    source = _Source(_named_errors(upload.chunks, upload.name))
    begin = source.peek(262)
    opened = _gunzipped if begin[:2] == _GZIP else _unzstd if begin[:4] == _ZSTD else None
    archive = _members if begin[257:262] == _TAR else _zipped if begin[:4] in _ZIP else None
    if (opened or archive) and not depth:
        raise UnreadableLog(f"{clean_name(upload.name)}: nested more than {_DEPTH} times")
    if opened:
        chunks = budget.unpacked(opened(source), upload.watch)
        yield from _unwrapped(upload._replace(name=_without_ending(upload.name), chunks=chunks), budget, depth - 1)
    elif archive:
        for member in archive(source, upload, budget):
            yield from _unwrapped(member, budget, depth - 1)
    elif begin[:1] == _PICKLE and is_pickled_dump(source.peek(HEAD)):
        yield upload._replace(chunks=as_text(source.all()))
    else:
        yield upload._replace(chunks=source.all())


def _gunzipped(source: _Source) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=cast(IO[bytes], source)) as file:
        yield from _growing_chunks(file.read)


def _unzstd(source: _Source) -> Iterator[bytes]:
    with ZstdFile(cast(IO[bytes], source), options=_ZSTD_OPTIONS) as file:
        yield from _growing_chunks(file.read)


def _growing_chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    size = _FIRST
    while chunk := read(size):
        yield chunk
        size = min(2 * size, _CHUNK)


def _members(source: _Source, upload: Upload, budget: UnpackBudget) -> Iterator[Upload]:
    """Yields the files of a tar archive. Each must be read before the next."""
    import tarfile  # imported here because few logs are in archives

    found = False
    source.headers_left = _HEADERS
    with _naming(upload.name), tarfile.open(fileobj=cast(IO[bytes], source), mode="r|") as archive:
        while member := archive.next():
            archive.members = []  # type: ignore[attr-defined]  # tarfile remembers every member, for ways of reading that we do not use
            if member.issparse():
                raise UnreadableLog(
                    f"{clean_name(member.name)}: a sparse file in the archive; pack it without --sparse"
                )
            content = archive.extractfile(member) if member.isreg() else None
            budget.member(upload, is_file=content is not None)
            if content is None:
                continue
            found = True
            source.headers_left = None
            yield upload._replace(name=member.name, chunks=iter(partial(content.read, _CHUNK), b""), member=True)
            source.headers_left = _HEADERS
        source.headers_left = None
        for _ in source.all():
            pass  # reads the rest too, because only there a cut of the whole file shows
    if not found:
        raise UnreadableLog(f"{clean_name(upload.name)}: an archive without files")


def _zipped(source: _Source, upload: Upload, budget: UnpackBudget) -> Iterator[Upload]:
    """Yields the files of a zip archive in the order of a folder. The archive is stored on disk, because its list of
    contents is at its end."""
    import zipfile  # as above

    ways = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods unpack without a limit on memory
    with (
        _naming(upload.name),
        on_disk(source.all()) as kept,
        zipfile.ZipFile(cast(IO[bytes], _ZipOnDisk(kept))) as archive,
    ):
        members = sorted((each for each in archive.infolist() if not each.is_dir()), key=_reading_order)
        if not members:
            raise UnreadableLog(f"{clean_name(upload.name)}: an archive without files")
        for member in members:
            budget.member(upload, is_file=True)
            if member.compress_type not in ways:
                raise UnreadableLog(f"{clean_name(member.filename)}: unsupported zip compression; use deflate")
            with archive.open(member) as content:
                chunks = budget.unpacked(_growing_chunks(content.read), upload.watch)
                yield upload._replace(name=member.filename, chunks=chunks, member=True)


def on_disk(chunks: Iterator[bytes]) -> IO[bytes]:
    """Returns a file without a name with this content. Raises StorageUnavailable."""
    with _storage_errors():
        # Unbuffered, because on a full disk a full buffer would fail again when the file is closed.
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  the caller closes it
    try:
        for chunk in chunks:
            left = memoryview(chunk)
            while left:
                with _storage_errors():
                    left = left[file.write(left) :]
    except BaseException:
        file.close()
        raise
    return cast(IO[bytes], file)


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(f"cannot write the log to disk: {error.strerror}") from error


class _ZipOnDisk:
    """A zip archive on disk. A list of contents that would fill the memory is not read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _CONTENTS:
            raise UnreadableLog("the archive's list of contents is too long")
        return self._file.read(size)


def _reading_order(member: zipfile.ZipInfo) -> tuple[bool, str]:
    return member.filename.endswith("error.json"), member.filename


def _without_ending(name: str) -> str:
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    return name.removesuffix(".tgz")


def _named_errors(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    with _naming(name):
        yield from chunks


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Turns the many errors of reading into one that names the file and the reason."""
    try:
        yield
    except _reading_errors() as error:
        raise UnreadableLog(f"{clean_name(name)}: {_reason(error)}", reason=_reason(error)) from error


def _reading_errors() -> tuple[type[Exception], ...]:
    """Returns the exceptions that a broken archive raises."""
    import tarfile
    import zipfile

    # RuntimeError: a zip with a password. Its subclass NotImplementedError: an unknown compression method.
    known = (OSError, EOFError, zlib.error, ZstdError, RuntimeError, UnicodeError)
    return (*known, tarfile.TarError, zipfile.BadZipFile)


def _reason(error: Exception) -> str:
    import tarfile

    if isinstance(error, EOFError | tarfile.ReadError):
        return "a broken archive: it ends in the middle"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"a broken archive: {error}"
