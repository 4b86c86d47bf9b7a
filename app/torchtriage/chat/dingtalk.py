"""钉钉 (DingTalk): sends plain text to a group's custom robot. Plain text can mention nobody and loads no image."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any
from urllib.parse import quote_plus

from torchtriage.chat.delivery_errors import refuse_code
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.plain_text import text
from torchtriage.chat.sanitize import cut_bytes
from torchtriage.domain.notice import Notice, NoticeKind, Thread

# Rate limits and DingTalk's own errors, which go away. Other errors remain until someone acts: 310000 signature,
# keyword or IP address, 300005 and 400101 wrong URL, 400102 robot disabled, 400013 group deleted, 4300xx text not
# allowed.
_PASSING = {130101, 130102, 410100, 410101, 90030, 90018, -1, 88}
_WAIT = 600.0  # seconds for which DingTalk blocks a robot that sent more than 20 messages a minute
_MAX_BYTES = 6000  # bytes; more than 20,000 are refused


class DingTalk:
    pace = 3.1  # 20 a minute
    extra_notices: frozenset[NoticeKind] = frozenset()

    def __init__(self, outgoing: Outgoing, url: str, secret: str = "") -> None:
        self._outgoing = outgoing
        self._url = url
        self._secret = secret

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        url = self._url
        if self._secret:
            now = int(time.time() * 1000)
            url += f"&timestamp={now}&sign={quote_plus(sign(now, self._secret))}"
        answer = self._outgoing.post_json(url, message(notice))
        refuse(answer, "DingTalk")
        found = answer.json()
        refuse_code("DingTalk", found.get("errcode"), found.get("errmsg"), _PASSING, _WAIT)


def message(notice: Notice) -> dict[str, Any]:
    return {"msgtype": "text", "text": {"content": cut_bytes(text(notice), _MAX_BYTES)}}


def sign(milliseconds: int, secret: str) -> str:
    """Returns the signature that the URL needs at this time."""
    signed = f"{milliseconds}\n{secret}".encode()
    return base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
