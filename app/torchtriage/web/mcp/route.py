"""`/mcp`: the tools over HTTP, for callers with the scope `read`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from torchtriage.domain.access import Scope as Permission
from torchtriage.errors import NotFound
from torchtriage.extras import is_installed
from torchtriage.services.service import Service
from torchtriage.web.authentication import needs
from torchtriage.web.dependencies import search_index
from torchtriage.web.mcp.tools import Tools
from torchtriage.web.security import refuse_cross_site

_MAX_BYTES = 32 << 20  # maximum bytes of a log in a call; larger logs must go to the API
router = APIRouter(include_in_schema=False, dependencies=[Depends(refuse_cross_site), Depends(needs(Permission.READ))])


@asynccontextmanager
async def answering(app: FastAPI, service: Service) -> AsyncIterator[None]:
    """Serves `/mcp` inside the `with` block if the extra is installed."""
    if not is_installed("mcp"):
        yield
        return
    from mcp.server.transport_security import TransportSecuritySettings

    from torchtriage.web.mcp.server import server

    tools = server(Tools(service, partial(search_index, app.state, service)), local=False)
    # Unknown host names and other sites are refused earlier, as on every route.
    trusted = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app.state.mcp = tools.streamable_http_app(
        json_response=True, stateless_http=True, transport_security=trusted, max_request_body_size=_MAX_BYTES
    )
    async with tools.session_manager.run():
        yield


# There is no GET. It would open a stream without messages, because calls are stateless here.
@router.post("/mcp")
async def mcp(request: Request) -> Response:
    """Passes the request to the MCP application. Raises NotFound if the extra is not installed."""
    if not hasattr(request.app.state, "mcp"):
        raise NotFound("MCP is not installed: install torchtriage[mcp]")
    return _HandedOn(request.app.state.mcp)


class _HandedOn(Response):
    """An answer that another application sends."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
