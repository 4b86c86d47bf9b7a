"""Whether a log can show a sign at all: a regex and the bytes of a log in, a no that is sure or a perhaps out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchtriage.matching.required_literals import required_literals

_WORD = re.compile(r"[a-z0-9_]{3,}")  # what no prefix, colour, line end or escape of JSON breaks
_OVER = 200  # bytes of a piece that are looked at again with the next one


class SignWords:
    """The words of a sign's required literals. They may stand anywhere in the log and in any order, so that it does not
    matter how its lines are written. In a log that is encoded as a whole (base64) they are not found."""

    def __init__(self, regex: str) -> None:
        every = [[tuple(_WORD.findall(literal)) for literal in either] for either in required_literals(regex)]
        # One without words says nothing of what is there.
        self._every = [either for either in every if all(either)]
        self._words = {word: word.encode() for either in self._every for words in either for word in words}

    def may_show(self, pieces: Iterable[bytes]) -> bool:
        """-> False where the log surely does not show the sign."""
        left, found, before = dict(self._words), set[str](), b""
        for piece in pieces:
            text = (before + piece).lower()
            here = [word for word, letters in left.items() if letters in text]
            found.update(here)
            for word in here:
                del left[word]
            if not left:
                return True
            before = text[-_OVER:]
        return all(any(found.issuperset(words) for words in either) for either in self._every)
