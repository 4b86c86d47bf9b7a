"""Renders a page of docs/ from Markdown into HTML, a title and headings. HTML in the Markdown is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Heading:
    """A second-level heading, for the table of contents."""

    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """`title` is the first heading; `headings` are the second-level headings."""

    title: str
    html: Markup
    headings: tuple[Heading, ...]


def to_html(source: str, address_of: Callable[[str], str | None], command: Callable[[str], str]) -> Rendered:
    """Renders a page. `address_of` returns the URL for a link, or None if it cannot be shown. `command` returns the
    HTML of a code block."""
    made = MarkdownIt("commonmark", {"html": True}, renderer_cls=_Renderer).enable("table")
    tokens = made.parse(source)
    anchors = _with_anchors(tokens)
    html = made.renderer.render(tokens, made.options, {"address_of": address_of, "command": command})
    return Rendered(
        title=next((text for level, _, text in anchors if level == "h1"), ""),
        html=Markup(html),  # noqa: S704  (each rule above escapes what it is given)
        headings=tuple(Heading(anchor, text) for level, anchor, text in anchors if level == "h2"),
    )


class _Renderer(RendererHTML):
    """HTML in which code blocks have a copy button, wide tables scroll, and links point to pages of this service."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return str(env["command"](tokens[idx].content.rstrip("\n")))

    code_block = fence

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return f'<code translate="no">{escape(tokens[idx].content)}</code>'

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return str(escape(_COMMENT.sub("", tokens[idx].content)))

    html_inline = html_block

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        address = env["address_of"](str(tokens[idx].attrGet("href")))
        if address is None:
            return "<span>"
        away = ' rel="noreferrer"' if address.startswith("https://") else ""
        return f'<a href="{escape(address)}"{away}>'

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        opened = next(
            one for one in reversed(tokens[:idx]) if one.type == "link_open" and one.level == tokens[idx].level
        )
        href = str(opened.attrGet("href"))
        if env["address_of"](href) is not None:
            return "</a>"
        file = re.sub(r"^(\.\./)+", "", href.partition("#")[0])
        said = "".join(one.content for one in tokens[tokens.index(opened) : idx])
        shown = "" if not file or "://" in href or said == file else f' (<code translate="no">{escape(file)}</code>)'
        return f"</span>{shown}"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return str(escape(tokens[idx].content))  # no picture is part of the package

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        head = next((one.content for one in tokens[idx:] if one.type == "inline" and one.content), "")
        label = escape(re.sub(r"[`*\[\]]|\(\S+\)", "", head))
        return f'<div class="wide-table" tabindex="0" role="group" aria-label="{label}"><table>'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return "</table></div>"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return '<th scope="col">' if tokens[idx + 1].content else "<td>"

    def th_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return "</th>" if tokens[idx - 1].content else "</td>"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return "<td>"  # an alignment would be a style, which the page may not set


def _with_anchors(tokens: list[Token]) -> list[tuple[str, str, str]]:
    """Gives each heading the anchor that GitHub would give it. Returns level, anchor and text of each."""
    found: list[tuple[str, str, str]] = []
    taken: dict[str, int] = {}
    for opened, inner in pairwise(tokens):
        if opened.type == "heading_open":
            text = _plain(inner)
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            again = taken.get(slug, 0)
            taken[slug] = again + 1
            anchor = f"{slug}-{again}" if again else slug
            if opened.tag != "h1":
                opened.attrSet("id", anchor)
            found.append((opened.tag, anchor, text))
    return found


def _plain(inline: Token) -> str:
    """Returns the text of an inline token, without markup."""
    parts = (" " if one.type in ("softbreak", "hardbreak") else one.content for one in inline.children or ())
    return "".join(parts)
