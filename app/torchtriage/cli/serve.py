"""`torchtriage serve`: starts the web page and the API."""

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

_M_TRIM_THRESHOLD, _M_ARENA_MAX = -1, -8  # from malloc.h of glibc
_MAX_KEPT = 128 << 10  # bytes of free memory that malloc may keep at the end of the heap
_GRACE = 10  # seconds for requests to finish after the service is asked to stop


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
    """Serves until the process is stopped. Raises TriageError before serving if anything is wrong, and later if the
    file of the database was moved or deleted."""
    from torchtriage.cli.logging_setup import start_logging
    from torchtriage.settings import Settings
    from torchtriage.storage.sqlite_lock import exclusive_use

    given = {"TRIAGE_HOST": options.host, "TRIAGE_PORT": options.port}
    settings = Settings.from_environment(os.environ | {name: value for name, value in given.items() if value})
    _return_free_memory()
    start_logging(settings)
    with _listening(settings) as listening, exclusive_use(settings.database):
        # Imported here because they take a second to load; errors in settings, port or database are reported earlier.
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
            close_service(service)  # else a triage process that is killed while it starts prints a traceback
            raise
        config = uvicorn.Config(
            app,
            http=BoundedHead,
            log_config=None,
            access_log=False,
            proxy_headers=False,  # TRIAGE_TRUSTED_PROXIES decides which proxies to trust
            timeout_graceful_shutdown=_GRACE,
        )
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # with nohup it is ignored
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


def _return_free_memory() -> None:
    """Makes glibc return freed memory to the system. By default each thread gets its own arena, which keeps freed
    memory: a fifth of the server's memory with forty uploads. Python runs one thread at a time, so one arena is
    enough."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl and macOS do not have it
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _MAX_KEPT)


def _server(config: uvicorn.Config) -> uvicorn.Server:
    """Returns a server that exits in time even if its threads are blocked."""
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
        reason = str(error.strerror).partition(" (while")[0]  # socket appends its own explanation
        raise TriageError(f"can't listen on {place}: {reason}") from None
