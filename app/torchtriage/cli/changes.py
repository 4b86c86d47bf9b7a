"""`torchtriage changes`: prints the audit log, which says who changed what."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtriage.domain.access import AuditLine

_MAX_COUNT = 50


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "changes", help="show the audit log", description="Show who changed what, newest first."
    )
    parser.add_argument(
        "--subject", metavar="THING", help="only changes of THING, such as `group 7`, `incident 12`, `token 3`"
    )
    parser.add_argument("--by", metavar="NAME", help="only changes made by NAME")
    parser.add_argument("--all", action="store_true", help=f"show all changes, not only the newest {_MAX_COUNT}")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Returns 0. Raises SettingError, StorageUnavailable or WrongVersion."""
    from torchtriage.cli.token import open_database
    from torchtriage.services import tokens
    from torchtriage.storage.audit_log import ChangeFilter

    with closing(open_database()) as database:
        found = tokens.every_change(database, ChangeFilter(options.subject, options.by))
        for change in islice(found, None if options.all else _MAX_COUNT):
            print(json.dumps(change.as_dict()) if options.json else _line(change))
    return 0


def _line(change: AuditLine) -> str:
    from torchtriage.domain.timestamps import iso

    words = (iso(change.at), change.by, change.action, change.subject, json.dumps(change.detail, ensure_ascii=False))
    # Escapes control characters: a name may contain some that change the state of the terminal.
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in "  ".join(map(str, words)))
