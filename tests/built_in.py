"""The built-in knowledge base and its engine, made once a process for all tests that only read them."""

from __future__ import annotations

import functools

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load


@functools.cache
def built_in_knowledge() -> KnowledgeBase:
    return load([BUILT_IN])


@functools.cache
def built_in_engine() -> Engine:
    return Engine(built_in_knowledge())
