"""`/guides`: the documentation of the installed version. `/guides/{name}`: one page of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from torchtriage.domain.entry import Language, Text
from torchtriage.errors import NotFound
from torchtriage.package_data import data_folder
from torchtriage.web.pages.guide_markdown import Heading, Rendered, to_html
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import environment, render
from torchtriage.web.pages.translations import word

router = APIRouter()
_DOCS, _KNOWLEDGE = data_folder("docs"), data_folder("knowledge_base")
_HOW_TO_WRITE = "knowledge-base"  # knowledge_base/README.md, the only page outside of docs/
_NAME = re.compile(r"(?:decisions/)?[A-Za-z0-9][A-Za-z0-9-]*")
_ENTRY = re.compile(r"\.\./knowledge_base/([a-z0-9-]+)/([a-z0-9-]+)\.yaml")
_FIRST = ("client", "ui", "operating")
_CONTENTS_FROM = 3  # headings, from which on a page has a list of them


@dataclass(frozen=True, slots=True)
class GuidePage:
    """`file` is the path of the page in the repository. `contents` is empty for a short page."""

    name: str
    file: str
    title: str
    html: Markup
    contents: tuple[Heading, ...]


@dataclass(frozen=True, slots=True)
class GuideLink:
    name: str
    title: str
    about: str


@dataclass(frozen=True, slots=True)
class GuideList:
    """All pages, in titled parts, and the pages to read first."""

    first: tuple[GuideLink, ...]
    parts: tuple[tuple[str, tuple[GuideLink, ...]], ...]


@router.get("/guides")
def guide_list(request: Request) -> Response:
    lang = language(request)
    parts = tuple(
        (
            title.in_(lang),
            tuple(GuideLink(name, guide_page(name, "en").title, about.in_(lang)) for name, about in pages),
        )
        for title, pages in ((title, pages.items()) for title, pages in listed())
    )
    links = {link.name: link for _, pages in parts for link in pages}
    return render(request, "guides.html", GuideList(tuple(links[name] for name in _FIRST), parts))


@router.get("/guides/{name:path}")
def guide(request: Request, name: str) -> Response:
    if not is_guide(name):
        raise NotFound("no such guide", guide=name)
    made = guide_page(name, language(request))
    contents = made.headings if len(made.headings) >= _CONTENTS_FROM else ()
    file = _file(name)
    shown = f"{file.parent.name}/{file.name}" if "/" not in name else f"docs/{name}.md"
    return render(request, "guide.html", GuidePage(name, shown, made.title, made.html, contents))


@cache
def guide_page(name: str, lang: Language) -> Rendered:
    """Returns the page `name`, which must exist. Its text is English; only its buttons are translated."""
    parts = environment().get_template("parts.html").make_module({"t": partial(word, lang), "lang": lang})

    def command(text: str) -> str:
        return str(parts.command(text, typed(text)))  # type: ignore[attr-defined]

    return to_html(_file(name).read_text("utf-8"), partial(_address, name), command)


def typed(transcript: str) -> str:
    """Returns the commands in a shell session, without prompts and output; empty if it has no prompt."""
    return "\n".join(line[2:] for line in transcript.splitlines() if line.startswith("$ "))


@cache
def listed() -> tuple[tuple[Text, dict[str, Text]], ...]:
    """Returns the parts of the list of pages: a title, and what each page is about."""
    parts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values()
    texts = [{name: Text(**text) for name, text in part.items()} for part in parts]
    return tuple((part.pop("title"), part) for part in texts)


def guide_names() -> Iterator[str]:
    """Yields the names of all pages, including those of decisions."""
    yield _HOW_TO_WRITE
    for file in sorted(_DOCS.rglob("*.md")):
        yield file.relative_to(_DOCS).with_suffix("").as_posix()


def is_guide(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and _file(name).is_file()


def _file(name: str) -> Path:
    return _KNOWLEDGE / "README.md" if name == _HOW_TO_WRITE else _DOCS / f"{name}.md"


def _address(name: str, link: str) -> str | None:
    """Returns the URL for a link in a page: another page, an entry of the knowledge base, or a web site."""
    if link.startswith(("https://", "#")):
        return link
    if entry := _ENTRY.fullmatch(link):
        return f"/knowledge/{entry[1]}.{entry[2]}"
    path, _, anchor = link.partition("#")
    base = "knowledge_base/README" if name == _HOW_TO_WRITE else f"docs/{name}"
    wanted = _joined(base.rpartition("/")[0], path)
    if wanted == "knowledge_base/README.md":
        target = _HOW_TO_WRITE
    elif wanted.startswith("docs/") and wanted.endswith(".md"):
        target = wanted.removeprefix("docs/").removesuffix(".md")
    else:
        return None
    return f"/guides/{target}{'#' + anchor if anchor else ''}" if is_guide(target) else None


def _joined(folder: str, path: str) -> str:
    parts: list[str] = folder.split("/")
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
