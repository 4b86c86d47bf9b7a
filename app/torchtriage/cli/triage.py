"""`torchtriage triage`: logs in, verdicts out, with no server and no database."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from torchtriage.errors import BadInput
from torchtriage.knowledge import BUILT_IN

_STATUS = {"healthy": 0, "unexplained": 12}
UNREDACTED = "torchtriage: WARNING: --no-redact: what follows may hold passwords, tokens and keys that the log holds"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("triage", help="say what failed in a log, and what to do")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="a log, .gz, .zst, .tar.gz, .zip or folder; - is standard input"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line and per PATH")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of causes and fixes")
    parser.add_argument("--exit-code", action="store_true",
                        help="0 healthy, 10 a retry can help, 11 fix first, 12 unexplained")  # fmt: skip
    parser.add_argument("--no-redact", action="store_true", help="leave secrets in what is printed")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Triages each PATH in turn; one that can't be read is told on standard error, and the others are still done."""
    from torchtriage.cli.verdict_report import report
    from torchtriage.engine import Engine
    from torchtriage.knowledge.cache import cache_folder, load
    from torchtriage.reading.sources import open_path, open_stdin

    paths = options.paths or (["-"] if sys.stdin is None or not sys.stdin.isatty() else [])
    if not paths:
        raise BadInput("no PATH given and standard input is a terminal")
    engine = Engine(load(folders(), cache_folder()), cache_folder())
    if options.no_redact:
        print(UNREDACTED, file=sys.stderr)
    status = 0
    for path in paths:
        try:
            log = open_stdin() if path == "-" else open_path(Path(path))
            verdict = engine.triage(log, options.lang, redacting=not options.no_redact)
        except BadInput as error:
            print(f"torchtriage: {error.message}", file=sys.stderr)
            status = 2
            continue
        if options.json:
            print(json.dumps(verdict.as_dict(), ensure_ascii=False), flush=True)
        else:
            print(report(verdict, options.lang, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
        if options.exit_code and status != 2:
            explained = 10 if verdict.action.retry in ("yes", "once") else 11
            status = max(status, _STATUS.get(verdict.outcome, explained))
    return status


def folders() -> list[Path]:
    """-> the knowledge base that is shipped, then the folders of TRIAGE_KNOWLEDGE_DIRS."""
    own = os.environ.get("TRIAGE_KNOWLEDGE_DIRS", "")
    return [BUILT_IN, *(Path(folder) for folder in own.split(os.pathsep) if folder)]
