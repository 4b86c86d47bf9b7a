"""Finds the file that a line tells the reader to look at: `job failed, log is in exp/train.1.log`."""

from __future__ import annotations

from torchtriage.lazy_regex import lazy_regex

_NAME = r"[\w%@+=-][\w.%@+=-]*\.(?:log|err|out)\b(?![\w/:])"
_FOLDER = r"(?:~|[\w.-]+)?/(?:[\w.%@+=-]+/)*"
# Many other things can follow `in` and `to`, such as `in math.log`.
_NAMED = lazy_regex(
    rf"(?i)\b(?:(?:see|read|check|logs?|file|output)[ :=]{{1,3}}['\"`]?(?P<named>(?:{_FOLDER})?{_NAME})"
    rf"|(?:in|at|to)[ :]{{1,3}}['\"`]?(?P<placed>{_FOLDER}{_NAME}))"
)


def referenced_log(text: str) -> str | None:
    """Returns the path of the log file that a line refers to, or None."""
    found = _NAMED.search(text)
    return found["named"] or found["placed"] if found else None
