"""After a log is read, no later step changes what was read of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path
from torchtriage.runs.read_runs import read_runs
from torchtriage.runs.run_reading import Reading

CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize("name", ["attribute_rank2", "abort_three_attempts", "barrier_forgotten", "annotations_cut"])
def test_what_was_read_is_the_same_before_and_after_the_cause_is_chosen(
    name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list[tuple[Reading, list[str]]]()

    def watched(*args: Any) -> Any:
        read = read_runs(*args)
        before.extend((reading, state_of(reading)) for reading in read.readings)
        return read

    monkeypatch.setattr("torchtriage.engine.read_runs", watched)
    engine.triage(open_path(next(iter(sorted((CORPUS / name).glob("log*"))))))
    assert before
    for reading, state in before:
        assert len(state) > 50
        assert state_of(reading) == state


def state_of(reading: Reading) -> list[str]:
    """Returns all values in the fields of a reading and in its collectors, with the path to each."""
    names = [field.name for field in fields(reading) if field.name != "matcher"]
    return [line for name in names for line in _values(getattr(reading, name), name, set())]


def _values(value: Any, path: str, seen: set[int]) -> Iterator[str]:
    if value is None or isinstance(value, (str, bytes, int, float)):
        yield f"{path} = {value!r}"
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}[{key!r}]"
            yield from _values(item, f"{path}[{key!r}]", seen)
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield f"{path}: {len(value)}"
        for number, item in enumerate(value):
            yield from _values(item, f"{path}[{number}]", seen)
    elif type(value).__module__.startswith(("torchtriage.facts", "torchtriage.parsing", "torchtriage.causality")):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        for name in (*slots, *getattr(value, "__dict__", ())):
            yield from _values(getattr(value, name, None), f"{path}.{name}", seen)
