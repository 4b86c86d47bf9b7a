"""`torchtriage retriage`: triages stored logs again with the current knowledge base."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchtriage.cli.progress import Progress, add_quiet

if TYPE_CHECKING:
    from torchtriage.services.retriage import Difference, Retriage
    from torchtriage.services.service import Service

_MAX_LISTED = 50  # number of differences that are printed one by one


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "retriage",
        help="triage stored logs again with the current knowledge base",
        description="Triage stored logs again with the current knowledge base. Shows what changes, and asks first on a "
        "terminal.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--yes", action="store_true", help="apply changes without asking")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Returns 0. Raises SettingError, KnowledgeError or StorageUnavailable."""
    from torchtriage.cli.token import me
    from torchtriage.services.retriage import Retriage
    from torchtriage.services.service import close_service, open_service
    from torchtriage.settings import Settings

    service = open_service(Settings.from_environment(os.environ), lambda *_: None, working=False)
    try:
        with Progress(options.quiet) as progress:
            retriage = Retriage(service, on_progress=lambda done: progress.show(f"{done} incidents checked"))
            asks = options.dry_run or (_is_terminal() and not options.yes)
            kinds = _print_differences(retriage.preview() if asks else retriage.change(me()), progress)
        _print_summary(retriage, kinds)
        if asks:
            if options.dry_run or not retriage.found or not _agreed():
                return 0
            retriage = _applied(service, retriage.found, options.quiet)
        print(f"{retriage.changed} incidents have a new verdict; the previous ones are kept")
    finally:
        close_service(service)
    return 0


def _applied(service: Service, found: list[str], quiet: bool) -> Retriage:
    """Triages these incidents again, saves their new verdicts, and returns the Retriage that did it."""
    from torchtriage.cli.token import me
    from torchtriage.services.retriage import Retriage

    with Progress(quiet) as progress:
        total = len(found)
        retriage = Retriage(service, found, lambda done: progress.show(f"{done} of {total} incidents triaged again"))
        for _ in retriage.change(me()):
            pass
    return retriage


def _print_differences(differences: Iterator[Difference], progress: Progress) -> Counter[str]:
    """Prints each difference and each incident that cannot be triaged now. Returns how many there are of each kind."""
    kinds: Counter[str] = Counter()
    for number, difference in enumerate(differences):
        change = _change(difference)
        kinds[change] += 1
        if number < _MAX_LISTED:
            progress.clear()
            print(f"incident {difference.incident_id}: {change}")
    return kinds


def _print_summary(retriage: Retriage, kinds: Counter[str]) -> None:
    if kinds.total() > _MAX_LISTED:
        print(f"… and {kinds.total() - _MAX_LISTED} more")
    for change, count in kinds.most_common():
        print(f"{count:>7} × {change}")
    found = len(retriage.found)
    print(f"{retriage.looked_at} incidents were triaged with older knowledge; {found} of them get a new verdict")
    if retriage.reanswered:
        print(f"{retriage.reanswered} of these keep their cause and get another case's answer")
    if retriage.failed:
        print(f"{retriage.failed} could not be triaged and keep their verdict; the reasons are above")


def _is_terminal() -> bool:
    """Returns whether there is a person to ask."""
    return sys.stdin is not None and sys.stdin.isatty()


def _agreed() -> bool:
    # Asks on standard error, because the differences may be redirected to a file. The end of the input means no.
    print("Change them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _change(difference: Difference) -> str:
    """Describes how the verdict of an incident changes. If only its answer changes, names the cases before and
    after."""
    before, after = difference.cases if difference.only_answer else (None, None)
    change = _outcome(difference.after, after) if difference.after else f"unchanged: {difference.problem}"
    return f"{_outcome(difference.before, before)} → {change}"


def _outcome(verdict: tuple[str, str | None], case: str | None) -> str:
    outcome, entry = verdict
    return f"{entry}/{case}" if entry and case else entry or outcome
