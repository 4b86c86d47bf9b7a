"""`torchtriage demo`: fills an empty service with a month of made-up incidents."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from functools import partial

from torchtriage.cli.progress import Progress, add_quiet
from torchtriage.errors import BadInput


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="fill an empty service with sample incidents",
        description="Fill an empty data folder with a month of sample incidents.",
    )
    parser.add_argument("--count", type=int, default=2000, metavar="N", help="number of incidents (2000)")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed; the same seed gives the same incidents (1)"
    )
    parser.add_argument("--once", action="store_true", help="do nothing if the folder already contains incidents")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fills the data folder of the settings. Raises BadInput if it contains incidents, except with --once."""
    from torchtriage.cli.logging_setup import start_logging
    from torchtriage.domain.incident import IncidentFilter
    from torchtriage.services.demo import fill
    from torchtriage.services.incidents import list_incidents
    from torchtriage.services.service import close_service, open_service
    from torchtriage.services.triage_incident import triage_incident
    from torchtriage.settings import Settings

    settings = Settings.from_environment(os.environ)
    start_logging(settings)
    service = open_service(settings, triage_incident, working=False)
    try:
        if list_incidents(service, IncidentFilter(), 1).items:
            if options.once:
                return 0
            raise BadInput(f"{settings.data_dir} already contains incidents; set TRIAGE_DATA_DIR to an empty folder")
        with Progress(options.quiet) as progress:
            show = partial(_show, progress, options.count)
            fill(service, options.count, options.seed, datetime.now(UTC), show)
    finally:
        close_service(service)
    print(f"{options.count} incidents are in {settings.data_dir}; `torchtriage serve` shows them")
    return 0


def _show(progress: Progress, count: int, done: int) -> None:
    progress.show(f"{done} of {count} incidents created")
