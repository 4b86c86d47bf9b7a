"""One multi-pattern scan over raw bytes with Hyperscan: patterns and bytes in, the ends of their matches out."""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import hyperscan

from torchtriage.reading.disk_cache import keep, read

_FLAGS = hyperscan.HS_FLAG_MULTILINE
BY_CHARACTER = b"(*UTF8)"  # before a pattern that counts characters and not bytes, for what is valid UTF-8
_VERSION: str = hyperscan.__version__  # type: ignore[attr-defined]  # its stub leaves it out
PatternError: type[Exception] = hyperscan.error


class Scanner:
    """A compiled set of patterns. Use from any thread; each thread has its own scratch space.

    Compiling hundreds of patterns takes a second; with `cache`, a folder, it is done once for each `key`, which must
    differ wherever what `patterns` returns does. Without a cache the key is of no use. `once`: of each pattern a scan tells
    one match only, so that `which` costs no more where many are.
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
        """-> a scanner for the other patterns, of the same indexes."""
        patterns = self._patterns()
        fewer = Scanner.__new__(Scanner)
        fewer._patterns, fewer._threads = self._patterns, threading.local()
        fewer._database = _compiled(
            patterns, [index for index in range(len(patterns)) if index not in ignored_patterns]
        )
        return fewer

    def ends(self, data: bytes, ignored_patterns: Collection[int] = ()) -> tuple[list[tuple[int, int]], int]:
        """-> (pattern's index, byte after the match) for each match in `data`, in order of the end, except the
        `ignored_patterns`; and how many matches of those there were."""
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
        """-> the indexes of the patterns that occur in `data`."""
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
    """-> why Hyperscan refuses a pattern, or None where it takes it."""
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
    """-> the database from the cache, else compiled and kept there; a cache that can't be used is done without."""
    # The serialised form depends on library and machine; what is of another processor, the library refuses.
    parts = [_VERSION.encode(), platform.machine().encode(), key]
    path = folder / f"patterns-{hashlib.sha256(bytes(1).join(parts)).hexdigest()[:32]}.hs"
    try:
        return hyperscan.loadb(read(path), hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.error):
        database = compiled()
        keep(path, hyperscan.dumpb(database))
        return database
