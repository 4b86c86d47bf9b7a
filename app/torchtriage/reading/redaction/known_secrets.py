"""Remembers values that were recognized as secrets, so that they are removed wherever they appear again.

A name may identify a secret only once, for example where the environment is printed. Later the value may appear alone,
in a command or traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.secret_values import drawn_by_lot
from torchtriage.reading.scan import Scanner

_MAX_COUNT = 64  # number of values, the first ones
_MIN_INNER_LENGTH = 16  # bytes of a value that is also searched inside words
_MIN_LENGTH, _MAX_LENGTH = 8, 200
_SHORT_TEXT = 4 << 10  # bytes of a text for which searching each value is faster than compiling them
# these are no secrets, or are valid only for a moment
_OPEN_KINDS = frozenset({"access-key-id", "cookie", "code", "signature"})
# Letters and digits without separators, or with a sign that names do not have. Nothing else is likely to be spelled the
# same.
_UNIQUE = lazy_regex(rb"(?=[^\d]{0,200}\d)(?=[^A-Za-z]{0,200}[A-Za-z])[\w.~+/=-]{16,200}")
_UNIQUE_IF_SHORT = lazy_regex(
    rb"(?=[^\d]{0,16}\d)(?=[^A-Z]{0,16}[A-Z])(?=[^a-z]{0,16}[a-z])(?=[^!@#$%^&*+~]{0,16}[!@#$%^&*+~])[^\s\"'`\\]{8,15}"
)


class KnownSecrets:
    """The values recognized as secrets in one log, with their kinds. True if there are any."""

    def __init__(self) -> None:
        self._kinds: dict[bytes, str] = {}
        self._scanner: Scanner | None = None
        self._values: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, data: bytes, start: int, end: int, kind: str) -> None:
        """Remembers the value in `data` from `start` to `end`, unless something harmless may be spelled the same."""
        if len(self._kinds) >= _MAX_COUNT or not _MIN_LENGTH <= end - start <= _MAX_LENGTH or kind in _OPEN_KINDS:
            return
        value = data[start:end]
        if value not in self._kinds and _is_unique(value):
            self._kinds[value] = kind
            self._scanner = None

    def spans(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Yields (start, end, kind) for each place of one of the values."""
        for value, end in self._ends(data):
            start = end - len(value)
            if len(value) >= _MIN_INNER_LENGTH or not (
                _is_in_word(data[start - 1 : start]) or _is_in_word(data[end : end + 1])
            ):
                yield start, end, self._kinds[value]

    def _ends(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        if len(data) <= _SHORT_TEXT:
            for value in self._kinds:
                at = data.find(value)
                while at >= 0:
                    yield value, at + len(value)
                    at = data.find(value, at + len(value))
            return
        if self._scanner is None:
            self._values = list(self._kinds)
            self._scanner = Scanner(lambda: [re.escape(value) for value in self._values])
        for index, end in self._scanner.ends(data)[0]:
            yield self._values[index], end


def _is_unique(value: bytes) -> bool:
    if len(value) < _MIN_INNER_LENGTH:
        return _UNIQUE_IF_SHORT.fullmatch(value) is not None
    return _UNIQUE.fullmatch(value) is not None and drawn_by_lot(value)


def _is_in_word(char: bytes) -> bool:
    return char.isalnum() or char == b"_"
