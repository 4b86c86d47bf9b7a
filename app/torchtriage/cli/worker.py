"""`torchtriage worker`: triages the logs that servers accepted. Several workers can run on several machines."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtriage.services.service import Service
    from torchtriage.settings import Settings

_LOOK = 1.0  # seconds between two checks whether the queue thread is alive


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "worker",
        help="triage logs that servers accepted (Postgres only)",
        description="Triage logs that servers accepted. Run as many workers as needed; all share one Postgres.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Works until SIGTERM or SIGINT and returns 0. Raises TriageError if the worker cannot start, or if the queue
    thread dies."""
    from torchtriage.cli.logging_setup import start_logging
    from torchtriage.cli.shutdown import end_at_the_latest
    from torchtriage.errors import SettingError, TriageError
    from torchtriage.services.fingerprint_upgrade import FingerprintUpgrade
    from torchtriage.services.maintenance import Maintenance
    from torchtriage.services.outbox_worker import OutboxWorker
    from torchtriage.services.service import close_service, open_service
    from torchtriage.services.triage_incident import triage_incident
    from torchtriage.settings import Settings

    settings = Settings.from_environment(os.environ)
    if settings.database.startswith("sqlite"):
        raise SettingError("TRIAGE_DATABASE_URL: a worker needs Postgres; on SQLite `torchtriage serve` triages itself")
    start_logging(settings)
    stopped = threading.Event()

    def stop(*_: object) -> None:
        stopped.set()
        end_at_the_latest()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    service = open_service(settings, triage_incident)
    print(f"torchtriage works the queue, {max(1, settings.workers)} logs at a time", flush=True)
    upkeep, outbox_worker, succession = Maintenance(service), OutboxWorker(service), FingerprintUpgrade(service)
    try:
        stop_showing = _show(service, settings)
        upkeep.start()
        outbox_worker.start()
        succession.start()
        while not stopped.wait(_LOOK) and not service.queue.is_dead():
            pass
        succession.stop()
        upkeep.stop()
        outbox_worker.stop()
        stop_showing()
    finally:
        dead = service.queue.is_dead()
        close_service(service)
    if dead and not stopped.is_set():
        raise TriageError("the queue thread died; other processes take over its jobs")
    return 0


def _show(service: Service, settings: Settings) -> Callable[[], object]:
    """Serves the metrics if TRIAGE_WORKER_METRICS_PORT is set. Returns a function that stops serving them. Raises
    TriageError if the port cannot be opened."""
    from torchtriage.errors import TriageError

    port = settings.worker_metrics_port
    if not port:
        return bool
    try:
        return service.counters.serve(settings.host, port)
    except OSError as error:
        raise TriageError(f"can't listen on {settings.host}:{port}: {os.strerror(error.errno or 0)}") from None
