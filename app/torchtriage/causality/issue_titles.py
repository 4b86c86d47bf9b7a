"""Reads the title that a person put above a log, such as the heading of an issue or the subject of a mail."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex

# ### RuntimeError: … · Title: … · Subject: Re: … · [Bug] … · **…**
_MARK = lazy_regex(
    r"(?:#{1,6}\s+|\*\*|(?i:title|subject|issue|bug(?: report)?|re|fwd?|question|标题|主题)\s?[:：]\s?"
    r"|\[(?i:bug|question|help|issue|bug report|help wanted|usage|installation)\]\s?[:：]?\s?"
    r"|[^\w\s\[\](){}<>/\"'.,:;-]{1,3}\s?(?i:bug|question)\s?:\s?){1,4}"
)
# Only ASCII, because a Chinese sentence can continue with the name without a space.
_NAME = r"(?<![\w.])((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt))"
_RAISED = lazy_regex(rf"{_NAME}\s?[:：] ?(\S.{{2,1000}})", re.ASCII)
_BARE = lazy_regex(rf"{_NAME}()[*` .!?()]*$", re.ASCII)  # after a mark: a name without a message
_IN_CHINESE = lazy_regex(r"[\u4e00-\u9fff]")  # No program puts such words before an exception's name.


def title(head: Sequence[Line], pasted: bool) -> Event | None:
    """Returns the event for a title that names an exception, or None.

    The first line is a title if it is marked as one, or if it is an exception in a paste and the line below it is
    empty. `head` begins with the first line that has text.
    """
    first = head[0].text.strip() if head else ""
    mark = _MARK.match(first)
    alone = pasted and len(head) > 1 and not head[1].text.strip() and head[0].text is head[0].raw
    found = _RAISED.search(first, mark.end() if mark else 0) if mark or alone else None
    found = found or (_BARE.match(first, mark.end()) if mark else None)
    if found is None or (mark is None and found.start(1) > 0 and not _IN_CHINESE.search(first[: found.start(1)])):
        return None
    return _event(Raised(found[1], found[2].strip("*` "), (), (head[0],)))


def heading(head: Sequence[Line], pasted: bool) -> Event | None:
    """Returns the event for a title that names no exception, as in most issues, or None.

    The first line is a title if it is marked as one, or if it is in a paste and the line below it is empty. The caller
    uses the event only if an entry matches it and the log shows a failure.
    """
    first = head[0].text.strip() if head else ""
    mark = _MARK.match(first)
    alone = pasted and len(head) > 1 and not head[1].text.strip()
    if not first or (mark is None and not alone):
        return None
    return _event(Raised("", first[mark.end() if mark else 0 :].strip("*` "), (), (head[0],)))


def _event(raised: Raised) -> Event:
    return Event(Where.EXCEPTION, raised.text, raised.lines, EventSource.TITLE, chain=(raised,))
