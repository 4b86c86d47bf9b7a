"""Search by symptom: finds entries for a question in English, Chinese or both, best first.

Uses no model and no network, but words, their stems and synonyms (`synonyms.yaml`), pairs of Chinese characters, and
the nearest known word for a misspelled one. The score of an entry is the share of the question that it covers.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.knowledge import synonyms, tokenizer
from torchtriage.knowledge.synonyms import NOTHING, Phrases, meanings
from torchtriage.knowledge.tokenizer import is_chinese, stem, units

# Files on which the index depends, besides the entries.
SOURCES = (Path(__file__), Path(tokenizer.__file__), Path(synonyms.__file__), synonyms.FILE)

_MIN_COVERAGE = 0.17  # the smallest share of a question's weight that an entry must cover
# the smallest weight that an entry must cover, in units of the rarest word: common words alone find nothing
_MIN_STATED = 0.5
_MIN_SHARE = 0.33  # a hit needs at least this share of the best score
_LIKENESS = 0.4  # the part of a score that comes from similarity to one question; the rest comes from all texts
_LOUD = 1.5  # an entry counts as using a term (which makes the term less rare) from this weight on
_UNHEARD = 6.0  # weight of a word that no entry uses: slightly more than the rarest
_MAX_QUERY_LENGTH = 500
_EXAMPLE = 300  # characters of an example that are indexed
_QUESTION = 2  # texts of at least this weight are questions, which are also compared with a query as a whole
_SATURATION = 1.5  # controls how fast repetitions of a word stop adding to the score


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found. `score` is from 0 to 1."""

    entry: str
    score: float


class SearchIndex:
    """The search index of all entries. Can be used by several threads at once, and can be pickled."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._phrases = synonyms.load()
        self._known: set[str] = set()  # words that are spelled correctly
        # words that a misspelled word can be corrected to
        self._usual = {word for group in self._phrases.values() for cut, _ in group for word in cut}
        self._said: dict[str, dict[str, float]] = {}  # term → entry → weight of the term there
        self._asked: dict[str, list[int]] = {}  # term → indexes of the questions that contain it
        questions: list[tuple[str, frozenset[str]]] = []
        for entry in knowledge.entries.values():
            for weight, texts in _fields(entry):
                for text in texts:
                    terms = self._learn(text, weight, entry.id)
                    if weight >= _QUESTION and terms:
                        questions.append((entry.id, terms))
        self._known |= self._usual
        count = len(knowledge.entries)
        self._weights = {term: _weight(term, _loud(by), count) for term, by in self._said.items()}
        self._least_said = _MIN_STATED * _weight("", 1, count)
        self._questions = [(name, self._total(terms)) for name, terms in questions]
        for number, (_, terms) in enumerate(questions):
            for term in terms:
                self._asked.setdefault(term, []).append(number)

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Returns at most `limit` entries, best first. Empty if no entry uses the words of the query."""
        terms = _cut([self._nearest(unit) for unit in units(query[:_MAX_QUERY_LENGTH])], self._phrases)
        whole = self._total(terms)
        covered: dict[str, float] = defaultdict(float)
        shared: dict[int, float] = defaultdict(float)
        for term in terms.keys() & self._said.keys():
            weight = self._weights[term]
            for name, frequency in self._said[term].items():
                covered[name] += weight * frequency / (frequency + _SATURATION)
            for number in self._asked.get(term, ()):
                shared[number] += weight
        alike: dict[str, float] = defaultdict(float)  # entry → similarity of its most similar question
        for number, weight in shared.items():
            name, its_whole = self._questions[number]
            alike[name] = max(alike[name], weight / math.sqrt(whole * its_whole))
        hits = [
            Hit(name, round((1 - _LIKENESS) * weight / whole + _LIKENESS * alike[name], 3))
            for name, weight in covered.items()
            if weight >= max(self._least_said, _MIN_COVERAGE * whole) and self._is_about(name, terms)
        ]
        least = _MIN_SHARE * max((hit.score for hit in hits), default=0)
        return sorted((hit for hit in hits if hit.score >= least), key=lambda hit: (-hit.score, hit.entry))[:limit]

    def _is_about(self, name: str, terms: dict[str, int]) -> bool:
        """Returns whether an entry uses two words of a query, or every word of the query is used by some entry."""
        places = {place for term, place in terms.items() if name in self._said.get(term, ())}
        return len(places) > 1 or terms.keys() <= self._said.keys()

    def _learn(self, text: str, weight: float, name: str) -> frozenset[str]:
        cut = units(text)
        words = {*cut, *map(stem, cut)}
        self._known |= words
        if weight >= _QUESTION:
            self._usual |= words
        terms = frozenset(_cut(cut, self._phrases))
        for term in terms:
            by = self._said.setdefault(term, {})
            by[name] = by.get(name, 0) + weight
        return terms

    def _total(self, terms: Iterable[str]) -> float:
        return sum(self._weights.get(term, _unheard(term)) for term in terms)

    def _nearest(self, word: str) -> str:
        """Returns the word itself if it is known, else the word of a question of which it is a misspelling.

        The first letter must be right, and at most one letter in eight may be wrong. A word of four letters may lack
        one letter or have two of them swapped.
        """
        if len(word) < 4 or not word.isascii() or word.isdigit() or word in self._known or stem(word) in self._known:
            return word
        from rapidfuzz import process  # imported here because few queries need it
        from rapidfuzz.distance import OSA

        most = 1 if len(word) < 9 else 2
        meant = (each for each in self._usual if each[0] == word[0] and each.isascii())
        if len(word) == 4:
            meant = (each for each in meant if len(each) > 4 or sorted(each) == sorted(word))
        found = process.extractOne(word, sorted(meant), scorer=OSA.distance, score_cutoff=most)
        return found[0] if found else word


def _fields(entry: Entry) -> Iterator[tuple[float, list[str]]]:
    """Yields (weight, texts) for the parts of an entry that are searched."""
    yield 3, [question for _, question in entry.asks]
    yield _QUESTION, [entry.title.en, entry.title.zh]
    yield 1.5, [entry.id]
    signs = [part for sign in entry.signs for part in (sign.all or (sign,))]
    yield 1, [sign.text or re.sub(r"\\[a-zA-Z]|\(\?[a-z:]+", " ", sign.regex or "") for sign in signs]
    yield 0.6, [text for cause in entry.causes for text in (cause.en, cause.zh)]
    yield 0.4, [text for fix in entry.fixes for text in (fix.title.en, fix.title.zh)]
    yield 0.4, [example[:_EXAMPLE] for example in entry.messages()]


def _cut(found: list[str], phrases: Phrases) -> dict[str, int]:
    """Returns the terms of a text, each with the index of the word at which it begins. Terms are stems, synonyms and
    pairs of adjacent Chinese characters. Words without meaning for a search are left out, and no pair crosses them."""
    stems = [stem(unit) for unit in found]
    matched = meanings(stems, phrases)
    left_out = {at for first, behind, name in matched if name == NOTHING for at in range(first, behind)}
    kept = ["" if at in left_out else unit for at, unit in enumerate(stems)]
    terms = {unit: at for at, unit in enumerate(kept) if unit and not is_chinese(unit)}
    for at, (a, b) in enumerate(pairwise(kept)):
        if a and b and is_chinese(a) and is_chinese(b):
            terms[a + b] = at
    terms.update({name: first for first, _, name in matched if name != NOTHING})
    return terms


def _loud(by: dict[str, float]) -> int:
    """Returns how many entries use a term with at least the weight `_LOUD`; 1 if none do."""
    return sum(weight >= _LOUD for weight in by.values()) or 1


def _weight(term: str, entries: int, count: int) -> float:
    """Returns the weight of a term: rare terms weigh more, synonyms more than words, plain numbers less."""
    rare = math.log(1 + (count - entries + 0.5) / (entries + 0.5))
    return rare * (1.5 if term.startswith("=") else _share(term))


def _unheard(term: str) -> float:
    """Returns the weight of a term that no entry uses."""
    return _UNHEARD * _share(term)


def _share(term: str) -> float:
    """Returns how much a term counts compared with a word: numbers and pairs of Chinese characters count less."""
    return 0.15 if term.isdigit() and len(term) == 1 else 0.5 if len(term) == 2 and is_chinese(term) else 1
