"""The patterns that decide how a run without failures ended. They are searched only in its last lines."""

from __future__ import annotations

import re
from functools import cached_property

from torchtriage.domain.line import Line
from torchtriage.domain.vocabulary import Vocabulary

_BY_STREAM = '"textPayload"'  # Cloud Logging gives the same severity to everything that a container writes to stderr
_AROUND = 300  # characters at the start of a line that contain its level


class EndingRegexes:
    """The regexes. Each is compiled at its first use, because most runs end with a failure."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def closing(self) -> re.Pattern[str]:
        """The last words of runs that ended well."""
        return re.compile(self._vocabulary.regex("run-last-words"))

    @cached_property
    def alarming(self) -> re.Pattern[str]:
        """Words that contradict a good end."""
        return re.compile(self._vocabulary.regex("last-words-alarming"))

    @cached_property
    def calm(self) -> re.Pattern[str]:
        """Harmless words that look alarming."""
        lists = ("last-words-harmless", "run-goes-on", "retry-messages")
        return re.compile("|".join(map(self._vocabulary.regex, lists)))

    @cached_property
    def harmless_errors(self) -> re.Pattern[str]:
        """Lines with the level of an error that do not report a failure of the run."""
        return re.compile(self._vocabulary.regex("error-levels-harmless"))

    @cached_property
    def error_levels(self) -> re.Pattern[str]:
        """The level of an error, as loggers print it."""
        return re.compile(self._vocabulary.regex("error-levels"))

    @cached_property
    def error_words(self) -> re.Pattern[str]:
        """Words about an error, whatever the level."""
        return re.compile(self._vocabulary.regex("error-words"))

    @cached_property
    def harmless_words(self) -> re.Pattern[str]:
        """Text that contains such words but reports no error."""
        return re.compile(self._vocabulary.regex("error-words-harmless"))

    def is_error(self, line: Line) -> bool:
        """Returns whether the writer of a line marked it as an error. The level may be in the prefix that was
        stripped."""
        around = "" if _BY_STREAM in line.raw else line.raw[:_AROUND]
        return bool(self.error_levels.search(line.text) or self.error_levels.search(around))

    @cached_property
    def working(self) -> re.Pattern[str]:
        """Messages of a run about what it does between its steps."""
        return re.compile(self._vocabulary.regex("between-steps"))

    @cached_property
    def statuses(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """How a process or job ended. The name of a pattern says what its group is: `status` an exit status, `signal` a
        number, `state` a word."""
        patterns = self._vocabulary.patterns("exit-statuses")
        return tuple((item.name or "status", re.compile(item.exact)) for item in patterns)

    @cached_property
    def failed_states(self) -> frozenset[str]:
        """The words, in capitals, that schedulers use for a failed job."""
        return frozenset(self._vocabulary.words("job-states-failed"))
