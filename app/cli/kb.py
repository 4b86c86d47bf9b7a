"""`torchtriage kb`: check the knowledge base, show an entry."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from app.errors import KnowledgeError, NotFound


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("kb", help="check and read the knowledge base")
    commands = parser.add_subparsers(dest="kb_command", metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="prove every entry by its own examples")
    show = commands.add_parser("show", help="show one entry")
    show.add_argument("entry", metavar="ENTRY")
    show.add_argument("--lang", choices=("en", "zh"), default="en")
    for command, function in ((check, _check), (show, _show)):
        command.add_argument("--json", action="store_true")
        command.set_defaults(run=function)


def _check(options: argparse.Namespace) -> int:
    from app.cli.triage import folders
    from app.knowledge import checks, loader

    knowledge = loader.load(folders())
    problems = checks.problems(knowledge)
    if options.json:
        print(json.dumps({"entries": len(knowledge.entries), "problems": problems}, ensure_ascii=False))
        return 1 if problems else 0
    if problems:
        raise KnowledgeError(problems)
    print(f"{len(knowledge.entries)} entries, no problems")
    return 0


def _show(options: argparse.Namespace) -> int:
    from app.cli.entry_report import entry_report
    from app.cli.triage import folders
    from app.knowledge import loader

    entries = loader.load(folders()).entries
    if options.entry not in entries:
        near = [name for name in entries if options.entry.split(".")[-1] in name][:5]
        raise NotFound(f"no entry {options.entry}" + (f"; near: {', '.join(near)}" if near else ""))
    entry = entries[options.entry]
    print(json.dumps(asdict(entry), ensure_ascii=False) if options.json else entry_report(entry, options.lang))
    return 0
