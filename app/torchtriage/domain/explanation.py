"""A language model's explanation of a failure, sentence by sentence, each with the line of the log that it names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a model. `stands` means that the line it names is in the log and contains the words that it quotes.
    It does not mean that the sentence is true."""

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
    """The explanation of an incident: whether the model is being asked, why the last request failed, and its answer."""

    asked: bool = False
    problem: str | None = None
    said: Explanation | None = None
