"""Slack out: an incoming webhook, which can only post, or the bot, which keeps one thread a group."""

from __future__ import annotations

from typing import Any

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.slack_api import SlackApi
from torchtriage.chat.slack_blocks import message
from torchtriage.domain.notice import Notice, NoticeKind, Thread

_GONE = {"message_not_found", "channel_not_found", "thread_not_found", "cant_update_message", "is_archived"}


class SlackWebhook:
    pace = 1.0
    hears: frozenset[NoticeKind] = frozenset()

    def __init__(self, outgoing: Outgoing, url: str, buttons: bool) -> None:
        self._outgoing = outgoing
        self._url = url
        self._buttons = buttons

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        refuse(self._outgoing.post_json(self._url, message(notice, self._buttons)), "Slack")


class SlackBot:
    """The first notice of a group begins a thread, further ones are in it, and what it began with counts on."""

    pace = 1.0
    hears = frozenset({NoticeKind.REPEAT})

    def __init__(self, api: SlackApi, channel: str, buttons: bool) -> None:
        self._api = api
        self._channel = channel
        self._buttons = buttons

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """-> the group's thread where it is there now."""
        if notice.kind is NoticeKind.REPEAT:
            return self._count_on(thread, first or notice) if thread else None
        payload = {"channel": self._channel, "unfurl_links": False, **message(notice, self._buttons)}
        if thread:
            payload |= {"channel": thread.channel, "thread_ts": thread.ts, "reply_broadcast": True}
        posted = self._api.call("chat.postMessage", payload)
        if thread:
            return thread  # its counter follows with the next repeat
        if notice.group is None:
            return None
        return Thread(str(posted["channel"]), str(posted["ts"]), notice.incident)

    def _count_on(self, thread: Thread, first: Notice) -> Thread | None:
        payload: dict[str, Any] = {"channel": thread.channel, "ts": thread.ts, **message(first, self._buttons)}
        try:
            self._api.call("chat.update", payload)
        except Undelivered as problem:
            if problem.detail.get("error") in _GONE:
                return None  # somebody deleted it: the next notice begins another
            raise
        return thread
