"""Whether a failure is one of the framework that an area is about: an area and an exception in, yes or no out."""

from __future__ import annotations

import re
from functools import lru_cache

from torchtriage.domain.event import Raised
from torchtriage.domain.vocabulary import Vocabulary

AREA_WORDS = "area-words"  # the list of the vocabulary


class AreaWords:
    """The words of each area; an area that has none is about any program."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = vocabulary.groups(AREA_WORDS)

    def names(self, area: str, raised: Raised) -> bool:
        """-> whether the exception's traceback or message names what the area is about."""
        words = self._words.get(area)
        return words is None or any(map(_regex(words).search, _texts(raised)))

    def excludes(self, area: str, raised: Raised) -> bool:
        """-> whether another library raised it, in words that the area's framework uses too."""
        return bool(raised.frames) and not raised.frames[-1].user_code and not self.names(area, raised)


def _texts(raised: Raised) -> tuple[str, ...]:
    return (raised.text, *(f"{frame.file} {frame.function} {frame.code}" for frame in raised.frames))


@lru_cache(maxsize=64)
def _regex(words: tuple[str, ...]) -> re.Pattern[str]:
    forms = "|".join(r"[ _.-]?".join(map(re.escape, word.split("_"))) for word in words)
    return re.compile(rf"(?i)(?<![a-z])(?:{forms})")
