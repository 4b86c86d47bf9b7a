"""`torchtriage serve`: the web page and the API."""

from __future__ import annotations

import argparse
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from app.errors import TriageError

if TYPE_CHECKING:
    from app.settings import Settings

_GRACE = 10  # seconds that requests under way have when the service is asked to stop


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("serve", help="serve the web page and the API")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", help="port to listen on (8000); 0 takes a free one")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serves until it is stopped. Raises TriageError, before anything is served, where something is wrong."""
    import uvicorn

    from app.cli.start_logging import start_logging
    from app.services.service import open_service
    from app.services.triage_incident import triage_incident
    from app.settings import Settings
    from app.storage.alone import alone
    from app.web.app import create_app
    from app.web.protocol import BoundedHead

    given = {"TRIAGE_HOST": options.host, "TRIAGE_PORT": options.port}
    settings = Settings.from_environment(os.environ | {name: value for name, value in given.items() if value})
    start_logging(settings)
    with _listening(settings) as listening, alone(settings.database):
        settings = replace(settings, port=listening.getsockname()[1])
        service = open_service(settings, triage_incident, settings.serve_triages)
        app = create_app(settings, service)
        config = uvicorn.Config(
            app,
            http=BoundedHead,
            log_config=None,
            access_log=False,
            proxy_headers=False,  # whom to believe says TRIAGE_TRUSTED_PROXIES
            timeout_graceful_shutdown=_GRACE,
        )
        print(f"torchtriage listens on {settings.base_url}, data in {settings.data_dir}", flush=True)
        uvicorn.Server(config).run([listening])
    return 0


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        reason = str(error.strerror).partition(" (while")[0]  # what socket says of itself goes on after that
        raise TriageError(f"can't listen on {place}: {reason}") from None
