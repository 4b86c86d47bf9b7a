"""Sends alerts through Apprise (the extra `apprise`), which supports about a hundred services and reports only success
or failure."""

from __future__ import annotations

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.plain_text import text
from torchtriage.chat.wording import headline
from torchtriage.domain.notice import Notice, NoticeKind, Thread


class ThroughApprise:
    """Sends notices to Apprise URLs."""

    pace = 1.0
    extra_notices: frozenset[NoticeKind] = frozenset()

    def __init__(self, urls: tuple[str, ...]) -> None:
        """Needs the extra. Raises ValueError for a URL that Apprise does not support."""
        import apprise

        self._apprise = apprise.Apprise()
        for number, url in enumerate(urls, 1):
            if not self._apprise.add(url):
                raise ValueError(f"Apprise does not support URL {number} of {len(urls)}")

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        if not self._apprise.notify(title=headline(notice), body=text(notice), body_format="text"):
            raise Undelivered("Apprise could not send it; see Apprise's log messages", passing=True)
