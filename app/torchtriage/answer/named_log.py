"""The file that a line says to read: `job failed, log is in exp/train.1.log`."""

from __future__ import annotations

from torchtriage.lazy_regex import lazy_regex

_NAME = r"[\w%@+=-][\w.%@+=-]*\.(?:log|err|out)\b(?![\w/:])"
_FOLDER = r"(?:~|[\w.-]+)?/(?:[\w.%@+=-]+/)*"
# In front of `in` and `to` stands much else: `in math.log`.
_NAMED = lazy_regex(
    rf"(?i)\b(?:(?:see|read|check|logs?|file|output)[ :=]{{1,3}}['\"`]?(?P<named>(?:{_FOLDER})?{_NAME})"
    rf"|(?:in|at|to)[ :]{{1,3}}['\"`]?(?P<placed>{_FOLDER}{_NAME}))"
)


def named_log(text: str) -> str | None:
    """-> the path of the log file that a line refers its reader to; None where it names none."""
    found = _NAMED.search(text)
    return found["named"] or found["placed"] if found else None
