"""Finds what differs in a message that lists weights with different shapes, and how many different causes the list
shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import VocabularyPattern

SHAPE_DIFFERENCES = "weight-shapes"  # the name of a list in the vocabulary
_WITHIN = 40_000  # characters of a message that are searched
_SHOWN = 3  # weights that a sentence shows
_ROOM = 150  # characters for these weights in a sentence
_OTHER_DIMENSIONS = Fraction(0)  # the weights have different numbers of dimensions


@dataclass(frozen=True)
class _Weight:
    name: str
    saved: tuple[int, ...]
    current: tuple[int, ...]

    @property
    def differing(self) -> tuple[int, ...]:
        """The dimensions whose sizes differ."""
        both = zip(self.saved, self.current, strict=False)
        return tuple(place for place, (one, other) in enumerate(both) if one != other)

    @property
    def ratios(self) -> frozenset[Fraction]:
        """The ratios of the sizes that differ. In a wider model, all layers differ by the same ratio, whatever their
        sizes."""
        if len(self.saved) != len(self.current) or 0 in self.current:
            return frozenset([_OTHER_DIMENSIONS])
        return frozenset(Fraction(self.saved[place], self.current[place]) for place in self.differing)

    def __str__(self) -> str:
        return f"`{self.name}` {list(self.saved)} against {list(self.current)}"


def shape_differences(failure: Failure) -> Iterator[Fact]:
    """Yields `mismatch_count`, `mismatch_kinds` and `mismatch_examples` of the weights that a message lists with both
    shapes. If the first weight differs in only one dimension, it also yields `mismatch_axis`, `saved_size` and
    `current_size`."""
    weights = _listed(failure)
    if not weights:
        return
    yield failure.fact("mismatch_count", len(weights))
    examples = _examples(weights)
    yield failure.fact("mismatch_kinds", len(examples))
    yield failure.fact("mismatch_examples", _examples_text(examples))
    first = weights[0]
    if len(first.differing) == 1 and len(first.saved) == len(first.current):
        place = first.differing[0]
        yield failure.fact("mismatch_axis", place)
        yield failure.fact("saved_size", first.saved[place])
        yield failure.fact("current_size", first.current[place])


def _examples(weights: list[_Weight]) -> list[_Weight]:
    """Returns one weight for each ratio between sizes. It prefers weights that differ in the fewest ratios."""
    chosen: dict[Fraction, _Weight] = {}
    for weight in sorted(weights, key=lambda one: len(one.ratios)):
        for ratio in weight.ratios:
            chosen.setdefault(ratio, weight)
    return sorted(set(chosen.values()), key=weights.index)


def _examples_text(examples: list[_Weight]) -> str:
    """Returns as many examples as fit into a sentence, and how many more there are."""
    listed = [str(examples[0])]
    for weight in examples[1:_SHOWN]:
        if len("; ".join([*listed, str(weight)])) <= _ROOM:
            listed.append(str(weight))
    return "; ".join(listed) + (f"; {left} more" if (left := len(examples) - len(listed)) else "")


def _listed(failure: Failure) -> list[_Weight]:
    text = failure.raised.message[:_WITHIN] if failure.raised is not None else ""
    patterns = _patterns(failure.reading.matcher.patterns.vocabulary.patterns(SHAPE_DIFFERENCES))
    found = (match for pattern in patterns for match in pattern.finditer(text))
    weights = [_Weight(match["weight"], _sizes(match["saved"]), _sizes(match["current"])) for match in found]
    return [weight for weight in weights if weight.saved != weight.current]


def _sizes(shape: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d{1,15}", shape))


@lru_cache(maxsize=4)
def _patterns(patterns: tuple[VocabularyPattern, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern.exact) for pattern in patterns)
