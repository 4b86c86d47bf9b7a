"""The web pages: HTML for people, rendered on the server and readable without JavaScript."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from torchtriage.domain.access import Scope as Permission
from torchtriage.web.authentication import needs
from torchtriage.web.dependencies import search_index
from torchtriage.web.pages import (
    alerts,
    api_reference,
    bulk,
    changes,
    compare,
    connect,
    dashboard,
    decisions,
    drafts,
    entry,
    exports,
    filter_values,
    group,
    groups,
    guides,
    home,
    hosts,
    incident,
    incidents,
    knowledge,
    log,
    log_download,
    login,
    palette,
    retriage,
    settings,
    single_sign_on,
    theme,
    unexplained,
)
from torchtriage.web.pages.compression import small_file
from torchtriage.web.pages.error_page import answer_people
from torchtriage.web.pages.error_texts import sentences
from torchtriage.web.pages.rendering import STATIC, environment
from torchtriage.web.pages.translations import catalogue
from torchtriage.web.security import refuse_cross_site

router = APIRouter(include_in_schema=False, dependencies=[Depends(refuse_cross_site)])
# Some addresses have a name where others have an id, so an order that matters: lists before their items.
_PARTS = (home, incidents, exports, filter_values, bulk, compare, incident, log, log_download, groups, group,
          unexplained, drafts, dashboard, decisions, alerts, hosts, retriage, settings, changes, api_reference, palette,
          connect, guides)  # fmt: skip
for _part in (*_PARTS, knowledge, entry):
    router.include_router(_part.router, dependencies=[Depends(needs(Permission.READ))])
router.include_router(login.router)
router.include_router(theme.router)
router.include_router(single_sign_on.router)


def install(app: FastAPI) -> None:
    """Adds static files and error pages to an application. Its error handlers must be installed already."""
    app.mount("/static", _Static(directory=STATIC))
    answer_people(app)


def warm(app: FastAPI) -> None:
    """Loads templates, texts and the search index, so that the first requests do not wait for them."""
    environment()
    catalogue()
    sentences()
    search_index(app.state, app.state.service)


class _Static(StaticFiles):
    """Static files whose URL contains their digest, so that browsers may cache them forever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if scope["query_string"].startswith(b"v="):
            answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return small_file(answer, STATIC / path, Headers(scope=scope))
