"""The form of a vocabulary's YAML file, and its translation to `torchtriage.domain.vocabulary.VocabularyList`."""

from __future__ import annotations

from typing import Annotated

import re2
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from torchtriage.domain.vocabulary import VocabularyList, VocabularyPattern
from torchtriage.matching.patterns import refused_by_re2

LONGEST_PATTERN = 200  # characters; a longer one is several patterns
Filled = Annotated[str, Field(min_length=1)]
GroupName = Annotated[str, BeforeValidator(str)]  # YAML reads a bare number as one


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PatternForm(_Form):
    """A regex with its proof: each example holds it, no near miss does."""

    name: Filled | None = None
    regex: Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN)]
    examples: Annotated[list[Filled], Field(min_length=1)]
    no_match: list[Filled] = []

    @model_validator(mode="after")
    def _proved(self) -> PatternForm:
        if reason := refused_by_re2(self.regex):
            raise ValueError(f"RE2 refuses {self.regex!r}: {reason}")
        pattern = re2.compile(self.regex)
        for example in self.examples:
            if not pattern.search(example):
                raise ValueError(f"{self.regex!r} is not found in its example {example!r}")
        for example in self.no_match:
            if pattern.search(example):
                raise ValueError(f"{self.regex!r} is found in its counter-example {example!r}")
        return self

    def build(self) -> VocabularyPattern:
        return VocabularyPattern(self.regex, self.name, tuple(self.examples), tuple(self.no_match))


class VocabularyForm(_Form):
    """The whole file: `purpose`, `source` and one of `words`, `patterns` and `groups`.

    A folder of one's own that adds to a list need not repeat the purpose.
    """

    purpose: Filled | None = None
    source: Filled
    words: list[Filled] = []
    patterns: list[PatternForm] = []
    groups: dict[GroupName, list[Filled]] = {}

    @model_validator(mode="after")
    def _one_form(self) -> VocabularyForm:
        if sum(map(bool, (self.words, self.patterns, self.groups))) != 1:
            raise ValueError("a vocabulary list has exactly one of words, patterns and groups")
        for words in (self.words, *self.groups.values()):
            if twice := next((word for number, word in enumerate(words) if word in words[:number]), None):
                raise ValueError(f"{twice!r} stands twice")
        return self

    def build(self, name: str) -> VocabularyList:
        return VocabularyList(
            name,
            self.purpose or "",
            self.source,
            tuple(self.words),
            tuple(pattern.build() for pattern in self.patterns),
            tuple((group, tuple(words)) for group, words in self.groups.items()),
        )
