"""Scans raw bytes for many patterns at once with Hyperscan, and returns the ends of the matches."""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import hyperscan

from torchtriage.reading.disk_cache import keep, read

_FLAGS = hyperscan.HS_FLAG_MULTILINE
BY_CHARACTER = b"(*UTF8)"  # prefix of a pattern that counts characters instead of bytes, for valid UTF-8
_VERSION: str = hyperscan.__version__  # type: ignore[attr-defined]  # its stub leaves it out
PatternError: type[Exception] = hyperscan.error


class Scanner:
    """A compiled set of patterns. Can be used from any thread; each thread has its own scratch space.

    Compiling hundreds of patterns takes a second. If a folder `cache` is given, it happens once for each `key`, which
    must be different for different patterns. Without `cache`, the key is not used. If `once` is true, a scan reports
    only one match of each pattern, so that `which` stays fast if there are many.
    """

    def __init__(
        self, patterns: Callable[[], Sequence[bytes]], cache: Path | None = None, key: bytes = b"", once: bool = False
    ) -> None:
        self._patterns = patterns
        flags = _FLAGS | hyperscan.HS_FLAG_SINGLEMATCH if once else _FLAGS

        def compiled() -> hyperscan.Database:
            return _compiled(patterns(), flags=flags)

        self._database = _cached(compiled, cache, key) if cache else compiled()
        self._threads = threading.local()

    def without(self, ignored_patterns: Collection[int]) -> Scanner:
        """Returns a scanner for the other patterns, with the same indexes."""
        patterns = self._patterns()
        fewer = Scanner.__new__(Scanner)
        fewer._patterns, fewer._threads = self._patterns, threading.local()
        fewer._database = _compiled(
            patterns, [index for index in range(len(patterns)) if index not in ignored_patterns]
        )
        return fewer

    def ends(self, data: bytes, ignored_patterns: Collection[int] = ()) -> tuple[list[tuple[int, int]], int]:
        """Returns (index of the pattern, end of the match) for each match in `data`, sorted by the end, except for the
        `ignored_patterns`, and the number of matches of those."""
        found: list[tuple[int, int]] = []
        ignored = 0

        def on_match(index: int, start: int, end: int, flags: int, context: object) -> None:
            nonlocal ignored
            if index in ignored_patterns:
                ignored += 1
            else:
                found.append((index, end))

        self._database.scan(data, match_event_handler=on_match, scratch=self._scratch())
        return found, ignored

    def which(self, data: bytes) -> set[int]:
        """Returns the indexes of the patterns that occur in `data`."""
        found: set[int] = set()

        def on_match(index: int, start: int, end: int, flags: int, context: object) -> None:
            found.add(index)

        self._database.scan(data, match_event_handler=on_match, scratch=self._scratch())
        return found

    def _scratch(self) -> hyperscan.Scratch:
        if not hasattr(self._threads, "scratch"):
            self._threads.scratch = hyperscan.Scratch(self._database)
        scratch: hyperscan.Scratch = self._threads.scratch
        return scratch


def problem(pattern: str) -> str | None:
    """Returns why Hyperscan rejects a pattern, or None if it accepts it."""
    try:
        _compiled([pattern.encode()])
    except hyperscan.error as error:
        return str(error)
    return None


def _compiled(
    patterns: Sequence[bytes], indexes: Sequence[int] | None = None, flags: int = _FLAGS
) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    ids = list(range(len(patterns)) if indexes is None else indexes)
    wanted = [patterns[index] for index in ids]
    every = [flags | hyperscan.HS_FLAG_UTF8 if text.startswith(BY_CHARACTER) else flags for text in wanted]
    database.compile(expressions=[text.removeprefix(BY_CHARACTER) for text in wanted], ids=ids, flags=every)
    return database


def _cached(compiled: Callable[[], hyperscan.Database], folder: Path, key: bytes) -> hyperscan.Database:
    """Returns the database from the cache, or compiles and stores it. Ignores a cache that cannot be used."""
    # The serialized form depends on library and machine. The library rejects one for another processor.
    parts = [_VERSION.encode(), platform.machine().encode(), key]
    path = folder / f"patterns-{hashlib.sha256(bytes(1).join(parts)).hexdigest()[:32]}.hs"
    try:
        return hyperscan.loadb(read(path), hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.error):
        database = compiled()
        keep(path, hyperscan.dumpb(database))
        return database
