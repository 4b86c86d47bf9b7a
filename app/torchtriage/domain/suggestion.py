"""What a language model made of failures that no entry names: a text that nothing was checked of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torchtriage.domain.timestamps import iso


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A generated text about a group. It never changes a verdict."""

    text: str
    model: str
    made_at: datetime

    def as_dict(self) -> dict[str, Any]:
        return {"text": self.text, "model": self.model, "made_at": iso(self.made_at)}
