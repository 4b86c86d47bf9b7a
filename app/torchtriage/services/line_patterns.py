"""What somebody searches a log for as a pattern: words or a regular expression in, what RE2 finds of it out."""

from __future__ import annotations

from functools import lru_cache

import re2

from torchtriage.errors import BadInput

_MOST_MEMORY = 1 << 20  # bytes that a compiled expression may take
_FLAGS = "(?im)"  # any case; lines have ends of their own
_MOST_MARKS = 200  # of one line


def line_pattern(words: str, regex: bool) -> re2._Regexp:
    """-> the pattern in bytes, in any case; `^` and `$` are those of a line. Raises BadInput, with what RE2 says of an
    expression that it does not take."""
    return _compiled(words if regex else re2.escape(words))


def spans(text: str, words: str, regex: bool) -> list[tuple[int, int]]:
    """-> where the words stand in a line, from and to, in characters; none for an expression that RE2 does not take."""
    try:
        pattern = _of_text(words if regex else re2.escape(words))
    except BadInput:
        return []
    found = []
    for hit in pattern.finditer(text):
        if hit.end() > hit.start():
            found.append((hit.start(), hit.end()))
        if len(found) >= _MOST_MARKS:
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
    options.log_errors, options.max_mem = False, _MOST_MEMORY
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise BadInput(f"the regular expression cannot be used: {reason.replace(_FLAGS, '')[:200]}") from error
