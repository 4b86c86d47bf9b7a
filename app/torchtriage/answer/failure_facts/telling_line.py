"""The line that the program printed shortly before the exception and that shows why it came: nothing was found, or
something could not be read."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from itertools import islice

from torchtriage.answer.failure_facts.failure import Failure, union_pattern
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex

TELLING_LINES = "telling-lines"  # the names of lists in the vocabulary
_HARMLESS = "alarms-harmless"
_MAX_ABOVE = 6  # lines that the program printed between it and the traceback
_MAX_LENGTH = 300  # characters: a longer line is a dump of values
# Lines of a traceback and of source code are no output of the program.
_OF_TRACEBACK = lazy_regex(r'^\s*(?:File "|Traceback |raise |return |[\w.]+ ?= ?\w+\(|\^|~)')


def telling_line(failure: Failure) -> Iterator[Fact]:
    """Yields `telling_line`, the last of the six lines printed above the traceback by the failing rank, or by no known
    rank, that the vocabulary list `telling-lines` describes, and `telling_line_number`."""
    if not _is_of_program(failure):
        return
    vocabulary = failure.reading.matcher.patterns.vocabulary
    telling = union_pattern(vocabulary.patterns(TELLING_LINES))
    harmless = union_pattern(vocabulary.patterns(_HARMLESS))
    printed = (line for line in reversed(failure.printed) if _is_output(line, failure))
    for line in islice(printed, _MAX_ABOVE):
        if telling.search(line.text) and not harmless.search(line.text):
            yield failure.fact("telling_line", failure.shown(line.text.strip()), line=line)
            yield failure.fact("telling_line_number", line.number, line=line)
            return


def _is_of_program(failure: Failure) -> bool:
    """Returns whether a line of the user's program raised one of Python's own exceptions. A missing module and a
    failure of the GPU have no such reason."""
    raised = failure.raised
    kind = getattr(builtins, raised.type, None) if raised is not None else None
    own = isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, ImportError)
    return own and any(map(failure.is_user_frame, failure.frames))


def _is_output(line: Line, failure: Failure) -> bool:
    """Returns whether the failing rank's program printed the line itself."""
    text, raised = line.text.strip(), failure.raised
    own = line.rank in (None, failure.root.rank)
    return (
        own
        and len(text) <= _MAX_LENGTH
        and not _OF_TRACEBACK.match(text)
        and text not in (raised.message if raised else "")
    )
