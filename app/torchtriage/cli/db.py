"""`torchtriage db`: upgrades, checks, backs up and cleans the database and the stored logs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.cli.arguments import add_commands

if TYPE_CHECKING:
    from torchtriage.services.service import Service
    from torchtriage.settings import Settings

_SHOWN = 20  # number of incidents named per log


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "db",
        help="upgrade, check, back up and clean the database",
        description="Upgrade, check, back up and clean the database and the stored logs.",
    )
    commands = add_commands(parser, "db_command")
    commands.add_parser("upgrade", help="upgrade the tables to this version").set_defaults(
        run=run, upgrade=True, logs=False
    )
    check = commands.add_parser("check", help="check that the tables are at this version")
    check.add_argument(
        "--logs", action="store_true", help="also read every stored log and list damaged and missing ones"
    )
    check.set_defaults(run=run, upgrade=False)
    commands.add_parser("recount", help="recompute the counts of the dashboard and the host page").set_defaults(
        run=_recount
    )
    backup = commands.add_parser("backup", help="back up a SQLite database while it is in use")
    backup.add_argument("file", type=Path, help="the file to create; copy the logs after this")
    backup.set_defaults(run=_backup)
    old = commands.add_parser("forget-old", help="delete incidents older than TRIAGE_RETENTION_DAYS, however many")
    old.set_defaults(run=_forget_old)
    sweep = commands.add_parser("sweep", help="delete stored logs that belong to no incident, however many")
    sweep.set_defaults(run=_sweep)
    for command in (old, sweep):
        command.add_argument("--yes", action="store_true", help="delete; without it, only show what would be deleted")


def run(options: argparse.Namespace) -> int:
    """Returns 1 if a stored log is damaged or missing, else 0. Raises SettingError, WrongVersion or
    StorageUnavailable."""
    from torchtriage.settings import Settings
    from torchtriage.storage.schema_upgrade import check, head, upgrade

    settings = Settings.from_environment(os.environ)
    (upgrade if options.upgrade else check)(settings.database)
    print(f"the database is at version {head()}")
    return _check_logs(settings) if options.logs else 0


def _check_logs(settings: Settings) -> int:
    from torchtriage.services.stored_logs import check
    from torchtriage.storage.blobs import BlobStore
    from torchtriage.storage.database import Database

    database, read, bad = Database(settings.database), 0, 0
    try:
        for found in check(database, BlobStore(settings.blobs, settings.data_dir)):
            read += 1
            if found is not None:
                bad += 1
                more = f" and {len(found.incidents) - _SHOWN} more" if len(found.incidents) > _SHOWN else ""
                print(f"{found.why}; of incident {', '.join(found.incidents[:_SHOWN])}{more}")
    finally:
        database.close()
    print(f"{read} stored logs were read, {bad} of them are damaged or missing")
    return 1 if bad else 0


def _recount(options: argparse.Namespace) -> int:
    from torchtriage.settings import Settings
    from torchtriage.storage.database import Database
    from torchtriage.storage.planner_statistics import refresh
    from torchtriage.storage.recount import recount
    from torchtriage.storage.schema_upgrade import check

    url = Settings.from_environment(os.environ).database
    check(url)
    database = Database(url)
    try:
        with database.transaction() as session:
            counted = recount(session)
        refresh(database)
    finally:
        database.close()
    print(f"{counted} verdicts counted")
    return 0


def _backup(options: argparse.Namespace) -> int:
    from torchtriage.settings import Settings
    from torchtriage.storage.backup import backup

    size = backup(Settings.from_environment(os.environ).database, options.file)
    print(f"{options.file}: {size} bytes; now copy the logs")
    return 0


def _forget_old(options: argparse.Namespace) -> int:
    from torchtriage.services.retention import due, forget

    with _opened() as service:
        found = due(service)
        if found is None:
            print("TRIAGE_RETENTION_DAYS is not set: incidents are kept forever")
        elif options.yes:
            print(f"{forget(service, found)} incidents were deleted")
        else:
            print(f"{found.count} of {found.total} incidents were received before {found.before:%Y-%m-%d %H:%M} UTC")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from torchtriage.services.stored_logs import remove, unnamed

    with _opened() as service:
        found, total = unnamed(service)
        if options.yes:
            print(f"{remove(service, found)} stored logs were removed")
        else:
            print(f"{len(found)} of {total} stored logs belong to no incident of this database")
    return 0


@contextmanager
def _opened() -> Iterator[Service]:
    """Yields the service that the settings describe. It works on no queue, so it can run beside a server."""
    from torchtriage.services.service import close_service, open_service
    from torchtriage.settings import Settings

    service = open_service(Settings.from_environment(os.environ), lambda *_: None, working=False)
    try:
        yield service
    finally:
        close_service(service)
