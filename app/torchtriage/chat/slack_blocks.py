"""Formats a notice as Slack blocks, within the limits of Block Kit.

Text from logs is in plain-text and rich-text elements, which Slack shows literally. So it can mention nobody and needs
no escaping.
"""

from __future__ import annotations

from typing import Any

from slack_sdk.models.blocks import (
    ActionsBlock,
    Block,
    ButtonElement,
    ContextBlock,
    HeaderBlock,
    PlainTextObject,
    RichTextBlock,
    RichTextElement,
    RichTextElementParts,
    RichTextPreformattedElement,
    RichTextSectionElement,
)

from torchtriage.chat.sanitize import plain
from torchtriage.chat.wording import Wording, word, wording
from torchtriage.domain.entry import Language
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice

_Text = RichTextElementParts.Text
_Style = RichTextElementParts.TextStyle
_MAX_URL_LENGTH = 3000


def message(notice: Notice, buttons: bool = True) -> dict[str, Any]:
    """Returns `text`, which notifications show, and `blocks`. `buttons` is true if Slack can reach this service, so
    that buttons work."""
    words = wording(notice)
    blocks: list[Block] = [HeaderBlock(text=_plain(words.headline))]
    above = [part for part in (words.what, words.place) if part]
    parts: list[RichTextElement] = [_section(_Text(text="\n".join(above)))] if above else []
    if words.evidence:
        parts.append(RichTextPreformattedElement(elements=[_Text(text=words.evidence)]))
    parts += _todo(words, notice.lang)
    if parts:
        blocks.append(RichTextBlock(elements=parts))
    if words.facts:
        blocks.append(ContextBlock(elements=[_plain(fact) for fact in words.facts]))
    blocks.append(ActionsBlock(elements=_buttons(notice, buttons)))
    return {"text": escaped(" · ".join(filter(None, (words.headline, words.place)))), "blocks": block_dicts(blocks)}


def note(text: str) -> dict[str, Any]:
    """Returns a short text as a message. The text may come from a log."""
    shown = plain(text, 600) or "torchtriage"
    return {"text": escaped(shown), "blocks": block_dicts([RichTextBlock(elements=[_section(_Text(text=shown))])])}


def escaped(text: str) -> str:
    """Returns the text, escaped so that Slack finds no link, channel or person in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u2060")


def block_dicts(blocks: list[Block]) -> list[dict[str, Any]]:
    """Returns the blocks as JSON. Raises SlackObjectFormationError if a block exceeds a limit."""
    return [block.to_dict() for block in blocks]


def _todo(words: Wording, lang: Language) -> list[RichTextSectionElement]:
    parts = [_Text(text=word(lang, "todo") + "\n", style=_Style(bold=True))] if words.steps else []
    for step in words.steps:
        parts.append(_Text(text=step.do + "\n"))
        if step.command:
            parts += [_Text(text=step.command, style=_Style(code=True)), _Text(text="\n")]
    below = [part for part in (words.retry, words.unknown) if part]
    if below:
        parts.append(_Text(text="\n".join(below), style=_Style(italic=True)))
    return [_section(*parts)] if parts else []


def _buttons(notice: Notice, all_of_them: bool) -> list[Any]:
    lang = notice.lang
    found = [_button(lang, "open", url=notice.url[:_MAX_URL_LENGTH])]
    if notice.group and all_of_them:
        if notice.muted_until is None:
            found.append(_button(lang, "mute", value=notice.group))
        if notice.status is GroupStatus.OPEN:
            found.append(_button(lang, "resolve", value=notice.group))
    if notice.incident and notice.entry and all_of_them:
        found.append(_button(lang, "right", value=notice.incident))
        found.append(_button(lang, "wrong", value=notice.incident))
    return found


def _button(lang: Language, action: str, value: str | None = None, url: str | None = None) -> ButtonElement:
    return ButtonElement(text=_plain(word(lang, action)), action_id=action, value=value, url=url)


def _section(*parts: Any) -> RichTextSectionElement:
    return RichTextSectionElement(elements=list(parts))


def _plain(text: str) -> PlainTextObject:
    return PlainTextObject(text=text, emoji=False)
