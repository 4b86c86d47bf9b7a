"""A new extractor needs its own class and its place in the registry, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from tests.built_in import built_in_engine, built_in_knowledge
from tests.collected import Collected
from tests.properties.pieces import LINES
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.engine import Engine
from torchtriage.parsing.extractor import CLAIMED, Extractor, FeedResult, SharedState
from torchtriage.parsing.registry import EXTRACTORS
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import strip_prefixes
from torchtriage.reading.sources import from_bytes

CORPUS = Path(__file__).resolve().parents[1] / "corpus"

STEPS = "".join(f"[rank 0] step {number} loss 0.5\n" for number in range(4))
KETTLE = "kettle-guard: boiler 3 ran dry\n  at valve 7\n"


class Kettle(Extractor):
    """Made up: two lines, of which the second one ends the event."""

    name: ClassVar = "kettle"
    words: ClassVar = ("kettle-guard: ",)
    anchors: ClassVar = (r"kettle-guard: ",)
    sources: ClassVar = frozenset({EventSource.DEVICE_ERROR})

    def __init__(self) -> None:
        self._begun: Line | None = None

    def feed(self, line: Line, above: str = "") -> FeedResult:
        begun, self._begun = self._begun, line
        if begun is None:
            return CLAIMED
        assert above == begun.text
        event = Event.at(begun, "CUDA error: an illegal memory access was encountered", EventSource.DEVICE_ERROR)
        return FeedResult((event,), True)

    def continues(self, stream: str) -> bool:
        return self._begun is not None and self._begun.text.startswith("kettle")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(built_in_knowledge(), extractors=(*EXTRACTORS, Kettle))


def test_a_further_extractor_gets_its_lines_and_its_events_make_a_verdict(engine: Engine) -> None:
    root = engine.triage(from_bytes((STEPS + KETTLE).encode())).root_cause
    assert root is not None
    assert root.entry == "cuda.illegal-access"
    assert [(line.line, line.text) for line in root.evidence] == [(5, "kettle-guard: boiler 3 ran dry")]


def test_its_lines_are_found_in_the_middle_of_a_big_log(engine: Engine) -> None:
    filling = "".join(f"[rank 0] a line of no interest {number % 1000}\n" for number in range(12_000))
    root = engine.triage(from_bytes((filling + KETTLE + filling).encode())).root_cause
    assert root is not None
    assert [line.line for line in root.evidence] == [12_001]


def test_without_it_the_same_log_shows_nothing_of_the_kind() -> None:
    verdict = built_in_engine().triage(from_bytes((STEPS + KETTLE).encode()))
    assert verdict.root_cause is None or verdict.root_cause.entry != "cuda.illegal-access"


def test_every_extractor_declares_what_the_registry_needs() -> None:
    assert len({kind.name for kind in EXTRACTORS}) == len(EXTRACTORS)
    for kind in EXTRACTORS:
        assert kind.words, kind
        assert kind.sources, kind
        assert not any(anchor.startswith("^") for anchor in (*kind.anchors, *kind.wide_anchors)), kind


def test_events_have_the_sources_that_their_extractor_declares() -> None:
    given: dict[str, set[EventSource]] = {kind.name: set() for kind in EXTRACTORS}
    logs = [file.read_text(errors="replace").split("\n")[:2000] for file in sorted(CORPUS.glob("*/log.txt"))[::5]]
    for raw in (LINES, *logs):
        lines = [strip_prefixes(line, Labels()).text for line in raw]
        for kind in EXTRACTORS:
            collected = Collected(kind.for_run(SharedState())).texts(lines)
            collected.close()
            given[kind.name] |= {event.source for event in collected.events}
    assert all(given[kind.name] <= kind.sources for kind in EXTRACTORS)
    assert sum(map(bool, given.values())) > 4  # extractors that gave any
