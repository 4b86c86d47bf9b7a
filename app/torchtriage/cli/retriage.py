"""`torchtriage retriage`: stored logs against today's knowledge."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtriage.services.retriage import Difference, Retriage

_SHOWN = 50  # differences that are shown one by one


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("retriage", help="run stored logs against today's knowledge; asks at a terminal")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--yes", action="store_true", help="change it without asking")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """-> 0. Raises SettingError, KnowledgeError, StorageUnavailable."""
    from torchtriage.cli.token import me
    from torchtriage.services.retriage import Retriage
    from torchtriage.services.service import close_service, open_service
    from torchtriage.settings import Settings

    service = open_service(Settings.from_environment(os.environ), lambda *_: None, working=False)
    try:
        retriage = Retriage(service)
        if options.dry_run or (_is_terminal() and not options.yes):
            _tell(retriage, retriage.look())
            if options.dry_run or not retriage.found or not _agreed():
                return 0
            retriage = Retriage(service, retriage.found)
            for _ in retriage.change(me()):
                pass
        else:
            _tell(retriage, retriage.change(me()))
        print(f"{retriage.changed} incidents have a new verdict; the ones before are kept")
    finally:
        close_service(service)
    return 0


def _tell(retriage: Retriage, differences: Iterator[Difference]) -> None:
    """Prints what changes, and what can't be triaged now."""
    kinds: Counter[str] = Counter()
    for number, difference in enumerate(differences):
        after = _told(difference.after) if difference.after else f"stays, as {difference.problem}"
        change = f"{_told(difference.before)} → {after}"
        kinds[change] += 1
        if number < _SHOWN:
            print(f"incident {difference.incident_id}: {change}")
    if kinds.total() > _SHOWN:
        print(f"… and {kinds.total() - _SHOWN} more")
    for change, count in kinds.most_common():
        print(f"{count:>7} × {change}")
    found = len(retriage.found)
    print(f"{retriage.looked_at} incidents had a verdict of other knowledge; today's says otherwise of {found}")
    if retriage.failed:
        print(f"{retriage.failed} can't be triaged now and stay as they are, which is told above with the reason")


def _is_terminal() -> bool:
    """-> whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty()


def _agreed() -> bool:
    # On standard error, as the differences may go into a file; the end of the input is a no.
    print("Change them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _told(said: tuple[str, str | None]) -> str:
    return said[1] or said[0]
