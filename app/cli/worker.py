"""`torchtriage worker`: triages what servers accepted, on as many machines as there are workers."""

from __future__ import annotations

import argparse
import os
import signal
import threading


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("worker", help="triage what servers accepted, where the database is Postgres")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Works until it is stopped -> 0. Raises TriageError, before anything is worked, where something is wrong."""
    from app.cli.start_logging import start_logging
    from app.errors import SettingError
    from app.services.postman import Postman
    from app.services.service import close_service, open_service
    from app.services.triage_incident import triage_incident
    from app.services.upkeep import PAUSE, Upkeep
    from app.settings import Settings

    settings = Settings.from_environment(os.environ)
    if settings.database.startswith("sqlite"):
        raise SettingError("TRIAGE_DATABASE_URL: a worker needs Postgres; on SQLite `torchtriage serve` triages itself")
    start_logging(settings)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    service = open_service(settings, triage_incident)
    print(f"torchtriage works the queue, {max(1, settings.workers)} logs at a time", flush=True)
    upkeep, postman = Upkeep(service), Postman(service)
    postman.start()
    while not stopped.wait(PAUSE):
        upkeep.turn()
    postman.stop()
    close_service(service)
    return 0
