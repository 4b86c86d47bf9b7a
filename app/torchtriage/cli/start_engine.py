"""Starts the engine of a command, with the knowledge folders that the environment variables name."""

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
    """Returns the folders in the order in which they load: the built-in knowledge base, installed packs,
    TRIAGE_KNOWLEDGE_DIRS."""
    from torchtriage.knowledge.folders import packs_in

    return _ordered(packs_in(packs_home()))


def folders_of_files() -> list[Path]:
    """Returns the same folders without packs. `kb new` and `kb check --accept` write to these."""
    own = os.environ.get("TRIAGE_KNOWLEDGE_DIRS", "")
    return [BUILT_IN, *(Path(folder) for folder in own.split(os.pathsep) if folder)]


def packs_home() -> Path:
    """Returns the folder of installed packs. It is in TRIAGE_DATA_DIR, as for the service."""
    from torchtriage.data_dir import default_data_dir
    from torchtriage.knowledge.folders import home_of_packs

    own = os.environ.get("TRIAGE_DATA_DIR", "")
    return home_of_packs(Path(own) if own else default_data_dir(os.environ))


def load_knowledge(fresh: bool = False) -> KnowledgeBase:
    """Returns the knowledge base of all folders. Files of packs that do not load are left out, with a warning on
    standard error. With `fresh`, all files are parsed instead of read from the cache, and without the checks that only
    `kb check` makes. Raises KnowledgeError."""
    from torchtriage.knowledge import cache
    from torchtriage.knowledge.folders import packs_in
    from torchtriage.knowledge.lenient_loader import load_folders

    def parsed(folders: Sequence[Path], _: Path, without: frozenset[Path]) -> KnowledgeBase:
        from torchtriage.knowledge import loader  # imported here, because it imports the YAML parser

        return loader.load(folders, without=without)

    sound = load_folders(_ordered, packs_in(packs_home()), parsed if fresh else cache.load)
    for line in sound.problems:
        print(f"torchtriage: warning: {line}", file=sys.stderr)
    return sound.knowledge


def _ordered(packs: Sequence[Path]) -> list[Path]:
    built_in, *own = folders_of_files()
    return [built_in, *packs, *own]


def start_engine() -> Engine:
    """Returns an engine that is ready. Raises KnowledgeError."""
    with _no_garbage():
        from torchtriage.engine import Engine
        from torchtriage.knowledge.cache import cache_folder

        return Engine(load_knowledge(), cache_folder())


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Turns garbage collection off and afterwards exempts all existing objects from it. They live until the process
    ends, so searching them would cost a sixth of the start time."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
