"""A notice as lines of plain text, for chats and mails that know no buttons."""

from __future__ import annotations

from torchtriage.chat.wording import Wording, word, wording
from torchtriage.domain.notice import Notice


def paragraphs(notice: Notice, most_steps: int | None = None) -> list[str]:
    """-> the lines below the headline; the addresses are not in them."""
    said: Wording = wording(notice)
    lines = [said.what, said.place, said.evidence]
    for step in said.steps[:most_steps]:
        lines += [step.do, f"$ {step.command}" if step.command else ""]
    lines += [said.retry, said.unknown, " · ".join(said.facts)]
    return [line for line in lines if line]


def links(notice: Notice) -> list[tuple[str, str]]:
    """-> (what it is, address) of the pages about it."""
    found = [(word(notice.lang, "open"), notice.url)]
    if notice.group_url:
        found.append((word(notice.lang, "group"), notice.group_url))
    return found


def text(notice: Notice) -> str:
    """-> the whole notice as lines of text. It names torchtriage, which robots can be told to look for."""
    said = wording(notice)
    addresses = [f"{label}: {url}" for label, url in links(notice)]
    return "\n".join([f"[torchtriage] {said.headline}", *paragraphs(notice), *addresses])
