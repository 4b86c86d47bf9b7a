"""`torchtriage compare`: shows what changed between two runs, usually the last good one and the failed one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.cli.progress import Progress, add_quiet, counted, plain_size
from torchtriage.cli.start_engine import start_engine

if TYPE_CHECKING:
    from torchtriage.answer.run_comparison import ComparedRun
    from torchtriage.domain.run_comparison import RunComparison
    from torchtriage.engine import Engine


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="show what changed between two runs",
        description="Show what changed from the run of log BEFORE to that of log NOW: versions, hosts, options and "
        "other settings that the logs print, the time of a step, and lines that are new. Needs no server.",
    )
    parser.add_argument("before", metavar="BEFORE", help="the log of the earlier run, such as the last one that worked")
    parser.add_argument("now", metavar="NOW", help="the log of the later run, such as the one that failed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the differences. Raises UnreadableLog or StorageUnavailable."""
    from torchtriage.answer.run_comparison import compared

    engine = start_engine()
    before, now = (_read(engine, path, options.quiet) for path in (options.before, options.now))
    comparison = compared(before, now)
    if options.json:
        print(json.dumps(comparison.to_json(), ensure_ascii=False))
    else:
        print("\n".join(report(comparison, options.lang == "zh")))
    return 0


def report(comparison: RunComparison, chinese: bool) -> list[str]:
    """Returns the comparison as lines for a terminal."""
    from torchtriage.answer.comparison_wording import NAMES, WORDS

    words = {name: pair[chinese] for name, pair in WORDS.items()}
    lines = [] if comparison.changes else [words["nothing"]]
    width = max((len(change.name) for change in comparison.changes), default=0)
    kind = None
    for change in comparison.changes:
        if change.kind is not kind:
            kind = change.kind
            lines.append(words[kind])
        name = NAMES.get(change.name, (change.name, change.name))[chinese]
        at = f"  ({change.file + ':' if change.file else ''}{change.line})" if change.line else ""
        lines.append(f"  {name:{width}}  {change.before or words['none']} → {change.now or words['none']}{at}")
    if comparison.new_lines:
        lines.append(words["new_lines"])
        lines += [f"  {new.file + ':' if new.file else ''}{new.line}: {new.text[:200]}" for new in comparison.new_lines]
    if comparison.same:
        lines.append(words["same"].format(same=comparison.same))
    return [*lines, words["partly"]] if comparison.partly else lines


def _read(engine: Engine, path: str, quiet: bool) -> ComparedRun:
    from torchtriage.answer.run_comparison import ComparedRun, run_lines
    from torchtriage.reading.run_ends import run_ends
    from torchtriage.reading.sources import open_path

    log = open_path(Path(path))
    with Progress(quiet) as progress:
        verdict = engine.triage(counted(log, progress, plain_size(Path(path), log)))
    lines, partly = run_ends(log)
    return ComparedRun(run_lines(lines, engine.knowledge.vocabulary, partly), verdict)
