"""`torchtriage completion`: prints a script that lets a shell complete commands, options and file names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

_SHELLS = ("bash", "zsh", "fish")
_FILES = {"PATH", "LOG", "FILE"}  # metavars of arguments that are files or folders
_EXAMPLES = """\
examples, in the startup file of the shell:
  bash  eval "$(torchtriage completion bash)"
  zsh   eval "$(torchtriage completion zsh)"     after compinit
  fish  torchtriage completion fish | source
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print a completion script for bash, zsh or fish",
        description="Print a script that lets a shell complete commands, options and file names.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell to print the script for")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the script for the chosen shell and returns 0."""
    import shtab

    from torchtriage.cli.main import COMMANDS, parser

    whole = parser(COMMANDS)
    for action in _actions(whole):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # how shtab is told
    print(shtab.complete(whole, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yields every argument and option, including those of subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _actions(child)
        else:
            yield action
