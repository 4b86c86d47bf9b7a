"""Creates one issue per group in an issue tracker, comments on it, and closes it with the group.

The text of an issue contains a mark of its group. Before a new issue is created, the tracker is searched for that mark.
So if a process was killed after it created an issue and before it saved the number, the next one finds the issue.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torchtriage.chat.plain_text import links
from torchtriage.chat.sanitize import plain
from torchtriage.chat.wording import wording
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind, Thread

_TITLE = 200  # maximum characters; GitHub allows 256, Jira 255
_COMMENTED = (NoticeKind.REGRESSED, NoticeKind.COUNT, NoticeKind.COST)


@dataclass(frozen=True, slots=True)
class Draft:
    """The title and text of a new issue. `mark` is a word in the text that no other group has."""

    title: str
    text: str
    mark: str


class IssueTracker(ABC):
    """One project in an issue tracker. `place` is its name there. An issue is a Thread with that place and the issue's
    name."""

    pace = 1.0  # GitHub asks for this pause between two calls that write
    extra_notices = frozenset({NoticeKind.STATUS})

    def __init__(self, place: str) -> None:
        self.place = place

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """Updates or creates the group's issue and returns it. Returns None if the issue was deleted and no new one is
        needed. Raises Undelivered."""
        if notice.kind is NoticeKind.TEST:
            self.check()
            return None
        closed = self.is_closed(thread) if thread else None
        if thread is None or closed is None:  # there is no issue, or someone deleted it
            return None if notice.kind is NoticeKind.STATUS else self._opened(notice)
        if notice.kind in _COMMENTED and not self._is_told(thread, notice):
            self.comment(thread, self.text_of(notice))
        self._follow(thread, notice, closed)
        return thread

    def text_of(self, notice: Notice, mark: str = "") -> str:
        """Returns the text of an issue or comment."""
        parts_of_notice = wording(notice)
        parts = [
            self.prose(line) for line in (parts_of_notice.headline, parts_of_notice.what, parts_of_notice.place) if line
        ]
        parts += [self.code(parts_of_notice.evidence)] if parts_of_notice.evidence else []
        for step in parts_of_notice.steps:
            parts += [self.prose(step.do), *([self.code(step.command)] if step.command else [])]
        parts += [
            self.prose(line)
            for line in (parts_of_notice.retry, parts_of_notice.unknown, " · ".join(parts_of_notice.facts))
            if line
        ]
        parts += [" · ".join(self.link(label, url) for label, url in links(notice)), *([mark] if mark else [])]
        return "\n\n".join(parts)

    def _opened(self, notice: Notice) -> Thread:
        mark = mark_of(notice)
        known = self.find(mark)
        if known is None:
            known = self.open(Draft(plain(notice.title, _TITLE) or "torchtriage", self.text_of(notice, mark), mark))
        thread = Thread(self.place, known, notice.incident)
        self._follow(thread, notice, bool(self.is_closed(thread)))
        return thread

    def _is_told(self, thread: Thread, notice: Notice) -> bool:
        """Returns whether a comment about this incident exists, from an earlier try whose answer was lost."""
        known = re.compile(re.escape(notice.url) + r"(?!\d)")
        return any(known.search(text) for text in self.comments(thread))

    def _follow(self, thread: Thread, notice: Notice, closed: bool) -> None:
        """Closes or reopens the issue to match its group. An issue that someone closed in the tracker stays closed
        until the group has a regression or is reopened."""
        over = notice.status in (GroupStatus.RESOLVED, GroupStatus.IGNORED)
        if over and not closed:
            self.close(thread, fixed=notice.status is GroupStatus.RESOLVED)
        elif closed and not over and notice.kind in (NoticeKind.REGRESSED, NoticeKind.STATUS, NoticeKind.ISSUE):
            self.reopen(thread)

    @abstractmethod
    def address_of(self, thread: Thread) -> str:
        """Returns the URL of an issue's page."""

    @abstractmethod
    def prose(self, line: str) -> str:
        """Returns a line in the tracker's markup, escaped so that text of a log cannot mention, link or hide
        anything."""

    @abstractmethod
    def code(self, text: str) -> str:
        """Returns a block in which the text is shown literally."""

    @abstractmethod
    def link(self, label: str, url: str) -> str: ...

    @abstractmethod
    def check(self) -> None:
        """Raises Undelivered if this token cannot read the project. So do all methods below if a call fails."""

    @abstractmethod
    def find(self, mark: str) -> str | None:
        """Returns the name of the issue whose text contains this mark, or None."""

    @abstractmethod
    def open(self, draft: Draft) -> str:
        """Creates an issue and returns its name."""

    @abstractmethod
    def comments(self, thread: Thread) -> list[str]:
        """Returns the newest comments of an issue; none if it was deleted."""

    @abstractmethod
    def comment(self, thread: Thread, text: str) -> None:
        """Adds a comment. Does nothing if the issue was deleted."""

    @abstractmethod
    def is_closed(self, thread: Thread) -> bool | None:
        """Returns whether an issue is closed, or None if it was deleted."""

    @abstractmethod
    def close(self, thread: Thread, fixed: bool) -> None:
        """Closes an issue. `fixed` is False if the group is ignored, True if it is resolved."""

    @abstractmethod
    def reopen(self, thread: Thread) -> None: ...


def mark_of(notice: Notice) -> str:
    """Returns the mark of a group. It is a single word, so that every search matches it whole, made from the URL of the
    group's page, which is unique."""
    return "torchtriage" + hashlib.sha256((notice.group_url or notice.url).encode()).hexdigest()[:16]
