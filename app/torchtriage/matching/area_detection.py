"""Decides whether texts mention the framework, library or device of an area, or report the end of a job as its batch
system does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.domain.event import Raised
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

_AREA_MARKS = "area-marks"  # name of a vocabulary list
_OWN_JOB = "own-job-words"  # name of a vocabulary list


class AreaMarks:
    """The words that show that a text is about an area. An area without such words is about any program."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._marks = {item.name: lazy_regex(item.exact) for item in vocabulary.patterns(_AREA_MARKS) if item.name}

    def shown(self, area: str, texts: Iterable[str]) -> bool:
        """Returns whether one of the texts contains a mark of the area. True for an area without marks."""
        marks = self._marks.get(area)
        return marks is None or any(marks.search(text) for text in texts)

    def excludes(self, area: str, raised: Raised) -> bool:
        """Returns whether a library raised the exception and neither its message nor its traceback contains a mark of
        the area. Then another library uses the same words."""
        return bool(raised.frames) and not raised.frames[-1].user_code and not self.shown(area, _texts(raised))


class OwnJobs:
    """The messages of batch systems and launchers about a job that they ended or did not start."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = [(item.name, lazy_regex(item.exact)) for item in vocabulary.patterns(_OWN_JOB) if item.name]

    def areas(self, text: str) -> frozenset[str]:
        """Returns the areas of entries about a job that the text mentions."""
        return frozenset(area for area, words in self._words if words.search(text))


def _texts(raised: Raised) -> Iterator[str]:
    yield raised.text
    for frame in raised.frames:
        yield f"{frame.file} {frame.function} {frame.code}"
