"""`torchtriage triage`: prints a verdict for each log. Needs no server and no database."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.cli.progress import Progress, add_quiet, counted, plain_size
from torchtriage.cli.start_engine import start_engine
from torchtriage.errors import BadInput

if TYPE_CHECKING:
    from torchtriage.domain.trace import Trace
    from torchtriage.domain.verdict import Verdict
    from torchtriage.reading.sources import Run

_STATUS = {"healthy": 0, "unexplained": 12, "inconclusive": 13}
UNREDACTED = "torchtriage: WARNING: --no-redact: the output may contain passwords, tokens and keys from the log"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "triage",
        help="find the root cause in a log",
        description="Find the root cause in each log: what failed, where, why and what to do. Needs no server.",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a log, a folder of logs, or a .gz, .zst, .tar.gz or .zip file; - reads standard input (default)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object per PATH, each on one line")
    how.add_argument(
        "--all",
        action="store_true",
        dest="whole",
        help="also print all causes, fixes, checks, prevention, reasons and facts",
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 0 if healthy, 10 if a retry can help, 11 if a fix is needed first, 12 if unexplained, "
        "13 if the log shows neither a failure nor a successful end",
    )
    parser.add_argument("--no-redact", action="store_true", help="print passwords and tokens as they are in the log")
    parser.add_argument(
        "--trace", action="store_true", help="print on standard error what each step returned and how long it took"
    )
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the verdict on each PATH and returns the exit status. A PATH that cannot be read is reported on standard
    error; the others are still triaged."""
    from torchtriage.domain.trace import Trace

    paths = options.paths or (["-"] if sys.stdin is None or not sys.stdin.isatty() else [])
    if not paths:
        raise BadInput("no PATH given and standard input is a terminal")
    engine = start_engine()
    if options.no_redact:
        print(UNREDACTED, file=sys.stderr)
    status = 0
    for path in paths:
        try:
            trace = Trace(time.perf_counter) if options.trace else None
            with Progress(options.quiet) as progress:
                log = opened(path, progress)
                verdict = engine.triage(log, options.lang, redacting=not options.no_redact, trace=trace)
        except BadInput as error:
            print(f"torchtriage: {error.message}", file=sys.stderr)
            status = 2
            continue
        if trace is not None:
            print("\n".join(trace_lines(trace)), file=sys.stderr)
        _print(verdict, options)
        if options.exit_code and status != 2:
            explained = 10 if verdict.action.retry in ("yes", "once") else 11
            status = max(status, _STATUS.get(verdict.outcome, explained))
    return status


def trace_lines(trace: Trace) -> Iterator[str]:
    """Yields a table with one line per step: name, milliseconds, input and output. Sample lines of the log follow each
    step; secrets in them are redacted."""
    from torchtriage.reading.redaction.encoded_secrets import redact_encoded

    took = ""
    for step in trace.steps:
        yield f"{step.name:18}{step.seconds * 1000:9.1f} ms  {took:32} -> {step.gave}"
        yield from ("    " + redact_encoded(sample).partition("\n")[0] for sample in step.samples)
        took = step.gave


def opened(path: str, progress: Progress) -> Run:
    """Returns the run at `path`; `-` is standard input. Reading it updates the progress line. Raises UnreadableLog."""
    from torchtriage.reading.sources import open_path, open_stdin

    if path == "-":
        return counted(open_stdin(), progress, None)
    run = open_path(Path(path))
    return counted(run, progress, plain_size(Path(path), run))


def _print(verdict: Verdict, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(verdict.as_dict(), ensure_ascii=False), flush=True)
        return
    from torchtriage.cli.verdict_report import WIDTH, report

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH
    print(report(verdict, options.lang, terminal and "NO_COLOR" not in os.environ, width, options.whole))
