"""Loads the operator's folders together with added ones (packs, entries written in the page). Skips the added files
that do not load with this version, and says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import cache
from torchtriage.knowledge.folders import pack_of

Order = Callable[[Sequence[Path]], list[Path]]
Load = Callable[[Sequence[Path], Path, frozenset[Path]], KnowledgeBase]


@dataclass(frozen=True, slots=True)
class LoadedFolders:
    """The knowledge that loaded: that of `folders` except the files in `without`. `problems` has one sentence for each
    skipped file."""

    folders: list[Path]
    without: frozenset[Path]
    knowledge: KnowledgeBase
    problems: tuple[str, ...] = ()


def load_folders(order: Order, added: Sequence[Path], load: Load = cache.load) -> LoadedFolders:
    """Loads the knowledge base of the folders `order(added)`, which are the operator's own and the `added` ones. Skips
    added files that do not load. Raises KnowledgeError if the operator's own folders do not load."""
    folders, without, problems = order(added), frozenset[Path](), dict[Path, str]()
    while True:
        try:
            return LoadedFolders(
                folders, without, load(folders, cache.cache_folder(), without), tuple(problems.values())
            )
        except KnowledgeError as error:
            wrong = {path: problem for problem in reversed(error.problems) if (path := _named(problem, added, without))}
            if not wrong:
                raise
        problems |= {
            path: f"{_whose(path)}: skipped, because it does not load: {problem}" for path, problem in wrong.items()
        }
        without |= wrong.keys()


def _named(problem: str, added: Sequence[Path], without: frozenset[Path]) -> Path | None:
    """Returns the added file that a problem is about, or None."""
    for folder in added:
        for path in sorted(folder.glob("*/*.yaml")):
            if path not in without and problem.startswith((f"{path.parent.name}/{path.name}:", f"{path}:")):
                return path
    return None


def _whose(path: Path) -> str:
    pack = pack_of(path.parent.parent)
    return f"pack {pack}" if pack else "entries written in the web page"
