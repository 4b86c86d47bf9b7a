"""`torchtriage serve`: the web page and the API."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from torchtriage.cli.shutdown import end_at_the_latest
from torchtriage.errors import TriageError

if TYPE_CHECKING:
    import uvicorn

    from torchtriage.settings import Settings

_M_TRIM_THRESHOLD, _M_ARENA_MAX = -1, -8  # of glibc, malloc.h
_MOST_KEPT = 128 << 10  # bytes at the end of the heap that malloc keeps when they are freed
_GRACE = 10  # seconds that requests under way have when the service is asked to stop


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="start the web page and the API",
        description="Start the web page and the API. Settings come from TRIAGE_ variables (docs/settings.md).",
    )
    parser.add_argument("--host", help="address to listen on ($TRIAGE_HOST, 127.0.0.1)")
    parser.add_argument("--port", help="port to listen on ($TRIAGE_PORT, 8000); 0 picks a free one")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serves until it is stopped. Raises TriageError, before anything is served, where something is wrong, and where
    the database's file was taken away from below it."""
    from torchtriage.cli.logging_setup import start_logging
    from torchtriage.settings import Settings
    from torchtriage.storage.sqlite_lock import exclusive_use

    given = {"TRIAGE_HOST": options.host, "TRIAGE_PORT": options.port}
    settings = Settings.from_environment(os.environ | {name: value for name, value in given.items() if value})
    _hand_memory_back()
    start_logging(settings)
    with _listening(settings) as listening, exclusive_use(settings.database):
        # Here, as they take a second to load, and what is wrong with settings, port or database is said before.
        import uvicorn

        from torchtriage.services.service import close_service, open_service
        from torchtriage.services.triage_incident import triage_incident
        from torchtriage.web.app import create_app
        from torchtriage.web.http_protocol import BoundedHead

        settings = replace(settings, port=listening.getsockname()[1])
        service = open_service(settings, triage_incident, settings.serve_triages)
        try:
            app = create_app(settings, service)
        except TriageError:
            close_service(service)  # a triage process that is killed while it starts prints a traceback below our line
            raise
        config = uvicorn.Config(
            app,
            http=BoundedHead,
            log_config=None,
            access_log=False,
            proxy_headers=False,  # whom to believe says TRIAGE_TRUSTED_PROXIES
            timeout_graceful_shutdown=_GRACE,
        )
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
        server = _server(config)

        def stop() -> None:
            end_at_the_latest()
            server.should_exit = True

        service.database.on_moved = stop
        print(f"torchtriage listens on {settings.base_url}, data in {settings.data_dir}", flush=True)
        server.run([listening])
        if service.database.moved is not None:
            raise service.database.moved
    return 0


def _hand_memory_back() -> None:
    """glibc gives each thread memory of its own, and keeps what is freed: with forty uploads a fifth of all that the
    server held. Python runs one thread at a time, so one arena serves all of them."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl and macOS have none
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT)


def _server(config: uvicorn.Config) -> uvicorn.Server:
    """-> one that ends in time, whatever its threads wait for."""
    import uvicorn

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            end_at_the_latest()
            super().handle_exit(sig, frame)

    return Server(config)


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        reason = str(error.strerror).partition(" (while")[0]  # what socket says about itself goes on after that
        raise TriageError(f"can't listen on {place}: {reason}") from None
