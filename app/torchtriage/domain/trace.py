"""The steps of one triage: the result of each and the time it took. The caller provides the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

MAX_SAMPLES = 3
SAMPLE = 80  # characters of a sample


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a triage: its name, its seconds, its result (`412 lines`) and a few samples of the result."""

    name: str
    seconds: float
    gave: str
    samples: tuple[str, ...] = ()


@dataclass(slots=True)
class _Stream:
    seconds: float = 0.0
    gave: int = 0
    samples: list[str] = field(default_factory=list)


class Trace:
    """Collects the steps of one triage. Streaming steps run in turns, and each is charged only its own time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds from any starting point."""
        self._clock = clock
        self._last = clock()
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._steps: list[TraceStep] = []

    def through(
        self, name: str, unit: str, items: Iterable[T], count: Callable[[T], int], sample: Callable[[T], str]
    ) -> Iterator[T]:
        """Returns the items of a streaming step, and counts them as they pass."""
        stream = self._streams.setdefault((name, unit), _Stream())
        return self._counted(stream, iter(items), count, sample)

    def _counted(
        self, stream: _Stream, source: Iterator[T], count: Callable[[T], int], sample: Callable[[T], str]
    ) -> Iterator[T]:
        while True:
            began = self._clock()
            item = next(source, None)
            stream.seconds += self._clock() - began
            if item is None:
                return
            stream.gave += count(item)
            if len(stream.samples) < MAX_SAMPLES and count(item):
                stream.samples.append(sample(item))
            yield item

    def did(self, name: str, gave: str, samples: Iterable[str] = ()) -> None:
        """Records a step that has just ended. It began when the previous one ended."""
        now, before = self._clock(), 0.0
        for (stream, unit), stream_of in self._streams.items():  # Each step waited for the one before it.
            self._steps.append(
                TraceStep(stream, stream_of.seconds - before, f"{stream_of.gave:,} {unit}", tuple(stream_of.samples))
            )
            before = stream_of.seconds
        self._steps.append(TraceStep(name, now - self._last - before, gave, tuple(islice(samples, MAX_SAMPLES))))
        self._streams.clear()
        self._last = now

    @property
    def steps(self) -> tuple[TraceStep, ...]:
        """The steps in their order."""
        return tuple(self._steps)
