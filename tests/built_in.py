"""The built-in knowledge base, its engine and its search index, made once a process for all tests that only read them.

They stay until the process ends, so they are not searched for garbage: that took a fifth of the tests' time.
"""

from __future__ import annotations

import functools
import gc
from pathlib import Path

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import cache_folder, load, load_index
from torchtriage.knowledge.symptom_search import SearchIndex


@functools.cache
def built_in_knowledge() -> KnowledgeBase:
    return load([BUILT_IN], cache_folder())


@functools.cache
def built_in_engine() -> Engine:
    made = Engine(built_in_knowledge(), cache_folder())
    gc.freeze()
    return made


@functools.cache
def built_in_index() -> SearchIndex:
    made = load_index(built_in_knowledge(), cache_folder())
    gc.freeze()
    return made


def small_bases() -> Path:
    """-> where the compiled patterns of a test's own few entries are kept: none may push out those of the built-in."""
    return cache_folder() / "small"
