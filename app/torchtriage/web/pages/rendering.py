"""Renders templates: a template's name and the dataclass of a page become an HTML answer."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from torchtriage.answer.commands import general, general_parts
from torchtriage.answer.inconclusive_answer import title_of as inconclusive_title
from torchtriage.domain.access import ANYONE
from torchtriage.domain.byte_sizes import size_text
from torchtriage.domain.entry import Language
from torchtriage.domain.timestamps import log_time
from torchtriage.knowledge.cache import cache_folder
from torchtriage.web.pages import sanitize
from torchtriage.web.pages.alignment_marks import marks
from torchtriage.web.pages.compiled_templates import with_compiled_templates
from torchtriage.web.pages.compression import small_page
from torchtriage.web.pages.error_texts import problem_text
from torchtriage.web.pages.language import language, remember
from torchtriage.web.pages.relative_time import ago, zoned
from torchtriage.web.pages.sign_descriptions import in_words, said
from torchtriage.web.pages.theme import THEMES, address_of, theme_of
from torchtriage.web.pages.translations import area_name, word

_WEB = Path(__file__).resolve().parents[1]
STATIC = _WEB / "static"
_TEMPLATES = _WEB / "templates"


def render(request: Request, template: str, page: object, status: int = 200) -> Response:
    """Returns the page in the reader's language. The template can use `page` and the functions below."""
    lang = language(request)
    content = (
        environment()
        .get_template(template)
        .render(
            page=page,
            lang=lang,
            t=partial(word, lang),
            ago=partial(ago, lang),
            problem_text=partial(problem_text, lang),
            area_name=partial(area_name, lang),
            path=request.url.path,
            theme=theme_of(request),
            themes=THEMES,
            here=partial(address_of, request),
            in_language=partial(_in_language, request),
            caller=getattr(request.state, "caller", ANYONE),
            anyone=ANYONE,
            asked=request.query_params.get("q", "") if request.url.path == "/incidents" else "",
        )
    )
    # A lone half of a character pair can't be sent; it becomes a question mark.
    answer = HTMLResponse(content.encode("utf-8", "replace"), status)
    answer.headers["Cache-Control"] = "private, no-cache"
    answer.headers["Vary"] = "Accept-Language, Cookie"
    remember(request, answer)
    return small_page(answer, request.headers)


@cache
def environment() -> Environment:
    """Returns the environment of all templates, compiled, with their filters and functions."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "visible": sanitize.visible,
        "prose": sanitize.prose,
        "size": size_text,
        "moment": sanitize.moment,
    }
    made.filters |= {"thousands": lambda number: f"{number:,}", "iso": lambda at: at.isoformat()}
    made.filters |= {
        "log_time": log_time,
        "general": general,
        "general_parts": general_parts,
        "coloured": sanitize.coloured,
    }
    made.filters |= {"coded": sanitize.coded, "in_words": in_words, "said": said}
    made.filters |= {"marks": marks}
    made.filters |= {"duration": sanitize.duration, "hours": sanitize.hours, "percent": sanitize.percent}
    made.filters |= {"zoned": zoned, "inconclusive_title": inconclusive_title}
    made.globals["static"] = _static
    return with_compiled_templates(made, _TEMPLATES, cache_folder())


@cache
def _static(name: str) -> str:
    """Returns the URL of a static file. It contains a hash of the content, so that browsers may cache it forever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:12]}"


def _in_language(request: Request, lang: Language) -> str:
    """Returns the URL of this page in another language."""
    kept: list[tuple[str, Any]] = [
        (name, value) for name, value in request.query_params.multi_items() if name != "lang"
    ]
    path = request.url.path if request.method in ("GET", "HEAD") else "/"
    return f"{path}?{urlencode([*kept, ('lang', lang)])}"
