"""An extractor that keeps all its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchtriage.domain.event import Event
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.extractor import Extractor


class Collected:
    """Feeds an extractor line by line. All other attributes are those of the extractor."""

    def __init__(self, extractor: Extractor) -> None:
        self.extractor = extractor
        self.events: list[Event] = []

    def feed(self, line: Line, above: str = "") -> bool:
        """Feeds one line. Returns whether the extractor claims it."""
        events, claimed = self.extractor.feed(line, above)
        self.events += events
        return claimed

    def texts(self, texts: Iterable[str], **origin: Any) -> Collected:
        """Feeds lines with these texts, numbered from 1, all with this origin."""
        above = ""
        for number, text in enumerate(texts, 1):
            self.feed(Line(number, text, text, Position(1, number), **origin), above)
            above = text
        return self

    def close(self) -> None:
        """Ends the events that are still open."""
        self.events += self.extractor.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.extractor, name)
