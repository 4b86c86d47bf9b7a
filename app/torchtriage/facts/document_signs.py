"""The patterns that identify a text as a program's source or a manual, not as a program's output."""

from __future__ import annotations

import re
from functools import cached_property

from torchtriage.domain.vocabulary import Vocabulary


class DocumentSigns:
    """The regexes, each compiled when it is first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def frame(self) -> re.Pattern[str]:
        """A line that only a program's source has: an import, a definition."""
        return self._named("source-code", "frame")

    @cached_property
    def statement(self) -> re.Pattern[str]:
        """A statement, in which the words of an error may stand that was never raised."""
        return self._named("source-code", "statement")

    @cached_property
    def heading(self) -> re.Pattern[str]:
        """A heading of a manual."""
        return self._named("documentation-words", "heading")

    @cached_property
    def prose(self) -> re.Pattern[str]:
        """What a manual says around an error that it quotes."""
        return self._named("documentation-words", "prose")

    @cached_property
    def history(self) -> re.Pattern[str]:
        """A line of a list of changes, which names errors that were fixed."""
        return self._named("documentation-words", "history")

    @cached_property
    def harmless_alarms(self) -> re.Pattern[str]:
        """Words of failure in a paste that report none."""
        return re.compile(self._vocabulary.regex("alarms-harmless"))

    def _named(self, listed: str, name: str) -> re.Pattern[str]:
        patterns = self._vocabulary.patterns(listed)
        return re.compile("|".join(item.exact for item in patterns if item.name == name))
