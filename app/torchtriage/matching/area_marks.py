"""Whether a failure shows the framework, library or device of an area: an area and texts in, yes or no out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.domain.event import Raised
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

_AREA_MARKS = "area-marks"  # the list of the vocabulary


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


def _texts(raised: Raised) -> Iterator[str]:
    yield raised.text
    for frame in raised.frames:
        yield f"{frame.file} {frame.function} {frame.code}"
