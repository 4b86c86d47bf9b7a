"""The pages: HTML for people, rendered here, readable without script."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.domain.access import Scope as Permission
from app.web.access import needs
from app.web.deps import search_index
from app.web.pages import (
    bulk,
    dashboard,
    entry,
    exports,
    group,
    groups,
    home,
    hosts,
    incident,
    incidents,
    knowledge,
    log,
    log_text,
    login,
    retriage,
    settings,
    single_sign_on,
    unexplained,
)
from app.web.pages.compression import small_file
from app.web.pages.error_page import answer_people
from app.web.pages.problems import sentences
from app.web.pages.rendering import STATIC, environment
from app.web.pages.words import catalogue
from app.web.security import refuse_cross_site

router = APIRouter(include_in_schema=False, dependencies=[Depends(refuse_cross_site)])
# Some addresses have a name where others have an id, so an order that matters: lists before their items.
_PARTS = (home, incidents, exports, bulk, incident, log, log_text, groups, group,
          unexplained, dashboard, hosts, retriage, settings)  # fmt: skip
for _part in (*_PARTS, knowledge, entry):
    router.include_router(_part.router, dependencies=[Depends(needs(Permission.READ))])
router.include_router(login.router)
router.include_router(single_sign_on.router)


def install(app: FastAPI) -> None:
    """Adds the pages, their static files and their headers to an application that has its error handlers already."""
    app.include_router(router)
    app.mount("/static", _Static(directory=STATIC))
    answer_people(app)


def warm(app: FastAPI) -> None:
    """Makes what the first answers would wait for."""
    environment()
    catalogue()
    sentences()
    search_index(app.state, app.state.service)


class _Static(StaticFiles):
    """Files whose address names their content, which browsers may keep for good."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if scope["query_string"].startswith(b"v="):
            answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return small_file(answer, STATIC / path, Headers(scope=scope))
