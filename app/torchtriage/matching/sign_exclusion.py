"""Decides quickly whether a log cannot match a sign: from the words that a match of the sign requires."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchtriage.matching.required_literals import required_literals

_WORD = re.compile(r"[a-z0-9_]{3,}")  # words that no prefix, color, line break or JSON escape interrupts
_OVER = 200  # bytes at the end of a piece that are searched again together with the next piece


class SignWords:
    """The words of a sign's required literals. They may be anywhere in the log and in any order, so the format of its
    lines does not matter. A log that is encoded as a whole (base64) cannot be searched."""

    def __init__(self, regex: str) -> None:
        every = [[tuple(_WORD.findall(literal)) for literal in either] for either in required_literals(regex)]
        # A list without words cannot exclude a log.
        self._every = [either for either in every if all(either)]
        self._words = {word: word.encode() for either in self._every for words in either for word in words}

    def may_show(self, pieces: Iterable[bytes]) -> bool:
        """Returns False if the log surely does not match the sign, else True."""
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
