"""Starts the engine for a command: the knowledge folders of the environment in, an engine out."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.knowledge import BUILT_IN

if TYPE_CHECKING:
    from torchtriage.domain.entry import KnowledgeBase
    from torchtriage.engine import Engine


def folders() -> list[Path]:
    """-> the built-in knowledge base, the packs that are installed, then the folders of TRIAGE_KNOWLEDGE_DIRS."""
    from torchtriage.knowledge.folders import packs_in

    return _ordered(packs_in(packs_home()))


def folders_of_files() -> list[Path]:
    """-> the same without packs: where entries are written and changed."""
    own = os.environ.get("TRIAGE_KNOWLEDGE_DIRS", "")
    return [BUILT_IN, *(Path(folder) for folder in own.split(os.pathsep) if folder)]


def packs_home() -> Path:
    """-> where packs are installed, in TRIAGE_DATA_DIR as for the service."""
    from torchtriage.data_dir import default_data_dir
    from torchtriage.knowledge.folders import home_of_packs

    own = os.environ.get("TRIAGE_DATA_DIR", "")
    return home_of_packs(Path(own) if own else default_data_dir(os.environ))


def load_knowledge(fresh: bool = False) -> KnowledgeBase:
    """-> the knowledge base of these folders, without files of packs that do not load; standard error says which.
    Where `fresh`, all files are parsed, and what only kb check refuses is not looked at. Raises KnowledgeError."""
    from torchtriage.knowledge import cache
    from torchtriage.knowledge.folders import packs_in
    from torchtriage.knowledge.sound_folders import load_sound

    def parsed(folders: Sequence[Path], _: Path, without: frozenset[Path]) -> KnowledgeBase:
        from torchtriage.knowledge import loader  # with it all that reads YAML

        return loader.load(folders, without=without)

    sound = load_sound(_ordered, packs_in(packs_home()), parsed if fresh else cache.load)
    for line in sound.told:
        print(f"torchtriage: warning: {line}", file=sys.stderr)
    return sound.knowledge


def _ordered(packs: Sequence[Path]) -> list[Path]:
    built_in, *own = folders_of_files()
    return [built_in, *packs, *own]


def start_engine() -> Engine:
    """-> an engine that is ready. Raises KnowledgeError."""
    with _no_garbage():
        from torchtriage.engine import Engine
        from torchtriage.knowledge.cache import cache_folder

        return Engine(load_knowledge(), cache_folder())


@contextmanager
def _no_garbage() -> Iterator[None]:
    """What is made meanwhile stays until the process ends, so it is not searched for garbage: a sixth of a start."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
