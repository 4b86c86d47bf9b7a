"""The knowledge folders while the service runs: whether they can still be loaded, and what changed in them.

The service continues with the knowledge that it loaded. So a broken or half-written file affects no triage, and is
reported before the next start would refuse it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge.cache import cache_folder, load
from torchtriage.knowledge.lenient_loader import LoadedFolders

log = logging.getLogger(__name__)
_MAX_PROBLEMS_LOGGED = 3  # maximum problems in one log line


@dataclass(frozen=True, slots=True)
class FolderState:
    """`problems` says why the folders cannot be loaded. If they can, `different` is the number of entries that differ
    from those in use."""

    problems: tuple[str, ...] = ()
    different: int = 0


class KnowledgeFolders:
    """`paths` are the folders, the built-in one first. `left_out` says which of their files were omitted and why.
    `last` is the result of the last look."""

    def __init__(self, paths: Sequence[Path], used: KnowledgeBase, sound: LoadedFolders | None = None) -> None:
        self.paths = tuple(paths)
        self.left_out = sound.problems if sound else ()
        self._without = sound.without if sound else frozenset()
        self.last = FolderState()
        self._used = used
        self._seen: list[tuple[str, int, int]] = []
        self._looking = threading.Lock()

    def current_state(self) -> FolderState:
        """Returns the current state of the folders. Reads them only if a file has changed since the last look, and logs
        what is new."""
        with self._looking:
            seen = list(self._files())
            if seen != self._seen:
                self._seen, before, self.last = seen, self.last, self._loaded()
                _log_changes(before, self.last)
            return self.last

    def _files(self) -> Iterator[tuple[str, int, int]]:
        for folder in self.paths:
            for path in sorted(folder.glob("*/*.yaml")):
                try:
                    found = path.stat()
                except OSError:
                    yield str(path), 0, 0
                else:
                    yield str(path), found.st_mtime_ns, found.st_size

    def _loaded(self) -> FolderState:
        try:
            fresh = load(self.paths, cache_folder(), self._without)
        except KnowledgeError as error:
            return FolderState(tuple(error.problems))
        if fresh.digest == self._used.digest:
            return FolderState()
        ids = {*self._used.entries, *fresh.entries}
        return FolderState(different=sum(self._used.entries.get(entry) != fresh.entries.get(entry) for entry in ids))


def _log_changes(before: FolderState, now: FolderState) -> None:
    if now.problems and now.problems != before.problems:
        more = (
            f" (and {len(now.problems) - _MAX_PROBLEMS_LOGGED} more)"
            if len(now.problems) > _MAX_PROBLEMS_LOGGED
            else ""
        )
        problems = "; ".join(now.problems[:_MAX_PROBLEMS_LOGGED])
        log.warning("cannot load the knowledge folders, keeping the loaded knowledge: %s%s", problems, more)
    elif before.problems and not now.problems:
        log.info("the knowledge folders load again")
    if now.different and now.different != before.different:
        log.info(
            "entries of the knowledge folders that differ from those in use: %d; restart to use them", now.different
        )
