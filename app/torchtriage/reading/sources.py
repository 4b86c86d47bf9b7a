"""Opens the log of a run: a path, standard input or stored files. Returns named streams of bytes."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from torchtriage.errors import UnreadableLog
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.file_types import HEAD, FileForm, form_of
from torchtriage.reading.log_rotation import pieces_of_logs, sort_key
from torchtriage.reading.pickled_dumps import is_pickled_dump
from torchtriage.reading.unpack import UnpackBudget, Upload, clean_name, on_disk, unpack

CHUNK = 1 << 20
_LOG_NAMES = lazy_regex(
    r"(?:\.(?:log(?:[.-]\d[\d_-]*)?|out|err|txt|json|jsonl|ndjson|stdout|stderr|o\d+|e\d+)|^(?:stdout|stderr|nohup|workerlog).*|^[^.]+)"
    r"(?:\.gz|\.zst)?$",
    re.I,
)
# torchelastic's copy of a worker's error, which is read after the logs, because they contain the same lines
_ERROR_FILE = "error.json"
_MAGIC = {".zip": b"PK", ".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}
_NO_LOG = "not recognised as a log or as other evidence"
_MAX_UNREAD = 100  # files that are listed as left out
_ARCHIVE = lazy_regex(r"\.(?:tar(?:\.gz|\.zst)?|tgz|zip)$")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a run. `name` is its path inside the run. `chunks` yields its decompressed bytes once. `member` is
    true if it is from an archive, which may have other files. `part_of` is the log of which it is a rotated piece;
    these follow each other, the oldest first. `unread` says why it is left out; then it has no bytes. `form` is what
    the file was recognized as, at first a log."""

    name: str
    chunks: Callable[[], Iterator[bytes]]
    member: bool = False
    part_of: str | None = None
    unread: str | None = None
    form: FileForm = FileForm.LOG


@dataclass(frozen=True, slots=True)
class Run:
    """The logs of one run. `files` yields each file once, sorted by name. `several` is true if there can be more than
    one. `names` are the names that are known before the files are read."""

    name: str
    files: Callable[[], Iterator[LogFile]]
    several: bool = False
    names: tuple[str, ...] = ()


def open_path(path: Path) -> Run:
    """Returns the run in a text file, .gz, .zst, .tar.gz or folder. Raises UnreadableLog if there is none."""
    name = str(path)
    if path.is_dir():
        return _open_folder(path, name)
    if not path.exists():
        raise UnreadableLog(f"{name}: no such file or folder")
    if not path.is_file():
        raise UnreadableLog(f"{name}: not a file or folder")
    return Run(name, lambda: _files(path, path.name), several=bool(_ARCHIVE.search(path.name)))


def _open_folder(path: Path, name: str) -> Run:
    every = [file for file in path.rglob("*") if file.is_file()]
    inside = [file for file in every if _LOG_NAMES.search(file.name) or _is_evidence(file)]
    if not inside:
        raise UnreadableLog(f"{name}: no logs in this folder")
    names = {file.relative_to(path).as_posix(): file for file in inside}
    part_of = pieces_of_logs(names)

    def order(each: str) -> tuple[bool, PurePosixPath, tuple[int, int, str]]:
        return names[each].name == _ERROR_FILE, PurePosixPath(part_of.get(each, each)), sort_key(each)

    found = sorted(names, key=order)
    others = sorted(file.relative_to(path).as_posix() for file in set(every) - set(inside))[:_MAX_UNREAD]

    def files() -> Iterator[LogFile]:
        for each in found:
            for log in _files_or_error(names[each], each):
                yield replace(log, part_of=part_of.get(each))
        yield from map(_unread, others)

    return Run(name, files, several=True, names=tuple(found))


def _is_evidence(path: Path) -> bool:
    """Returns whether a file is evidence, whatever its name is."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return is_pickled_dump(head) or form_of(head) is not FileForm.LOG


def _unread(name: str, reason: str = _NO_LOG) -> LogFile:
    return LogFile(name, lambda: iter(()), member=True, unread=reason)


def open_stdin() -> Run:
    """Returns the run in standard input, which can be read once. Raises UnreadableLog if it is closed."""
    if sys.stdin is None:
        raise UnreadableLog("-: standard input is closed")
    return Run("-", lambda: _stream(_chunks(sys.stdin.buffer)))


@contextmanager
def kept_stdin() -> Iterator[Run]:
    """Gives the run in standard input, copied to a file without a name, so that it can be read again inside the `with`
    block. Raises UnreadableLog if standard input is closed, and StorageUnavailable."""
    if sys.stdin is None:
        raise UnreadableLog("-: standard input is closed")
    with on_disk(_chunks(sys.stdin.buffer)) as file:

        def files() -> Iterator[LogFile]:
            file.seek(0)
            return _stream(_chunks(file))

        yield Run("-", files)


def _stream(chunks: Iterator[bytes]) -> Iterator[LogFile]:
    for inside in _named_errors("-", unpack(Upload("-", chunks), UnpackBudget(None))):
        yield LogFile(inside.name, partial(_named_errors, "-", inside.chunks), inside.member)


def from_bytes(data: bytes, name: str = "log") -> Run:
    """Returns a run of one file whose bytes are given."""
    return Run(name, lambda: iter((LogFile(name, lambda: iter((data,))),)))


def _files_or_error(path: Path, name: str) -> Iterator[LogFile]:
    """Yields the same as `_files`. A file that cannot be read raises only when its bytes are used, because other files
    may be readable."""
    try:
        yield from _files(path, name)
    except UnreadableLog as error:
        yield LogFile(name, partial(_raise, error))


def _raise(error: UnreadableLog) -> Iterator[bytes]:
    raise error


def _files(path: Path, name: str) -> Iterator[LogFile]:
    """Yields the log files inside one file on disk. Each must be read before the next."""
    found, unread = False, 0
    _refuse_wrong_ending(path)
    for inside in _named_errors(str(path), unpack(Upload(name, _read(path)), UnpackBudget(None))):
        chunks = inside.chunks
        if not clean_name(name).startswith(inside.name) and not _LOG_NAMES.search(PurePosixPath(inside.name).name):
            first = next(chunks, b"")
            if form_of(first) is FileForm.LOG:
                deque(chunks, maxlen=0)
                unread += 1
                if unread <= _MAX_UNREAD:
                    yield _unread(inside.name)
                continue
            chunks = chain((first,), chunks)
        found = True
        yield LogFile(inside.name, partial(_named_errors, str(path), chunks), inside.member)
    if not found:
        raise UnreadableLog(f"{path}: no logs in this archive")


def _refuse_wrong_ending(path: Path) -> None:
    """Raises UnreadableLog if the name is that of an archive but the content is not, usually after a broken
    download."""
    wanted = next((magic for ending, magic in _MAGIC.items() if path.name.endswith(ending)), None)
    try:
        with path.open("rb") as file:
            begin = file.read(4)
    except OSError as error:
        raise UnreadableLog(f"{path}: {error.strerror}") from error
    if wanted and begin and not begin.startswith(wanted):
        raise UnreadableLog(f"{path}: not a {path.suffix} archive")


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _chunks(file)


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk


def _named_errors(name: str, items: Iterator[Item]) -> Iterator[Item]:
    """Yields the same items. Errors while reading name the path that was given."""
    try:
        yield from items
    except UnreadableLog as error:
        reason = error.detail.get("reason")
        raise UnreadableLog(f"{name}: {reason}") if reason else error from error
