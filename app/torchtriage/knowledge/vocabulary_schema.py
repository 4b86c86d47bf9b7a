"""The pydantic models of a vocabulary's YAML file, and their conversion to
`torchtriage.domain.vocabulary.VocabularyList`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from torchtriage.domain.vocabulary import VocabularyList, VocabularyPattern
from torchtriage.facts.line_forms import pointer_of
from torchtriage.matching.patterns import refused_by_re2

MAX_PATTERN_LENGTH = 200  # characters; a longer pattern should be split
Filled = Annotated[str, Field(min_length=1)]
TellsOf = Literal["run", "moment", "process"]
GroupName = Annotated[str, BeforeValidator(str)]  # YAML reads a number without quotes as int


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PatternForm(_Form):
    """A regex with tests: it matches each of `examples` and none of `no_match`. `unless` must not match at the same
    place.

    In a list of facts, each named group is a fact. `unit` is the unit of all groups, or maps group names to units.
    `tells_of` says what the fact is about: `run`, so it counts wherever its line is; `moment`, so only lines above the
    failure count; `process`, so only lines of the process that failed count. In a lookup table, `tells` has the facts
    that follow from a match.
    """

    name: Filled | None = None
    tells: dict[str, Filled] = {}
    regex: Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_LENGTH)]
    unless: Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_LENGTH)] | None = None
    ignore_case: bool = False
    unit: Filled | dict[str, Filled] = {}
    tells_of: TellsOf = "run"
    examples: Annotated[list[Filled], Field(min_length=1)]
    no_match: list[Filled] = []

    @model_validator(mode="after")
    def _proved(self) -> PatternForm:
        for regex in filter(None, (self.regex, self.unless)):
            if reason := refused_by_re2(regex):
                raise ValueError(f"RE2 rejects {regex!r}: {reason}")
        pattern = re.compile(self.build().exact)
        for example in self.examples:
            if not pattern.search(example):
                raise ValueError(f"{self.regex!r} does not match its example {example!r}")
        for example in self.no_match:
            if pattern.search(example):
                raise ValueError(f"{self.regex!r} matches its near miss {example!r}")
        return self

    def build(self) -> VocabularyPattern:
        units = dict(self.unit) if isinstance(self.unit, dict) else dict.fromkeys(self.groups, self.unit)
        return VocabularyPattern(
            self.regex,
            self.unless,
            self.name,
            tuple(self.tells.items()),
            self.ignore_case,
            tuple(units.items()),
            self.tells_of,
        )

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        return list(re.compile(self.regex).groupindex)


class VocabularyForm(_Form):
    """A vocabulary's whole file: `purpose`, `source` and exactly one of `words`, `patterns` and `groups`.

    `ignore_case` and `tells_of` are the defaults for all patterns. A file in the user's own folder that adds to a list
    may omit `purpose`. `facts` explains the groups of a list of facts; if it is present, it must explain all of them.
    """

    purpose: Filled | None = None
    source: Filled
    ignore_case: bool = False
    tells_of: TellsOf | None = None
    facts: dict[str, Filled] = {}
    words: list[Filled] = []
    patterns: list[PatternForm] = []
    groups: dict[GroupName, list[Filled]] = {}

    @model_validator(mode="before")
    @classmethod
    def _of_all(cls, data: Any) -> Any:
        patterns = data.get("patterns") if isinstance(data, dict) else None
        common = {name: data[name] for name in ("ignore_case", "tells_of") if data.get(name)} if patterns else {}
        if not isinstance(patterns, list) or not common:
            return data
        return data | {"patterns": [common | item if isinstance(item, dict) else item for item in patterns]}

    @model_validator(mode="after")
    def _one_form(self) -> VocabularyForm:
        if sum(map(bool, (self.words, self.patterns, self.groups))) != 1:
            raise ValueError("a vocabulary list has exactly one of words, patterns and groups")
        for words in (self.words, *self.groups.values()):
            if twice := next((word for number, word in enumerate(words) if word in words[:number]), None):
                raise ValueError(f"{twice!r} appears twice")
        for pattern in self.patterns if self.facts else ():
            if len(pattern.groups) != re.compile(pattern.regex).groups:
                raise ValueError(f"each group of {pattern.regex!r} needs a name")
            names = [*(name for name in pattern.groups if not name.endswith("_unit")), *pattern.tells]
            if unknown := [name for name in names if name not in self.facts]:
                raise ValueError(f"`facts` does not say what {unknown[0]!r} of {pattern.regex!r} means")
        return self

    def build(self, name: str) -> VocabularyList:
        return VocabularyList(
            name,
            self.purpose or "",
            self.source,
            tuple(self.words),
            tuple(self._built(pattern) for pattern in self.patterns),
            tuple((group, tuple(words)) for group, words in self.groups.items()),
            tuple(self.facts.items()),
        )

    def _built(self, form: PatternForm) -> VocabularyPattern:
        pattern = form.build()
        return replace(pattern, pointer=pointer_of(pattern)) if self.facts else pattern
