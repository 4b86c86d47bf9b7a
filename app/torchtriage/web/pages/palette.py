"""`/palette`: the search results of the command palette (Ctrl+K), as a piece of HTML."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from torchtriage.domain.access import ANYONE, Scope
from torchtriage.domain.entry import Language
from torchtriage.lazy_regex import lazy_regex
from torchtriage.services.saved_views import list_views
from torchtriage.services.service import Service
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.translations import word
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_PAGES = (("/", "nav_triage"), ("/incidents", "nav_incidents"), ("/groups", "nav_groups"),
          ("/unexplained", "nav_unexplained"), ("/dashboard", "nav_dashboard"), ("/hosts", "nav_hosts"),
          ("/knowledge", "nav_knowledge"), ("/decisions", "decisions_title"), ("/drafts", "drafts_title"),
          ("/alerts", "alerts_title"), ("/connect", "nav_connect"), ("/guides", "guides_title"),
          ("/docs", "nav_api"))  # fmt: skip
_MAX_COUNT = 6  # of a kind
_NUMBER = lazy_regex(r"#?(\d{1,18})")
_NAME = lazy_regex(r"[\w.@-]{2,80}")


@dataclass(frozen=True, slots=True)
class Choice:
    """A destination: its text, a second text beside it, and its URL."""

    text: str
    beside: str
    address: str


@dataclass(frozen=True, slots=True)
class PalettePage:
    """The choices by kind, in display order. Kinds without choices are left out."""

    choices: dict[str, tuple[Choice, ...]]


@router.get("/palette")
def palette(request: Request, service: ServiceDep) -> Response:
    asked, lang = value(request, "q"), language(request)
    pages: tuple[tuple[str, str], ...] = _PAGES
    if getattr(request.state, "caller", ANYONE).may(Scope.ADMIN):
        pages += (("/settings", "nav_settings"),)
    found = {
        "go": _numbers(asked, lang),
        "pages": [Choice(word(lang, key), at, at) for at, key in pages if _fits(asked, word(lang, key), at)],
        "views": [
            Choice(view.name, "", f"/incidents?{view.query}") for view in list_views(service) if _fits(asked, view.name)
        ],
        "entries": _entries(service, asked, lang) if asked else [],
        "search": _searches(asked, lang) if asked else [],
    }
    most = {"pages": len(pages)}
    page = PalettePage({kind: tuple(some[: most.get(kind, _MAX_COUNT)]) for kind, some in found.items() if some})
    return render(request, "palette.html", page)


def _numbers(asked: str, lang: Language) -> list[Choice]:
    named = _NUMBER.fullmatch(asked)
    if named is None:
        return []
    number = named[1]
    return [
        Choice(word(lang, "palette_incident", id=number), "", f"/incidents/{number}"),
        Choice(word(lang, "palette_group", id=number), "", f"/groups/{number}"),
    ]


def _entries(service: Service, asked: str, lang: Language) -> list[Choice]:
    known = service.knowledge.entries.values()
    titles = ((entry.id, entry.title.in_(lang)) for entry in known)
    return [Choice(title, name, f"/knowledge/{name}") for name, title in titles if _fits(asked, title, name)]


def _searches(asked: str, lang: Language) -> list[Choice]:
    found = [Choice(word(lang, "palette_search", words=asked), "", address("/incidents", {"q": asked}))]
    if _NAME.fullmatch(asked):
        found.append(Choice(word(lang, "palette_host", name=asked), "", address("/incidents", {"host": asked})))
        found.append(Choice(word(lang, "palette_user", name=asked), "", address("/incidents", {"user": asked})))
    return [*found, Choice(word(lang, "palette_symptom", words=asked), "", address("/knowledge", {"q": asked}))]


def _fits(asked: str, *texts: str) -> bool:
    """Returns whether each typed word occurs in one of the texts."""
    return all(any(one in text.casefold() for text in texts) for one in asked.casefold().split())
