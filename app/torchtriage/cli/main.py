"""`torchtriage`: parses arguments and calls the command; errors become one line and an exit status."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from torchtriage import __version__
from torchtriage.errors import BadInput, KnowledgeError, NotFound, SettingError, TriageError

COMMANDS = (
    "triage", "triage-archive", "serve", "worker", "kb", "db", "token", "changes", "retriage", "mcp", "demo",
    "watch-kubernetes",
)  # fmt: skip
_WRONG_INPUT = (BadInput, NotFound, SettingError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. -> 0 done, 1 failed, 2 wrong usage or unreadable input."""
    parser = argparse.ArgumentParser(
        prog="torchtriage", description="Finds what failed first in a distributed training log, and says what to do."
    )
    parser.add_argument("--version", action="version", version=f"torchtriage {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    words = sys.argv[1:] if arguments is None else arguments
    for name in set(words[:1]).intersection(COMMANDS) or COMMANDS:  # Only a question for help needs them all.
        importlib.import_module(f"torchtriage.cli.{name.replace('-', '_')}").add_parser(subparsers)
    options = parser.parse_args(arguments)
    try:
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


if __name__ == "__main__":
    sys.exit(main())
