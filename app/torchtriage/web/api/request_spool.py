"""Stores request bodies while they arrive: small ones in memory, others in files without a name, which disappear after
a crash."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from io import FileIO
from pathlib import Path

from torchtriage.errors import StorageUnavailable
from torchtriage.web.errors import Busy

SMALL = 256 << 10  # maximum bytes of a body that is kept in memory
_ALL_SMALL = 64 << 20  # maximum bytes of all bodies in memory
_FILES = 128  # maximum number of bodies on disk at the same time
_WRITERS = 4  # number of threads that write them
_TIMEOUT = 10.0  # seconds that a body waits for a free file
_STEP, _PIECE = 64 << 10, 1 << 20  # bytes per chunk when reading back, from memory and from disk


class Spools:
    """All request bodies that are being received."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        """`folder` returns the folder for the files; it may raise StorageUnavailable."""
        self.folder = folder
        self.in_memory = self.on_disk = 0  # bytes now stored in each
        self.files = asyncio.Semaphore(_FILES)
        self.writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="spool")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Spool]:
        """Yields an empty body to fill. It is deleted at the end of the `with` block."""
        spool = Spool(self)
        try:
            yield spool
        except asyncio.CancelledError:
            raise  # The server is stopping. A thread may still use the file, so it is closed when nobody refers to it.
        except BaseException:
            spool.close()
            raise
        spool.close()

    def stop(self) -> None:
        self.writers.shutdown(wait=False, cancel_futures=True)


class Spool:
    """One request body. Get it from `Spools.open`."""

    def __init__(self, spools: Spools) -> None:
        self._spools = spools
        self._file: FileIO | None = None
        self._written = 0
        self._waiting: list[bytes] = []
        self._waits = 0

    @property
    def size(self) -> int:
        return self._written + self._waits

    async def add(self, chunk: bytes) -> None:
        """Appends a chunk. Raises Busy or StorageUnavailable."""
        self._waiting.append(chunk)
        self._waits += len(chunk)
        self._spools.in_memory += len(chunk)
        if self._waits > SMALL or self._spools.in_memory > _ALL_SMALL:
            await self._write()

    def chunks(self) -> Iterator[bytes]:
        """Yields the whole body. Can be called again."""
        if self._file is not None:
            self._file.seek(0)
            while piece := self._file.read(_PIECE):
                yield piece
        rest = b"".join(self._waiting)
        for at in range(0, len(rest), _STEP):
            yield rest[at : at + _STEP]

    def close(self) -> None:
        self._forget_waiting()
        if self._file is not None:
            self._file.close()
            self._spools.on_disk -= self._written
            self._spools.files.release()

    async def _write(self) -> None:
        loop, writers = asyncio.get_running_loop(), self._spools.writers
        if self._file is None:
            await self._room()
            try:
                self._file = await loop.run_in_executor(writers, _unnamed, self._spools.folder)
            except StorageUnavailable:
                self._spools.files.release()
                raise
        data = b"".join(self._waiting)
        self._forget_waiting()
        self._written += len(data)
        self._spools.on_disk += len(data)
        await loop.run_in_executor(writers, _append, self._file, data, self._spools.on_disk)

    async def _room(self) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._spools.files.acquire()
        except TimeoutError:
            raise Busy(f"{_FILES} large logs are being received, which is the limit") from None

    def _forget_waiting(self) -> None:
        self._spools.in_memory -= self._waits
        self._waiting, self._waits = [], 0


def _unnamed(folder: Callable[[], Path]) -> FileIO:
    try:
        return tempfile.TemporaryFile(dir=folder(), buffering=0)
    except OSError as error:
        raise _unavailable(error) from error


def _append(file: FileIO, data: bytes, all_spooled: int) -> None:
    """Writes to a file. All bodies together may take at most half of the free disk space, because the logs made from
    them must fit too."""
    try:
        disk = os.fstatvfs(file.fileno())
        if all_spooled > disk.f_bavail * disk.f_frsize - len(data):
            raise Busy("not enough disk space for another large log while others are being received")
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise _unavailable(error) from error


def _unavailable(error: OSError) -> StorageUnavailable:
    return StorageUnavailable(f"cannot write the log: {error.strerror}")
