"""Patterns for searching a log: words or a regular expression, compiled by RE2."""

from __future__ import annotations

from functools import lru_cache

import re2

from torchtriage.errors import BadInput

_MAX_MEMORY = 1 << 20  # maximum bytes of a compiled expression
_FLAGS = "(?im)"  # ignore case; ^ and $ match at line ends
_MAX_MARKS = 200  # maximum matches marked per line


def line_pattern(words: str, regex: bool) -> re2._Regexp:
    """Returns the compiled bytes pattern. It ignores case, and `^` and `$` match at line ends. Raises BadInput with
    RE2's message if RE2 rejects the expression."""
    return _compiled(words if regex else re2.escape(words))


def spans(text: str, words: str, regex: bool) -> list[tuple[int, int]]:
    """Returns the matches in a line as (start, end) in characters. Empty if RE2 rejects the expression."""
    try:
        pattern = _of_text(words if regex else re2.escape(words))
    except BadInput:
        return []
    found = []
    for hit in pattern.finditer(text):
        if hit.end() > hit.start():
            found.append((hit.start(), hit.end()))
        if len(found) >= _MAX_MARKS:
            break
    return found


@lru_cache(maxsize=64)
def _compiled(expression: str) -> re2._Regexp:
    return _made(f"{_FLAGS}{expression}".encode("utf-8", "replace"))


@lru_cache(maxsize=64)
def _of_text(expression: str) -> re2._Regexp:
    return _made(f"{_FLAGS}{expression}")


def _made(expression: str | bytes) -> re2._Regexp:
    options = re2.Options()
    options.log_errors, options.max_mem = False, _MAX_MEMORY
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        reason = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        raise BadInput(f"the regular expression cannot be used: {reason.replace(_FLAGS, '')[:200]}") from error
