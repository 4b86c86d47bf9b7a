"""Regular expressions that are compiled at their first use. There are hundreds, and one log needs only about a
quarter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast

_USED = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer", "pattern", "groupindex")


def lazy_regex(pattern: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """Returns an object with the methods of `re.compile`'s result. It compiles the pattern at its first use, and raises
    re.error then if the pattern is not valid.

    If the pattern must first be built, for example from the words in a file, pass a function that returns it.

    The object cannot be passed to functions of `re` in place of a pattern.
    """
    return cast(re.Pattern[AnyStr], _LazyRegex(pattern, flags))


class _LazyRegex:
    """After the first use, the compiled pattern's methods are attributes of this object, so that a call has no extra
    cost."""

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
