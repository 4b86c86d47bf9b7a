"""Search by symptom: a question in English, Chinese or both in; the entries that answer it, best first, out.

No model and no network: words, their stems and meanings (`synonyms.yaml`), pairs of Chinese characters, and the nearest
known word for a misspelt one. An entry's score is the share of the question that it covers.
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

# What an index depends on beside the entries.
SOURCES = (Path(__file__), Path(tokenizer.__file__), Path(synonyms.__file__), synonyms.FILE)

_LEAST = 0.17  # what an entry must cover of what a question says, or it is no answer
_LEAST_SAID = 0.5  # and what that must weigh, in rarest words: common ones alone say nothing
_LEAST_SHARE = 0.33  # a score below this share of the best is none
_LIKENESS = 0.4  # how much of a score is likeness to one question; the rest is what all texts cover
_LOUD = 1.5  # from this on, an entry says a term loudly enough to make it a less rare one
_UNHEARD = 6.0  # what a word weighs that no entry knows: somewhat more than the rarest
_LONGEST_QUERY = 500
_EXAMPLE = 300  # characters of an example that are searched
_QUESTION = 2  # from this weight on, a text is a question that a query can be like as a whole
_SATURATION = 1.5  # how soon saying a word again stops counting


@dataclass(frozen=True, slots=True)
class Hit:
    """The id of an entry that was found; `score` is from 0 to 1."""

    entry: str
    score: float


class SearchIndex:
    """Everything that can be found, cut into terms once. Safe for use by any thread, and can be pickled."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._phrases = synonyms.load()
        self._known: set[str] = set()  # words that are spelt right
        self._usual = {word for group in self._phrases.values() for cut, _ in group for word in cut}  # meant by a typo
        self._said: dict[str, dict[str, float]] = {}  # term → entry → how loudly it says it
        self._asked: dict[str, list[int]] = {}  # term → numbers of the questions that have it
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
        self._least_said = _LEAST_SAID * _weight("", 1, count)
        self._questions = [(name, self._total(terms)) for name, terms in questions]
        for number, (_, terms) in enumerate(questions):
            for term in terms:
                self._asked.setdefault(term, []).append(number)

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """-> at most `limit` entries, best first; none where the query says nothing that an entry knows."""
        terms = _cut([self._nearest(unit) for unit in units(query[:_LONGEST_QUERY])], self._phrases)
        whole = self._total(terms)
        covered: dict[str, float] = defaultdict(float)
        shared: dict[int, float] = defaultdict(float)
        for term in terms.keys() & self._said.keys():
            weight = self._weights[term]
            for name, said in self._said[term].items():
                covered[name] += weight * said / (said + _SATURATION)
            for number in self._asked.get(term, ()):
                shared[number] += weight
        alike: dict[str, float] = defaultdict(float)  # entry → likeness of its most similar question
        for number, weight in shared.items():
            name, its_whole = self._questions[number]
            alike[name] = max(alike[name], weight / math.sqrt(whole * its_whole))
        hits = [
            Hit(name, round((1 - _LIKENESS) * weight / whole + _LIKENESS * alike[name], 3))
            for name, weight in covered.items()
            if weight >= max(self._least_said, _LEAST * whole) and self._is_about(name, terms)
        ]
        least = _LEAST_SHARE * max((hit.score for hit in hits), default=0)
        return sorted((hit for hit in hits if hit.score >= least), key=lambda hit: (-hit.score, hit.entry))[:limit]

    def _is_about(self, name: str, terms: dict[str, int]) -> bool:
        """-> whether an entry says two words of a query, or a query has no word that is strange to all."""
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
        """-> the word itself where it is known, else the word of a question that it is a misspelling of.

        Its first letter is right, and one letter in eight is wrong at most; a word of four letters lacks one or has
        two of them in the wrong order.
        """
        if len(word) < 4 or not word.isascii() or word.isdigit() or word in self._known or stem(word) in self._known:
            return word
        from rapidfuzz import process  # here, as few queries need it
        from rapidfuzz.distance import OSA

        most = 1 if len(word) < 9 else 2
        meant = (each for each in self._usual if each[0] == word[0] and each.isascii())
        if len(word) == 4:
            meant = (each for each in meant if len(each) > 4 or sorted(each) == sorted(word))
        found = process.extractOne(word, sorted(meant), scorer=OSA.distance, score_cutoff=most)
        return found[0] if found else word


def _fields(entry: Entry) -> Iterator[tuple[float, list[str]]]:
    """-> (weight, texts) of what is searched."""
    yield 3, [question for _, question in entry.asks]
    yield _QUESTION, [entry.title.en, entry.title.zh]
    yield 1.5, [entry.id]
    signs = [part for sign in entry.signs for part in (sign.all or (sign,))]
    yield 1, [sign.text or re.sub(r"\\[a-zA-Z]|\(\?[a-z:]+", " ", sign.regex or "") for sign in signs]
    yield 0.6, [text for cause in entry.causes for text in (cause.en, cause.zh)]
    yield 0.4, [text for fix in entry.fixes for text in (fix.title.en, fix.title.zh)]
    yield 0.4, [example[:_EXAMPLE] for example in entry.messages()]


def _cut(found: list[str], phrases: Phrases) -> dict[str, int]:
    """-> the terms of a text's units, each with the place of the word at which it begins: stems, meanings, pairs of
    neighbouring Chinese characters. What says nothing is left out, and no pair goes across it."""
    stems = [stem(unit) for unit in found]
    said = meanings(stems, phrases)
    left_out = {at for first, behind, name in said if name == NOTHING for at in range(first, behind)}
    kept = ["" if at in left_out else unit for at, unit in enumerate(stems)]
    terms = {unit: at for at, unit in enumerate(kept) if unit and not is_chinese(unit)}
    for at, (a, b) in enumerate(pairwise(kept)):
        if a and b and is_chinese(a) and is_chinese(b):
            terms[a + b] = at
    terms.update({name: first for first, _, name in said if name != NOTHING})
    return terms


def _loud(by: dict[str, float]) -> int:
    """-> how many entries say a term loudly; one at least."""
    return sum(said >= _LOUD for said in by.values()) or 1


def _weight(term: str, entries: int, count: int) -> float:
    """-> what a term counts: the rarer the more; meanings more than words, bare digits less."""
    rare = math.log(1 + (count - entries + 0.5) / (entries + 0.5))
    return rare * (1.5 if term.startswith("=") else _share(term))


def _unheard(term: str) -> float:
    """-> what a term counts that no entry knows."""
    return _UNHEARD * _share(term)


def _share(term: str) -> float:
    """-> how much of a word a term is: digits and pairs of Chinese characters say less."""
    return 0.15 if term.isdigit() and len(term) == 1 else 0.5 if len(term) == 2 and is_chinese(term) else 1
