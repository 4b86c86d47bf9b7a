"""Folders that were added to the operator's own (packs, entries written in the page): loads what of them loads with
this version, and says which files were left out and why."""

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
class Sound:
    """What loads: all `folders`, but not the files that are `without`. `told` says in a sentence for each of these what
    is wrong with it."""

    folders: list[Path]
    without: frozenset[Path]
    knowledge: KnowledgeBase
    told: tuple[str, ...] = ()


def load_sound(order: Order, added: Sequence[Path], load: Load = cache.load) -> Sound:
    """-> the knowledge base of the folders that `order` makes of the `added` ones and its own, without the added files
    that do not load. Raises KnowledgeError where its own folders do not."""
    folders, without, told = order(added), frozenset[Path](), dict[Path, str]()
    while True:
        try:
            return Sound(folders, without, load(folders, cache.cache_folder(), without), tuple(told.values()))
        except KnowledgeError as error:
            wrong = {path: said for said in reversed(error.problems) if (path := _named(said, added, without))}
            if not wrong:
                raise
        told |= {path: f"{_whose(path)}: left out, as it does not load: {said}" for path, said in wrong.items()}
        without |= wrong.keys()


def _named(said: str, added: Sequence[Path], without: frozenset[Path]) -> Path | None:
    """-> the added file that a problem is about."""
    for folder in added:
        for path in sorted(folder.glob("*/*.yaml")):
            if path not in without and said.startswith((f"{path.parent.name}/{path.name}:", f"{path}:")):
                return path
    return None


def _whose(path: Path) -> str:
    pack = pack_of(path.parent.parent)
    return f"pack {pack}" if pack else "entries that were written in the page"
