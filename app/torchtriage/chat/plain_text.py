"""Formats a notice as plain text, for chats and mails without buttons."""

from __future__ import annotations

from torchtriage.answer.shell_prompt import with_prompt
from torchtriage.chat.wording import Wording, word, wording
from torchtriage.domain.notice import Notice


def paragraphs(notice: Notice, most_steps: int | None = None) -> list[str]:
    """Returns the lines below the headline, without the links."""
    words: Wording = wording(notice)
    lines = [words.what, words.place, words.evidence]
    for step in words.steps[:most_steps]:
        lines += [step.do, with_prompt(step.command) if step.command else ""]
    lines += [words.retry, words.unknown, " · ".join(words.facts)]
    return [line for line in lines if line]


def links(notice: Notice) -> list[tuple[str, str]]:
    """Returns the label and URL of each page about the notice."""
    found = [(word(notice.lang, "open"), notice.url)]
    if notice.group_url:
        found.append((word(notice.lang, "group"), notice.group_url))
    return found


def text(notice: Notice) -> str:
    """Returns the whole notice as text. It starts with [torchtriage], because robots can require a keyword."""
    words = wording(notice)
    addresses = [f"{label}: {url}" for label, url in links(notice)]
    return "\n".join([f"[torchtriage] {words.headline}", *paragraphs(notice), *addresses])
