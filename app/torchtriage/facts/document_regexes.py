"""The patterns that show that a text is source code or a manual instead of a program's output."""

from __future__ import annotations

import re
from functools import cached_property

from torchtriage.domain.vocabulary import Vocabulary


class DocumentRegexes:
    """The regexes. Each is compiled at its first use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def frame(self) -> re.Pattern[str]:
        """A line that only source code has, such as an import or a definition."""
        return self._named("source-code", "frame")

    @cached_property
    def statement(self) -> re.Pattern[str]:
        """A statement. It may contain the words of an error that was never raised."""
        return self._named("source-code", "statement")

    @cached_property
    def heading(self) -> re.Pattern[str]:
        """A heading of a manual."""
        return self._named("documentation-words", "heading")

    @cached_property
    def prose(self) -> re.Pattern[str]:
        """Words of a manual around an error that it quotes."""
        return self._named("documentation-words", "prose")

    @cached_property
    def sentence(self) -> re.Pattern[str]:
        """The start of a line of running text."""
        return self._named("documentation-words", "sentence")

    @cached_property
    def table_row(self) -> re.Pattern[str]:
        """A row of a table in Markdown."""
        return self._named("documentation-words", "table_row")

    @cached_property
    def history(self) -> re.Pattern[str]:
        """A line of a change log, which lists errors that were fixed."""
        return self._named("documentation-words", "history")

    @cached_property
    def harmless_alarms(self) -> re.Pattern[str]:
        """Words about failures in a pasted text that do not report a failure."""
        return re.compile(self._vocabulary.regex("alarms-harmless"))

    @cached_property
    def alarm(self) -> re.Pattern[str]:
        """A word of failure in a line of a paste: as a word of its own, and not in a file name or a version."""
        # Python lists its extension modules when a signal ends it.
        return re.compile(
            r"(?i)^exception in |^Extension modules: [\w.]+, "
            rf"|(?:^|[\s\]:|*(`])(?:{self._words('in-a-line')})\b(?!\.(?:\d|(?:log|txt|html?|json|py)\b))"
        )

    @cached_property
    def failure_begins(self) -> re.Pattern[str]:
        """The start of a message about a failure, which does not belong to a warning above it."""
        return re.compile(rf"(?i)\W{{0,3}}(?:{self._words('begins-a-message')})")

    def _words(self, group: str) -> str:
        return "|".join(map(re.escape, self._vocabulary.groups("words-of-failure")[group]))

    def _named(self, listed: str, name: str) -> re.Pattern[str]:
        patterns = self._vocabulary.patterns(listed)
        return re.compile("|".join(item.exact for item in patterns if item.name == name))
