"""Issues about groups: a notice in, one issue a group at a tracker out, which gets comments and is closed with it.

An issue carries a mark of its group in its text. Before one is opened the tracker is asked for that mark: where a
process was killed after it had opened an issue and before it kept its number, the next one finds it.
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

_TITLE = 200  # characters; GitHub takes 256, Jira 255
_COMMENTED = (NoticeKind.REGRESSED, NoticeKind.COUNT, NoticeKind.COST)


@dataclass(frozen=True, slots=True)
class Draft:
    """What an issue is to say. `mark` is a word that stands in `text` and in no other group's."""

    title: str
    text: str
    mark: str


class IssueTracker(ABC):
    """One project at a tracker. `place` names it there; an issue is a Thread of that place and the issue's name."""

    pace = 1.0  # what GitHub asks for between two calls that write
    hears = frozenset({NoticeKind.STATUS})

    def __init__(self, place: str) -> None:
        self.place = place

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """-> the group's issue, None where there is none any more. Raises Undelivered."""
        if notice.kind is NoticeKind.TEST:
            self.check()
            return None
        closed = self.is_closed(thread) if thread else None
        if thread is None or closed is None:  # there was none, or somebody deleted it
            return None if notice.kind is NoticeKind.STATUS else self._opened(notice)
        if notice.kind in _COMMENTED and not self._is_told(thread, notice):
            self.comment(thread, self.text_of(notice))
        self._follow(thread, notice, closed)
        return thread

    def text_of(self, notice: Notice, mark: str = "") -> str:
        """-> what an issue or a comment says."""
        said = wording(notice)
        parts = [self.prose(line) for line in (said.headline, said.what, said.place) if line]
        parts += [self.code(said.evidence)] if said.evidence else []
        for step in said.steps:
            parts += [self.prose(step.do), *([self.code(step.command)] if step.command else [])]
        parts += [self.prose(line) for line in (said.retry, said.unknown, " · ".join(said.facts)) if line]
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
        """-> whether a comment says it already: a try before this one was lost after the tracker had taken it."""
        known = re.compile(re.escape(notice.url) + r"(?!\d)")
        return any(known.search(text) for text in self.comments(thread))

    def _follow(self, thread: Thread, notice: Notice, closed: bool) -> None:
        """Has the issue open or closed as its group is. What people closed at the tracker stays closed until the group
        comes back, or somebody opens it again."""
        over = notice.status in (GroupStatus.RESOLVED, GroupStatus.IGNORED)
        if over and not closed:
            self.close(thread, fixed=notice.status is GroupStatus.RESOLVED)
        elif closed and not over and notice.kind in (NoticeKind.REGRESSED, NoticeKind.STATUS, NoticeKind.ISSUE):
            self.reopen(thread)

    @abstractmethod
    def address_of(self, thread: Thread) -> str:
        """-> the URL under which people read an issue."""

    @abstractmethod
    def prose(self, line: str) -> str:
        """-> a line in the tracker's markup, in which nothing that a log says pings, links or hides anything."""

    @abstractmethod
    def code(self, text: str) -> str:
        """-> a block in which everything stands as it is."""

    @abstractmethod
    def link(self, label: str, url: str) -> str: ...

    @abstractmethod
    def check(self) -> None:
        """Raises Undelivered where the project can't be read with this token. All below do where a call fails."""

    @abstractmethod
    def find(self, mark: str) -> str | None:
        """-> the name of the issue whose text has this mark."""

    @abstractmethod
    def open(self, draft: Draft) -> str:
        """-> the name of a new issue."""

    @abstractmethod
    def comments(self, thread: Thread) -> list[str]:
        """-> the newest comments of an issue; none where it is gone."""

    @abstractmethod
    def comment(self, thread: Thread, text: str) -> None:
        """Adds a comment. Does nothing where the issue is gone."""

    @abstractmethod
    def is_closed(self, thread: Thread) -> bool | None:
        """-> None where the issue is gone."""

    @abstractmethod
    def close(self, thread: Thread, fixed: bool) -> None:
        """`fixed` is False where people ignore the group."""

    @abstractmethod
    def reopen(self, thread: Thread) -> None: ...


def mark_of(notice: Notice) -> str:
    """-> one word, so that every search takes it whole; of the group's page, which no other service has."""
    return "torchtriage" + hashlib.sha256((notice.group_url or notice.url).encode()).hexdigest()[:16]
