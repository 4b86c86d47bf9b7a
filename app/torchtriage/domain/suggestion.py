"""What a language model made of failures that no entry names: a text that nothing was checked of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A generated text about a group. It never changes a verdict."""

    text: str
    model: str
    made_at: datetime
