"""What somebody wrote in Slack as the log that it holds: Slack's escapes, links and mentions out, code blocks first."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_LINK = re.compile(r"<((?:https?|mailto|ftp)[^|>]*)(?:\|([^>]*))?>")
_MENTION = re.compile(r"<([@#!])([^|>]*)(?:\|([^>]*))?>")
_ADDRESSED = re.compile(r"^\s*<@[^>]*>\s*")


def log_in(text: str) -> str:
    """-> the code blocks of a message, one after the other; the whole message where there is none."""
    text = _ADDRESSED.sub("", text)
    blocks = _BLOCK.findall(text)
    return "\n".join(map(unescaped, blocks)) if any(map(str.strip, blocks)) else unescaped(text).strip()


def unescaped(text: str) -> str:
    """-> a text as it was typed."""
    text = _LINK.sub(lambda found: found[2] if found[1].startswith("mailto:") and found[2] else found[1], text)
    text = _MENTION.sub(lambda found: found[1] + (found[3] or found[2]), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
