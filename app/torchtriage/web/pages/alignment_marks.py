"""Turns the alignment of a sign with a text into a few marked pieces that show where they differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from torchtriage.matching.sign_alignment import SignToken


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of text. `kind`: same (in both), missing (in the sign only), instead (in the text only)."""

    kind: str
    text: str


def marks(tokens: Iterable[SignToken]) -> list[Mark]:
    """Returns the tokens as few pieces, in the order of the sign. Spaces between two differences count as missing."""
    pieces: list[Mark] = []
    for token in tokens:
        there = Mark("same" if token.state in ("matched", "found") else "missing", token.sign)
        instead = [Mark("instead", token.instead)] if token.instead else []
        if token.state == "found":
            pieces += [*instead, *([Mark("same", " ")] if instead else []), there]
        else:
            pieces += [there, *instead]
    return _joined(_blanks(pieces))


def _blanks(pieces: list[Mark]) -> list[Mark]:
    """Returns the pieces. A blank between two differences becomes missing; any other blank is in both."""
    kinds = [piece.kind for piece in pieces]
    for at in range(1, len(pieces) - 1):
        if pieces[at].text.isspace():
            kinds[at] = "missing" if kinds[at - 1] != "same" and kinds[at + 1] == "missing" else "same"
    return [Mark(kind, piece.text) for kind, piece in zip(kinds, pieces, strict=True)]


def _joined(pieces: list[Mark]) -> list[Mark]:
    return [Mark(kind, "".join(piece.text for piece in run)) for kind, run in groupby(pieces, lambda one: one.kind)]
