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
    """-> the built-in knowledge base, then the folders of TRIAGE_KNOWLEDGE_DIRS."""
    own = os.environ.get("TRIAGE_KNOWLEDGE_DIRS", "")
    return [BUILT_IN, *(Path(folder) for folder in own.split(os.pathsep) if folder)]


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
