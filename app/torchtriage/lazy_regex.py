"""Regular expressions that are compiled when they are first used: a log needs a quarter of the hundreds there are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast

_USED = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer", "pattern", "groupindex")


def lazy_regex(pattern: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """-> what `re.compile` gives, compiled at its first use; that raises re.error where the pattern is not valid.

    A pattern that is made of something else first, such as a file's words, is handed in as a function that makes it.

    It has a pattern's methods, but cannot be handed to functions of `re` in a pattern's place.
    """
    return cast(re.Pattern[AnyStr], _LazyRegex(pattern, flags))


class _LazyRegex:
    """After the first use the compiled pattern's methods are its own attributes, so a call costs what it did."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._asked = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _USED:
            raise AttributeError(name)
        pattern, flags = self._asked
        compiled = re.compile(pattern() if callable(pattern) else pattern, flags)
        vars(self).update({used: getattr(compiled, used) for used in _USED})
        return getattr(compiled, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _LazyRegex, self._asked
