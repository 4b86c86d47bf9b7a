"""Sends notices to Slack: through an incoming webhook, which can only post, or as a bot, with one thread per group."""

from __future__ import annotations

from typing import Any

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.slack_api import SlackApi
from torchtriage.chat.slack_blocks import message
from torchtriage.domain.notice import Notice, NoticeKind, Thread

_GONE = {"message_not_found", "channel_not_found", "thread_not_found", "cant_update_message", "is_archived"}


class SlackWebhook:
    """Posts notices to an incoming webhook."""

    pace = 1.0
    extra_notices: frozenset[NoticeKind] = frozenset()

    def __init__(self, outgoing: Outgoing, url: str, buttons: bool) -> None:
        self._outgoing = outgoing
        self._url = url
        self._buttons = buttons

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        refuse(self._outgoing.post_json(self._url, message(notice, self._buttons)), "Slack")


class SlackBot:
    """Posts the first notice of a group as a message and later ones in its thread. Updates the counter of the first
    message."""

    pace = 1.0
    extra_notices = frozenset({NoticeKind.REPEAT})

    def __init__(self, api: SlackApi, channel: str, buttons: bool) -> None:
        self._api = api
        self._channel = channel
        self._buttons = buttons

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """Returns the group's thread, or None if it has none now."""
        if notice.kind is NoticeKind.REPEAT:
            return self._count_on(thread, first or notice) if thread else None
        payload = {"channel": self._channel, "unfurl_links": False, **message(notice, self._buttons)}
        if thread:
            payload |= {"channel": thread.channel, "thread_ts": thread.ts, "reply_broadcast": True}
        posted = self._api.call("chat.postMessage", payload)
        if thread:
            return thread  # the next repeat updates the counter
        if notice.group is None:
            return None
        return Thread(str(posted["channel"]), str(posted["ts"]), notice.incident)

    def _count_on(self, thread: Thread, first: Notice) -> Thread | None:
        payload: dict[str, Any] = {"channel": thread.channel, "ts": thread.ts, **message(first, self._buttons)}
        try:
            self._api.call("chat.update", payload)
        except Undelivered as problem:
            if problem.detail.get("error") in _GONE:
                return None  # someone deleted the message; the next notice starts a new thread
            raise
        return thread
