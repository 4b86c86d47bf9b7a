"""The built-in knowledge base, its engine and its search index, for tests that only read them.

Made once per process. One process compiles each, and the others of the run read it from the cache. They are excluded
from garbage collection, which took a fifth of the tests' time.
"""

from __future__ import annotations

import fcntl
import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN, loader
from torchtriage.knowledge.cache import cache_folder, load, load_index
from torchtriage.knowledge.symptom_search import SearchIndex
from torchtriage.reading.sources import from_bytes


@contextmanager
def alone() -> Iterator[None]:
    """Lets one process at a time write to the cache; the others wait."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "being-made").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def vocabulary() -> Vocabulary:
    """Returns the built-in vocabulary without the entries, which is fast enough to read while tests are collected."""
    return loader.load([]).vocabulary


@functools.cache
def built_in_knowledge() -> KnowledgeBase:
    with alone():
        return load([BUILT_IN], cache_folder())


@functools.cache
def built_in_engine() -> Engine:
    knowledge = built_in_knowledge()
    with alone():
        made = Engine(knowledge, cache_folder())
        made.triage(from_bytes(b"\n"))  # compiles the rest, so that no timed test waits for it
    gc.freeze()
    return made


@functools.cache
def built_in_index() -> SearchIndex:
    knowledge = built_in_knowledge()
    with alone():
        made = load_index(knowledge, cache_folder())
    gc.freeze()
    return made


def small_bases() -> Path:
    """Returns the cache folder for patterns of small knowledge bases that tests make. It is separate, so that they do
    not push out the built-in ones."""
    return cache_folder() / "small"
