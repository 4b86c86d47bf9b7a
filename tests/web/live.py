"""A service that listens on loopback: one that is open in, its address out."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from torchtriage.services.back_test import BackTestJobs
from torchtriage.services.outbox_worker import OutboxWorker
from torchtriage.services.retriage_job import RetriageJobs
from torchtriage.services.service import Service
from torchtriage.web.api.request_spool import Spools
from torchtriage.web.api.upload_lanes import Intake
from torchtriage.web.app import create_app
from torchtriage.web.rate_limits import RateLimit


@contextmanager
def serving(service: Service, posting: bool = True) -> Iterator[str]:
    """Where it is not `posting`, what is put into the outbox stays there. The service stays open afterwards."""
    app = create_app(service.settings, service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        app.state.service = service  # without what ends with closing it
        app.state.rate_limit = RateLimit(service.settings.rate_limit, service.settings.wrong_logins)
        app.state.provider = None
        app.state.retriage_jobs = RetriageJobs(service)
        app.state.back_tests = BackTestJobs(service)
        app.state.intake = Intake(Spools(lambda: service.blobs.incoming.folder))
        yield

    app.router.lifespan_context = lifespan
    outbox_worker = OutboxWorker(service, pause=0.02)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, proxy_headers=False))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        if posting:
            outbox_worker.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            outbox_worker.stop()
            server.should_exit = True
            thread.join()
