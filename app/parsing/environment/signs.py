"""The regexes of the collector: most are never needed for a log, so they are compiled when one is."""

from __future__ import annotations

import re
from functools import cached_property


class Sign:
    """A regex that a set finds at once, as it is its own key: Python hashes a compiled regex by all of its code."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled form."""
        return re.compile(self.pattern)


Shown = frozenset[Sign]  # the signs that a text shows
