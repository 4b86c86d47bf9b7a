"""Starts the engine for a command: the knowledge folders of the environment in, an engine out."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
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

    built_in, *own = folders_of_files()
    return [built_in, *packs_in(packs_home()), *own]


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


def load_knowledge() -> KnowledgeBase:
    """-> the knowledge base of these folders. Raises KnowledgeError."""
    from torchtriage.knowledge.cache import cache_folder, load

    return load(folders(), cache_folder())


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
