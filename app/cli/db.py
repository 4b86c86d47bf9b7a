"""`torchtriage db`: the database's tables."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("db", help="upgrade, check, recount or back up the database")
    commands = parser.add_subparsers(dest="db_command", metavar="COMMAND", required=True)
    commands.add_parser("upgrade", help="bring the tables to this version").set_defaults(run=run, upgrade=True)
    commands.add_parser("check", help="say whether they are").set_defaults(run=run, upgrade=False)
    commands.add_parser("recount", help="count all verdicts anew, for dashboard and hosts").set_defaults(run=_recount)
    backup = commands.add_parser("backup", help="copy a SQLite database while it is in use")
    backup.add_argument("file", type=Path, help="the new file; the logs are copied after it")
    backup.set_defaults(run=_backup)


def run(options: argparse.Namespace) -> int:
    """-> 0. Raises SettingError, WrongVersion, StorageUnavailable."""
    from app.settings import Settings
    from app.storage.upgrade import check, head, upgrade

    url = Settings.from_environment(os.environ).database
    (upgrade if options.upgrade else check)(url)
    print(f"the database is at version {head()}")
    return 0


def _recount(options: argparse.Namespace) -> int:
    from app.settings import Settings
    from app.storage.database import Database
    from app.storage.recount import recount
    from app.storage.statistics import refresh
    from app.storage.upgrade import check

    url = Settings.from_environment(os.environ).database
    check(url)
    database = Database(url)
    try:
        with database.transaction() as session:
            counted = recount(session)
        refresh(database)
    finally:
        database.close()
    print(f"{counted} verdicts are counted")
    return 0


def _backup(options: argparse.Namespace) -> int:
    from app.settings import Settings
    from app.storage.backup import backup

    size = backup(Settings.from_environment(os.environ).database, options.file)
    print(f"{options.file}: {size} bytes; now copy the logs")
    return 0
