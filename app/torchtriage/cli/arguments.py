"""Parts of the command line that several commands share: limits on numbers, and commands that have commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Returns a parser of whole numbers from `low` to `high`. It raises ArgumentTypeError for any other text."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > len(str(high)) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from {low} to {high}")
        return int(text)

    return parse


def add_commands(parser: argparse.ArgumentParser, dest: str) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    """Returns the commands of a command. Called without one of them, it prints the list of them and exits with 2."""

    def show(_: argparse.Namespace) -> int:
        parser.print_help(sys.stderr)
        return 2

    parser.set_defaults(run=show)
    return parser.add_subparsers(dest=dest, metavar="COMMAND")
