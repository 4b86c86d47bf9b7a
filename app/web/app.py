"""Builds the web application from settings. Importing this opens nothing; the application's start does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from anyio import to_thread
from fastapi import Depends, FastAPI

from app import __version__
from app.domain.access import Scope
from app.errors import TriageError
from app.services.incidents import forget_old
from app.services.service import Service, close_service, open_service
from app.services.triage_incident import triage_incident
from app.settings import Settings
from app.web import errors, pages
from app.web.access import needs
from app.web.api import groups, health, incidents, knowledge, stats, triage
from app.web.limits import RateLimit
from app.web.metrics import router as metrics
from app.web.security import refuse_cross_site

log = logging.getLogger(__name__)
_UPKEEP = 3600  # seconds


def create_app(settings: Settings, opened: Service | None = None) -> FastAPI:
    """-> the whole web application; its start opens the service, or takes one that is open, and its end closes it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = await to_thread.run_sync(open_service, settings, triage_incident) if opened is None else opened
        app.state.service = service
        app.state.rate_limit = RateLimit(settings.rate_limit)
        upkeep = asyncio.create_task(_keep_up(service))
        yield
        upkeep.cancel()
        with suppress(asyncio.CancelledError):
            await upkeep
        await to_thread.run_sync(close_service, service)

    # No page of Swagger UI or ReDoc: both load scripts from elsewhere.
    app = FastAPI(title="torchtriage", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    errors.add_handlers(app)
    for part in (incidents, triage, groups, stats, health):
        app.include_router(part.router, dependencies=[Depends(refuse_cross_site)])
    app.include_router(metrics)
    app.include_router(knowledge.router, dependencies=[Depends(needs(Scope.READ))])
    pages.install(app)
    return app


async def _keep_up(service: Service) -> None:
    """Forgets old incidents, now and every hour."""
    while True:
        try:
            await to_thread.run_sync(forget_old, service)
        except TriageError as error:
            log.error("old incidents could not be forgotten: %s", error.message)
        await asyncio.sleep(_UPKEEP)
