"""Builds the web application from settings. Importing this module opens nothing; starting the application does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from torchtriage import __version__
from torchtriage.domain.access import Scope
from torchtriage.extras import require
from torchtriage.services.attribution import NamedLogs
from torchtriage.services.back_test import BackTestJobs
from torchtriage.services.fingerprint_upgrade import FingerprintUpgrade
from torchtriage.services.maintenance import Maintenance
from torchtriage.services.outbox_worker import OutboxWorker
from torchtriage.services.retriage_job import RetriageJobs
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.web import client_download, errors, pages, slack
from torchtriage.web.api import (
    attribution,
    changes,
    decisions,
    drafts,
    groups,
    health,
    incidents,
    knowledge,
    otlp,
    run_summaries,
    stats,
    triage,
)
from torchtriage.web.api.request_spool import Spools
from torchtriage.web.api.upload_lanes import Intake
from torchtriage.web.authentication import needs
from torchtriage.web.head_requests import HeadAsGet
from torchtriage.web.mcp import route as mcp
from torchtriage.web.metrics import router as metrics
from torchtriage.web.rate_limits import BodyLimit, RateLimit
from torchtriage.web.request_log import RequestLog
from torchtriage.web.security import SecurityHeaders, refuse_cross_site
from torchtriage.web.shutdown import CutShort

if TYPE_CHECKING:
    from torchtriage.services.oidc_provider import Provider

_ASKING = 40  # threads for requests that wait for the verdict of a log that is not stored


def create_app(settings: Settings, opened: Service | None = None) -> FastAPI:
    """Returns the web application. Its start opens the service, or uses `opened`, and its end closes it.

    Raises MissingExtra if a setting needs a library that is not installed.
    """
    provider = _provider(settings)
    if settings.slack_signing_secret:
        require("slack", "TRIAGE_SLACK_SIGNING_SECRET")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_ASKING, thread_name_prefix="asking"))
        opening = partial(open_service, settings, triage_incident, settings.serve_triages)
        service = await to_thread.run_sync(opening) if opened is None else opened
        app.state.service = service
        app.state.intake = Intake(Spools(lambda: service.blobs.incoming.folder))
        app.state.named_logs = NamedLogs()
        app.state.retriage_jobs = RetriageJobs(service)
        app.state.back_tests = BackTestJobs(service)
        app.state.rate_limit = RateLimit(settings.rate_limit, settings.wrong_logins)
        app.state.provider = provider
        await to_thread.run_sync(pages.warm, app)
        upkeep, outbox_worker = Maintenance(service), OutboxWorker(service)
        upkeep.start()
        outbox_worker.start()
        succession = FingerprintUpgrade(service)
        if settings.serve_triages:
            succession.start()
        async with mcp.answering(app, service):
            yield
        app.state.intake.stop()
        app.state.retriage_jobs.close()
        app.state.back_tests.close()
        await to_thread.run_sync(succession.stop)
        await to_thread.run_sync(upkeep.stop)
        await to_thread.run_sync(outbox_worker.stop)
        await to_thread.run_sync(close_service, service)

    # There are no pages of Swagger UI or ReDoc, because both load scripts from other sites. There are no redirects for
    # a trailing slash, because they would lead to any host that a request names.
    app = _OuterMiddlewares(
        settings.trusted_proxies,
        title="torchtriage",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    errors.add_handlers(app)
    app.router.routes.extend(_routes())
    pages.install(app)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Returns the routes of all parts. All applications of a process share them, because FastAPI takes a fifth of a
    second to build the models of their parameters and answers."""
    every = APIRouter()
    every.routes.append(incidents.SubmitRoute())  # must come before FastAPI's own route, below
    for part in (
        incidents,
        otlp,
        run_summaries,
        triage,
        decisions,
        drafts,
        attribution,
        groups,
        stats,
        changes,
        health,
    ):
        every.include_router(part.router, dependencies=[Depends(refuse_cross_site)])
    for router in (metrics, slack.router, client_download.router, mcp.router):
        every.include_router(router)
    every.include_router(knowledge.router, dependencies=[Depends(needs(Scope.READ))])
    every.include_router(pages.router)
    return every.routes


def _provider(settings: Settings) -> Provider | None:
    if not settings.oidc_issuer:
        return None
    require("oidc", "TRIAGE_OIDC_ISSUER")
    from torchtriage.services.oidc_provider import Provider

    return Provider(settings)


class _OuterMiddlewares(FastAPI):
    """Adds middlewares outside FastAPI's error handling, so that they see error answers too."""

    def __init__(self, trusted_proxies: tuple[str, ...], **described: Any) -> None:
        self._trusted_proxies = list(trusted_proxies)
        super().__init__(**described)

    def build_middleware_stack(self) -> ASGIApp:
        inner = RequestLog(SecurityHeaders(CutShort(HeadAsGet(BodyLimit(super().build_middleware_stack())))))
        # uvicorn's middleware, with the proxies of the settings; uvicorn itself would trust every local process
        return cast(ASGIApp, ProxyHeadersMiddleware(cast(Any, inner), self._trusted_proxies))
