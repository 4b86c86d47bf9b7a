"""`/guides/{name}`: a page of docs/ of this very version. Its Markdown in, as far as the docs use it; HTML out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from fastapi import APIRouter, Request, Response
from markupsafe import Markup, escape

from torchtriage.errors import NotFound
from torchtriage.package_data import data_folder
from torchtriage.web.pages.rendering import render

router = APIRouter()
_DOCS = data_folder("docs")
_NAME = re.compile(r"[a-z][a-z-]*")
_ITEM = re.compile(r"(?:[-*]|\d+\.) +(.*)")
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)")
_SPLIT = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a page: `kind` is h1, h2, h3, p, code, ul, ol or table. `text` is of a heading, a paragraph or code,
    `items` of a list, `rows` of a table, its head first."""

    kind: str
    text: str | Markup = ""
    items: tuple[Markup, ...] = ()
    rows: tuple[tuple[Markup, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class GuidePage:
    """`title` is the first heading."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@router.get("/guides/{name}")
def guide(request: Request, name: str) -> Response:
    file = _DOCS / f"{name}.md"
    if not _NAME.fullmatch(name) or not file.is_file():
        raise NotFound("no such guide", guide=name)
    return render(request, "guide.html", guide_page(name))


@cache
def guide_page(name: str) -> GuidePage:
    """-> the page of that name, which is there."""
    made = tuple(blocks((_DOCS / f"{name}.md").read_text("utf-8")))
    title = next((escape(block.text).striptags() for block in made if block.kind == "h1"), name)
    return GuidePage(name, title, made)


def blocks(source: str) -> Iterator[Block]:
    """Yields the pieces of a Markdown text."""
    lines = source.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if line.strip().startswith("```"):
            while end < len(lines) and not lines[end].strip().startswith("```"):
                end += 1
            yield Block("code", "\n".join(lines[at + 1 : end]))
            end += 1
        elif heading := re.match(r"(#{1,4}) +(.*)", line):
            yield Block(f"h{min(3, len(heading[1]))}", inline(heading[2]))
        elif line.startswith("|"):
            end = _until(lines, at, lambda one: not one.startswith("|"))
            rows = [_cells(one) for one in lines[at:end] if not re.fullmatch(r"[|:\s-]+", one)]
            yield Block("table", rows=tuple(rows))
        elif _ITEM.match(line):
            end = _until(lines, at, lambda one: not one.strip() or one.startswith(("#", "|", "```")))
            yield Block("ol" if line[0].isdigit() else "ul", items=tuple(_items(lines[at:end])))
        elif line.strip():
            end = _until(
                lines,
                at + 1,
                lambda one: not one.strip() or one.startswith(("#", "|", "```")) or bool(_ITEM.match(one)),
            )
            yield Block("p", inline(" ".join(one.strip() for one in lines[at:end])))
        at = end


def inline(text: str) -> Markup:
    """-> a line with its code, emphasis and links. A link leads to another guide or to the web; any other is text."""
    parts, last = [], 0
    for found in _INLINE.finditer(text):
        parts += [escape(text[last : found.start()]), _marked(found)]
        last = found.end()
    return Markup("").join([*parts, escape(text[last:])])


def _marked(found: re.Match[str]) -> Markup:
    code, strong, emphasis, label, address = found.groups()
    if code:
        return Markup('<code translate="no">{}</code>').format(code)
    if strong:
        return Markup("<strong>{}</strong>").format(inline(strong))
    if emphasis:
        return Markup("<em>{}</em>").format(inline(emphasis))
    if address.startswith("https://"):
        return Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, inline(label))
    name = address.partition("#")[0].removesuffix(".md")
    if _NAME.fullmatch(name) and (_DOCS / f"{name}.md").is_file():
        return Markup('<a href="/guides/{}">{}</a>').format(name, inline(label))
    return inline(label)


def _items(lines: list[str]) -> Iterator[Markup]:
    """Yields the items of a list; a line that begins none goes on with the one above."""
    items: list[list[str]] = []
    for line in lines:
        if found := _ITEM.match(line.strip()):
            items.append([found[1]])
        elif items:
            items[-1].append(line.strip())
    yield from (inline(" ".join(item)) for item in items)


def _cells(row: str) -> tuple[Markup, ...]:
    cells = _SPLIT.split(row.strip().strip("|"))
    return tuple(inline(cell.strip().replace("\\|", "|")) for cell in cells)


def _until(lines: list[str], at: int, ends: Callable[[str], bool]) -> int:
    return next((place for place in range(at, len(lines)) if ends(lines[place])), len(lines))
