"""The patterns that judge the end of a run without failures; searched in its last lines only."""

from __future__ import annotations

import re
from functools import cached_property

from torchtriage.domain.line import Line
from torchtriage.domain.vocabulary import Vocabulary

_BY_STREAM = '"textPayload"'  # Cloud Logging gives all that a container writes to stderr one severity
_AROUND = 300  # characters of a line in which its level stands


class EndingSigns:
    """The regexes, each compiled when it is first asked for: most runs failed of something else."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def closing(self) -> re.Pattern[str]:
        """The last words of good runs."""
        return re.compile(self._vocabulary.regex("run-last-words"))

    @cached_property
    def alarming(self) -> re.Pattern[str]:
        """What speaks against a good end."""
        return re.compile(self._vocabulary.regex("last-words-alarming"))

    @cached_property
    def calm(self) -> re.Pattern[str]:
        """What looks like that and is harmless."""
        lists = ("last-words-harmless", "run-goes-on", "retry-messages")
        return re.compile("|".join(map(self._vocabulary.regex, lists)))

    @cached_property
    def harmless_errors(self) -> re.Pattern[str]:
        """Errors by their level that are no failure of the run."""
        return re.compile(self._vocabulary.regex("error-levels-harmless"))

    @cached_property
    def error_levels(self) -> re.Pattern[str]:
        """The level of an error, as loggers write it."""
        return re.compile(self._vocabulary.regex("error-levels"))

    @cached_property
    def error_words(self) -> re.Pattern[str]:
        """Words that speak of an error, whatever the level."""
        return re.compile(self._vocabulary.regex("error-words"))

    @cached_property
    def harmless_words(self) -> re.Pattern[str]:
        """What has such words and reports no error."""
        return re.compile(self._vocabulary.regex("error-words-harmless"))

    def is_error(self, line: Line) -> bool:
        """-> whether the writer of a line called it an error; the level may be in what was stripped or around it."""
        around = "" if _BY_STREAM in line.raw else line.raw[:_AROUND]
        return bool(self.error_levels.search(line.text) or self.error_levels.search(around))

    @cached_property
    def working(self) -> re.Pattern[str]:
        """What a run says about what it does between its steps."""
        return re.compile(self._vocabulary.regex("between-steps"))

    @cached_property
    def statuses(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """How a process or a job ended: `status` with an exit status, `signal` with a number, `state` with a word."""
        patterns = self._vocabulary.patterns("exit-statuses")
        return tuple((item.name or "status", re.compile(item.exact)) for item in patterns)

    @cached_property
    def failed_states(self) -> frozenset[str]:
        """What schedulers call a job that failed, in capitals."""
        return frozenset(self._vocabulary.words("job-states-failed"))
