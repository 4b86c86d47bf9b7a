"""`torchtriage brief`: summarizes a log that is too long to read, with its evidence, in a given number of tokens."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.answer.brief.token_count import MAX_TOKENS, MIN_TOKENS, TOKENS
from torchtriage.cli.arguments import whole_number
from torchtriage.cli.progress import Progress, add_quiet, counted, plain_size
from torchtriage.cli.start_engine import start_engine
from torchtriage.errors import BadInput

if TYPE_CHECKING:
    from torchtriage.answer.brief.brief import Brief
    from torchtriage.domain.entry import Language
    from torchtriage.domain.verdict import Verdict
    from torchtriage.engine import Engine

TOKEN_LIMIT = whole_number(MIN_TOKENS, MAX_TOKENS)  # parses --tokens


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "brief",
        help="summarize a log with its evidence, for people and language models",
        description="Print the verdict on each log with the facts and lines behind it, as Markdown of at most --tokens "
        "tokens, whatever the size of the log. Secrets are removed. Needs no server and no model.",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="LOG",
        help="a log, a folder of logs, or a .gz, .zst, .tar.gz or .zip file; - reads standard input (default)",
    )
    parser.add_argument(
        "--tokens",
        type=TOKEN_LIMIT,
        default=TOKENS,
        metavar="N",
        help=f"maximum number of tokens of each brief ({TOKENS})",
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints a brief of each LOG and returns the exit status. A LOG that cannot be read is reported on standard error;
    the others still follow."""
    paths = options.paths or (["-"] if sys.stdin is None or not sys.stdin.isatty() else [])
    if not paths:
        raise BadInput("no LOG given and standard input is a terminal")
    engine = start_engine()
    status = 0
    for number, path in enumerate(paths):
        try:
            _, made = brief_of(engine, path, options.lang, options.tokens, options.quiet)
        except BadInput as error:
            print(f"torchtriage: {error.message}", file=sys.stderr)
            status = 2
            continue
        print("\n" * bool(number) + made.text, end="", flush=True)
    return status


def brief_of(
    engine: Engine, path: str, lang: Language, tokens: int = TOKENS, quiet: bool = True
) -> tuple[Verdict, Brief]:
    """Returns the verdict on a log and its brief. Raises UnreadableLog or StorageUnavailable."""
    from torchtriage.answer.brief.brief import brief, lines_needed
    from torchtriage.reading.reread_lines import reread
    from torchtriage.reading.sources import kept_stdin, open_path

    opened = kept_stdin() if path == "-" else nullcontext(open_path(Path(path)))
    with opened as log:
        with Progress(quiet) as progress:
            size = None if path == "-" else plain_size(Path(path), log)
            verdict = engine.triage(counted(log, progress, size), lang)
        return verdict, brief(verdict, reread(log, lines_needed(verdict)), lang, tokens)
