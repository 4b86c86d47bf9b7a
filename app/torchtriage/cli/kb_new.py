"""`torchtriage kb new`: writes the file of a new entry, filled in from a log where one is given."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from torchtriage.errors import BadInput


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    new = subparsers.add_parser("new", help="create the file of a new entry")
    new.add_argument("entry", metavar="ENTRY", help="id of the new entry: AREA.NAME")
    new.add_argument(
        "--from", dest="log", metavar="LOG", help="take the sign and the example from the failure in this log"
    )
    new.add_argument("--json", action="store_true", help="print JSON")
    new.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes to the last knowledge folder. Raises BadInput for a bad name, one that exists, and an unreadable LOG."""
    from torchtriage.cli.start_engine import folders
    from torchtriage.knowledge.new_entry import draft, path_of

    path = path_of(options.entry, folders())
    failed = _failed_in(options.log) if options.log else None
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(draft(options.entry, failed), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    if options.json:
        print(json.dumps({"entry": options.entry, "file": str(path)}, ensure_ascii=False))
    else:
        print(f"{path}\nFill in what says TODO, then run: torchtriage kb check")
    return 0


def _failed_in(log: str) -> str:
    from torchtriage.cli.start_engine import start_engine
    from torchtriage.knowledge.new_entry import failure
    from torchtriage.reading.sources import open_path

    verdict = start_engine().triage(open_path(Path(log)))
    failed = failure(verdict)
    if verdict.root_cause and verdict.root_cause.entry:
        print(f"torchtriage: {log} is already explained by {verdict.root_cause.entry}", file=sys.stderr)
    return failed
