"""飞书 (Lark): a custom robot of a group. A post of plain pieces of text, which hold no markup that could ping."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any

from torchtriage.chat.delivery_errors import refuse_code
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.plain_text import links, paragraphs
from torchtriage.chat.wording import headline
from torchtriage.domain.notice import Notice, NoticeKind, Thread

# Of a robot: too often (by robot, by tenant), and the platform's own errors. All others stay until somebody acts:
# 19001 wrong address, 19021 wrong signature or clock, 19022 IP not allowed, 19024 keyword missing, 9499 bad request.
_PASSING = {11232, 11233, 11234, 99991400, 99991663, 2200, 1061045, -1}
_WAIT = 60.0  # seconds after which its limits by minute are over


class Feishu:
    pace = 0.7  # 100 a minute, 5 a second
    hears: frozenset[NoticeKind] = frozenset()

    def __init__(self, outgoing: Outgoing, url: str, secret: str = "") -> None:
        self._outgoing = outgoing
        self._url = url
        self._secret = secret

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        payload = message(notice)
        if self._secret:
            now = int(time.time())
            payload |= {"timestamp": str(now), "sign": sign(now, self._secret)}
        answer = self._outgoing.post_json(self._url, payload)
        found = answer.json()
        code = found.get("code", found.get("StatusCode"))
        if answer.status == 200 or isinstance(code, int):
            refuse_code("Feishu", code, found.get("msg") or found.get("StatusMessage"), _PASSING, _WAIT)
            return
        refuse(answer, "Feishu")


def message(notice: Notice) -> dict[str, Any]:
    """-> the payload, far below the 20 KB that a robot may send."""
    lines = [[{"tag": "text", "text": _unpinging(line)}] for line in paragraphs(notice)]
    for label, url in links(notice):
        lines.append([{"tag": "a", "text": label, "href": url}])
    post = {"title": f"[torchtriage] {_unpinging(headline(notice))}", "content": lines}
    return {"msg_type": "post", "content": {"post": {"zh_cn" if notice.lang == "zh" else "en_us": post}}}


def _unpinging(text: str) -> str:
    return text.replace("<at", "< at")  # in other kinds of messages this would ping; it costs nothing here


def sign(seconds: int, secret: str) -> str:
    """-> the signature of a message at this time: the secret is part of the key, and what is signed is empty."""
    key = f"{seconds}\n{secret}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
