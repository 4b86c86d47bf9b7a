"""Whether texts show the framework, library or device of an area, or speak of a job as its batch system does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.domain.event import Raised
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

_AREA_MARKS = "area-marks"  # a list of the vocabulary
_OWN_JOB = "own-job-words"  # a list of the vocabulary


class AreaMarks:
    """The marks of each area; an area without marks is about any program."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._marks = {item.name: lazy_regex(item.exact) for item in vocabulary.patterns(_AREA_MARKS) if item.name}

    def shown(self, area: str, texts: Iterable[str]) -> bool:
        """-> whether one of the texts shows a mark of the area; True for an area without marks."""
        marks = self._marks.get(area)
        return marks is None or any(marks.search(text) for text in texts)

    def excludes(self, area: str, raised: Raised) -> bool:
        """-> whether a library raised the exception, and neither its message nor its traceback shows the area: another
        library uses the same words."""
        return bool(raised.frames) and not raised.frames[-1].user_code and not self.shown(area, _texts(raised))


class OwnJobs:
    """What batch systems and launchers say of the job that they ended or did not start."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = [(item.name, lazy_regex(item.exact)) for item in vocabulary.patterns(_OWN_JOB) if item.name]

    def areas(self, text: str) -> frozenset[str]:
        """-> the areas of entries about a job of which the text speaks."""
        return frozenset(area for area, words in self._words if words.search(text))


def _texts(raised: Raised) -> Iterator[str]:
    yield raised.text
    for frame in raised.frames:
        yield f"{frame.file} {frame.function} {frame.code}"
