"""企业微信 (WeCom): sends plain text to a group's robot. Plain text can mention nobody; only Markdown can."""

from __future__ import annotations

from typing import Any

from torchtriage.chat.delivery_errors import refuse_code
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.plain_text import links, paragraphs
from torchtriage.chat.sanitize import cut_bytes
from torchtriage.chat.wording import headline
from torchtriage.domain.notice import Notice, NoticeKind, Thread

# Rate limits and WeCom's own errors, which go away. Other errors remain until someone acts: 93000 wrong URL, 93008 and
# 93017 the robot is not in the group, 40008 and 44004 invalid content.
_PASSING = {45009, 45033, -1, 50001, 50002}
_WAIT = 60.0  # seconds until a rate limit is over
_MAX_BYTES = 2048  # maximum bytes of a text


class WeCom:
    pace = 3.1  # WeCom allows 20 messages a minute
    extra_notices: frozenset[NoticeKind] = frozenset()

    def __init__(self, outgoing: Outgoing, url: str) -> None:
        self._outgoing = outgoing
        self._url = url

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        answer = self._outgoing.post_json(self._url, message(notice))
        refuse(answer, "WeCom")
        found = answer.json()
        refuse_code("WeCom", found.get("errcode"), found.get("errmsg"), _PASSING, _WAIT)


def message(notice: Notice) -> dict[str, Any]:
    """Returns the payload. If it is too long, the text is shortened; the link is always kept."""
    address = "\n" + ": ".join(links(notice)[0])
    most = max(_MAX_BYTES - len(address.encode()), 16)
    for steps in (3, 2, 1):  # fewer steps leave room for the retry advice, which follows them
        lines = "\n".join([f"[torchtriage] {headline(notice)}", *paragraphs(notice, steps)])
        if len(lines.encode()) <= most:
            break
    content = cut_bytes(lines, most) + address
    return {"msgtype": "text", "text": {"content": cut_bytes(content, _MAX_BYTES)}}
