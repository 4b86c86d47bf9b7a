"""Sends incidents to a webhook: the incident and its group as signed JSON. A retry has the same key."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any

from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.domain.notice import Notice, NoticeKind, Thread


class Webhook:
    """Sends notices to one URL."""

    pace = 0.0
    extra_notices: frozenset[NoticeKind] = frozenset()

    def __init__(self, outgoing: Outgoing, url: str, secret: str = "") -> None:
        self._outgoing = outgoing
        self._url = url
        self._secret = secret

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        content = json.dumps(message(notice, key), ensure_ascii=False).encode("utf-8", "replace")
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-Torchtriage-Event": notice.kind.value,
            "Idempotency-Key": key,
        }
        if self._secret:
            now = str(int(time.time()))
            headers |= {"X-Torchtriage-Timestamp": now, "X-Torchtriage-Signature": sign(self._secret, now, content)}
        refuse(self._outgoing.post(self._url, content, headers), "the webhook")


def message(notice: Notice, key: str) -> dict[str, Any]:
    """Returns the body: `event`, `key`, `over` (thresholds that were passed), and `incident` and `group` as in the
    API."""
    return {"event": notice.kind.value, "key": key, "over": notice.over, **notice.document}


def sign(secret: str, seconds: str, content: bytes) -> str:
    """Returns the signature of the body and the time, which proves that this service sent it."""
    signed = seconds.encode() + b"." + content
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
