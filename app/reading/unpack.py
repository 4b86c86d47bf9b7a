"""Takes a file or an upload apart: its bytes in, the log files inside out, decompressed, a piece at a time.

What it holds is told by its first bytes, as names and content types are often wrong. Memory is bounded.
"""

from __future__ import annotations

import errno
import gzip
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, NamedTuple, cast

from app.errors import LogTooLarge, StorageUnavailable, UnreadableLog
from app.reading.zstd import DecompressionParameter, ZstdError, ZstdFile

_CHUNK = 1 << 20
_DEPTH = 3  # a .gz in a .tar.gz that was sent with Content-Encoding is three
_MOST_FILES = 25_000  # two of each of 10,000 ranks, and what stands beside them
_OVERHEAD = 16 << 20  # bytes that an archive can have beside its files
_LONGEST_NAME = 300
_HEADERS = 1 << 20  # bytes of a tar archive between two files; long headers would be read into memory
_ZSTD_OPTIONS = {int(DecompressionParameter.window_log_max): 26}  # what a frame may make us allocate: 64 MiB
_GZIP, _ZSTD, _TAR = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"ustar"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# RuntimeError: a zip that wants a password; NotImplementedError, which is one too: packed in a way that is not known.
_BROKEN = (OSError, EOFError, zlib.error, ZstdError, tarfile.TarError, zipfile.BadZipFile, RuntimeError, UnicodeError)
# What is wrong then is the temporary folder, and not the log. Others a broken zip can cause: it names places in itself.
_OURS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.ENOENT, errno.EMFILE,
         errno.ENFILE}  # fmt: skip


class Upload(NamedTuple):
    """One thing that was sent or found on disk: its name, as far as it has one, and its bytes, to be read once.
    `member`: it came out of an archive, where others can be beside it."""

    name: str
    chunks: Iterator[bytes]
    member: bool = False


class Budget:
    """How many bytes may still come out; None is no limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._left = float("inf") if limit is None else limit

    def spend(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the same chunks; raises LogTooLarge where they are too many."""
        for chunk in chunks:
            self._left -= len(chunk)
            if self._left < 0:
                raise LogTooLarge(f"the log is larger than the limit of {self._limit} bytes", limit=self._limit)
            yield chunk


def unpack(upload: Upload, budget: Budget, limit: int | None) -> Iterator[Upload]:
    """Yields the files in an upload; each must be read before the next is asked for.

    `budget` is that of all files together; `limit` that of each wrapping around them (None: none).
    Raises UnreadableLog for what is broken, LogTooLarge, StorageUnavailable where an archive can't be unpacked here.
    """
    for file in _unwrapped(upload, limit, _DEPTH):
        yield Upload(clean_name(file.name), budget.spend(_told(file.chunks, file.name)), file.member)


def clean_name(name: str) -> str:
    """-> a name that says where a file was, for showing; it is never used as a path."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    shown = "".join(char if char.isprintable() else "?" for char in "/".join(parts))
    return shown[-_LONGEST_NAME:] or "log"


class _Source:
    """A stream over chunks, of which one can see the beginning."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting, self._at = b"", 0
        self.headers_left: int | None = None

    def peek(self, size: int) -> bytes:
        """-> the next `size` bytes, or all there are."""
        while len(self._waiting) - self._at < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._waiting, self._at = self._waiting[self._at :] + chunk, 0
        return self._waiting[self._at : self._at + size]

    def read(self, size: int) -> bytes:
        self.peek(1)
        found = self._waiting[self._at : self._at + size]
        self._at += len(found)
        if self.headers_left is not None:
            self.headers_left -= len(found)
            if self.headers_left < 0:
                raise UnreadableLog("the archive's headers are too long")
        return found

    def all(self) -> Iterator[bytes]:
        while chunk := self.read(_CHUNK):
            yield chunk


def _unwrapped(upload: Upload, limit: int | None, depth: int) -> Iterator[Upload]:
    source = _Source(_told(upload.chunks, upload.name))
    begin = source.peek(262)
    opened = _gunzipped if begin[:2] == _GZIP else _unzstd if begin[:4] == _ZSTD else None
    archive = _members if begin[257:262] == _TAR else _zipped if begin[:4] in _ZIP else None
    if (opened or archive) and not depth:
        raise UnreadableLog(f"{clean_name(upload.name)}: packed more than {_DEPTH} times")
    if opened:
        chunks = Budget(limit and limit + _OVERHEAD).spend(opened(source))
        yield from _unwrapped(Upload(_without_ending(upload.name), chunks, upload.member), limit, depth - 1)
    elif archive:
        yield from archive(source, upload.name, limit, depth - 1)
    else:
        yield Upload(upload.name, source.all(), upload.member)


def _gunzipped(source: _Source) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=cast(IO[bytes], source)) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _unzstd(source: _Source) -> Iterator[bytes]:
    with ZstdFile(cast(IO[bytes], source), options=_ZSTD_OPTIONS) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _members(source: _Source, name: str, limit: int | None, depth: int) -> Iterator[Upload]:
    found = 0
    source.headers_left = _HEADERS
    with _naming(name), tarfile.open(fileobj=cast(IO[bytes], source), mode="r|") as archive:
        while member := archive.next():
            archive.members = []  # type: ignore[attr-defined]  # tarfile remembers every member, for ways of reading that we do not use
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                continue
            found += 1
            if found > _MOST_FILES:
                raise UnreadableLog(f"{clean_name(name)}: more than {_MOST_FILES} files")
            source.headers_left = None
            chunks = iter(partial(content.read, _CHUNK), b"")
            yield from _unwrapped(Upload(member.name, chunks, member=True), limit, depth)
            source.headers_left = _HEADERS
        source.headers_left = None
        for _ in source.all():
            pass  # what stands behind the end is read too: a cut of the whole shows there only
    if not found:
        raise UnreadableLog(f"{clean_name(name)}: an archive without files")


def _zipped(source: _Source, name: str, limit: int | None, depth: int) -> Iterator[Upload]:
    """Yields what a zip archive holds, in the order of a folder; its list of contents stands at its end, so it is kept on disk."""
    with _naming(name), _kept_here(), tempfile.TemporaryFile() as kept:
        for chunk in Budget(limit and limit + _OVERHEAD).spend(source.all()):
            kept.write(chunk)
        with zipfile.ZipFile(kept) as archive:
            members = sorted((each for each in archive.infolist() if not each.is_dir()), key=_place)
            if not 0 < len(members) <= _MOST_FILES:
                told = f"more than {_MOST_FILES} files" if members else "an archive without files"
                raise UnreadableLog(f"{clean_name(name)}: {told}")
            for member in members:
                with archive.open(member) as content:
                    chunks = iter(partial(content.read, _CHUNK), b"")
                    yield from _unwrapped(Upload(member.filename, chunks, member=True), limit, depth)


def _place(member: zipfile.ZipInfo) -> tuple[bool, str]:
    return member.filename.endswith("error.json"), member.filename


def _without_ending(name: str) -> str:
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    return name.removesuffix(".tgz")


def _told(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    with _naming(name):
        yield from chunks


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Turns the many ways in which reading fails into one error that names the file and the reason."""
    try:
        yield
    except _BROKEN as error:
        raise UnreadableLog(f"{clean_name(name)}: {_reason(error)}", reason=_reason(error)) from error


@contextmanager
def _kept_here() -> Iterator[None]:
    """Tells what fails in our own temporary folder from what is wrong with a log."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OURS:
            raise
        raise StorageUnavailable(f"the log can't be written: {error.strerror}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError | tarfile.ReadError):
        return "a broken archive: it ends in the middle"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"a broken archive: {error}"
