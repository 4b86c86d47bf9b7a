"""`torchtriage`: parses the arguments and calls the command. An error becomes one line on standard error and an exit
status."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence

from torchtriage import __version__
from torchtriage.errors import BadInput, KnowledgeError, NotFound, SettingError, TriageError

# The commands in the order in which the help lists them. The value is the extra that the command needs; "" means none.
COMMANDS = {
    "triage": "",
    "triage-archive": "",
    "brief": "",
    "compare": "",
    "decide": "",
    "run": "",
    "watch": "",
    "kb": "",
    "completion": "",
    "serve": "server",
    "worker": "server",
    "db": "server",
    "token": "server",
    "changes": "server",
    "retriage": "server",
    "demo": "server",
    "explain": "server",
    "mcp": "mcp",
    "watch-kubernetes": "kubernetes",
}
_WRONG_INPUT = (BadInput, NotFound, SettingError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status: 0 if it succeeded, 1 if it failed, 2 for wrong usage, unreadable
    input or a missing library, 130 after Ctrl-C. Some commands return statuses of their own."""
    words = sys.argv[1:] if arguments is None else arguments
    named = [name for name in COMMANDS if words[:1] == [name]]  # only `--help` needs the parsers of all commands
    options = parser(named or COMMANDS).parse_args(words)
    try:
        if COMMANDS[options.command]:
            from torchtriage.extras import require

            require(COMMANDS[options.command], f"`{options.command}`")
        status: int = options.run(options)
    except KnowledgeError as error:
        print("\n".join(error.problems), file=sys.stderr)
        return 1
    except TriageError as error:
        print(f"torchtriage: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, _WRONG_INPUT) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    return status


def parser(names: Iterable[str]) -> argparse.ArgumentParser:
    """Returns the parser of the named commands. Imports the module of each, so fewer names mean a faster start."""
    made = argparse.ArgumentParser(
        prog="torchtriage",
        description="Find the root cause of a failed distributed training run in its log, and what to do about it.",
        epilog="`torchtriage COMMAND --help` explains a command.",
    )
    made.add_argument("--version", action="version", version=f"torchtriage {__version__}")
    subparsers = made.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        importlib.import_module(f"torchtriage.cli.{name.replace('-', '_')}").add_parser(subparsers)
    return made


if __name__ == "__main__":
    sys.exit(main())
