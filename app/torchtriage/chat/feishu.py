"""飞书 (Lark): sends posts to a group's custom robot. They consist of plain text, which can mention nobody."""

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

# Rate limits of the robot or the tenant, and the platform's own errors, which go away. Other errors remain until
# someone acts: 19001 wrong URL, 19021 wrong signature or clock, 19022 IP address not allowed, 19024 keyword missing,
# 9499 bad request.
_PASSING = {11232, 11233, 11234, 99991400, 99991663, 2200, 1061045, -1}
_WAIT = 60.0  # seconds until the limits per minute are over


class Feishu:
    pace = 0.7  # Feishu allows 100 messages a minute and 5 a second
    extra_notices: frozenset[NoticeKind] = frozenset()

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
    """Returns the payload. It is far below the limit of 20 KB."""
    lines = [[{"tag": "text", "text": _unpinging(line)}] for line in paragraphs(notice)]
    for label, url in links(notice):
        lines.append([{"tag": "a", "text": label, "href": url}])
    post = {"title": f"[torchtriage] {_unpinging(headline(notice))}", "content": lines}
    return {"msg_type": "post", "content": {"post": {"zh_cn" if notice.lang == "zh" else "en_us": post}}}


def _unpinging(text: str) -> str:
    return text.replace("<at", "< at")  # in other message types this would mention people


def sign(seconds: int, secret: str) -> str:
    """Returns the signature of a message at this time. As Feishu specifies, time and secret are the key and the signed
    text is empty."""
    key = f"{seconds}\n{secret}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
