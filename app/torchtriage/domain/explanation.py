"""What a language model made of a failure, sentence by sentence, each with the line of the log that it named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a model. `stands`: the line that it names is in the log, and holds the words that it quotes; that
    the sentence follows from them nobody checked."""

    says: str
    file: str | None
    line: int | None
    quote: str
    stands: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Claims in the model's order. They never change a verdict."""

    claims: tuple[Claim, ...]
    model: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class ExplanationState:
    """What there is of an incident: whether the model is being asked, why the last try failed, what it said."""

    asked: bool = False
    problem: str | None = None
    said: Explanation | None = None
