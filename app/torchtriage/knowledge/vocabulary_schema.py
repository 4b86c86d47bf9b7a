"""The form of a vocabulary's YAML file, and its translation to `torchtriage.domain.vocabulary.VocabularyList`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from torchtriage.domain.vocabulary import VocabularyList, VocabularyPattern
from torchtriage.matching.patterns import refused_by_re2

LONGEST_PATTERN = 200  # characters; a longer one is several patterns
Filled = Annotated[str, Field(min_length=1)]
GroupName = Annotated[str, BeforeValidator(str)]  # YAML reads a bare number as one


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PatternForm(_Form):
    """A regex with its proof: each example holds it, no near miss does. `unless` must not match at the same place."""

    name: Filled | None = None
    regex: Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN)]
    unless: Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN)] | None = None
    ignore_case: bool = False
    examples: Annotated[list[Filled], Field(min_length=1)]
    no_match: list[Filled] = []

    @model_validator(mode="after")
    def _proved(self) -> PatternForm:
        for regex in filter(None, (self.regex, self.unless)):
            if reason := refused_by_re2(regex):
                raise ValueError(f"RE2 refuses {regex!r}: {reason}")
        pattern = re.compile(self.build().exact)
        for example in self.examples:
            if not pattern.search(example):
                raise ValueError(f"{self.regex!r} is not found in its example {example!r}")
        for example in self.no_match:
            if pattern.search(example):
                raise ValueError(f"{self.regex!r} is found in its counter-example {example!r}")
        return self

    def build(self) -> VocabularyPattern:
        return VocabularyPattern(self.regex, self.unless, self.name, self.ignore_case)


class VocabularyForm(_Form):
    """The whole file: `purpose`, `source` and one of `words`, `patterns` and `groups`.

    `ignore_case` holds for all patterns. A folder of one's own that adds to a list need not repeat the purpose.
    """

    purpose: Filled | None = None
    source: Filled
    ignore_case: bool = False
    words: list[Filled] = []
    patterns: list[PatternForm] = []
    groups: dict[GroupName, list[Filled]] = {}

    @model_validator(mode="before")
    @classmethod
    def _all_cases(cls, data: Any) -> Any:
        patterns = data.get("patterns") if isinstance(data, dict) and data.get("ignore_case") is True else None
        if not isinstance(patterns, list):
            return data
        cased = [{"ignore_case": True} | item if isinstance(item, dict) else item for item in patterns]
        return data | {"patterns": cased}

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
