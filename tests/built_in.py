"""The built-in knowledge base, its engine and its search index, made once a process for all tests that only read them.

One process makes each, and the others of the run take it from the cache. They stay until the process ends, so they are
not searched for garbage: that took a fifth of the tests' time.
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
    """While one process makes what is kept in the cache, the others wait for it."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "being-made").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def vocabulary() -> Vocabulary:
    """-> the one that ships, without the entries: quick enough to be read while tests are collected."""
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
        made.triage(from_bytes(b"\n"))  # compiles what else it needs, so that no test waits for that while it is timed
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
    """-> where the compiled patterns of a test's own few entries are kept: none may push out those of the built-in."""
    return cache_folder() / "small"
