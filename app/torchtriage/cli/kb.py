"""`torchtriage kb`: check the knowledge base, read it, search it by symptom, and start new entries."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from torchtriage.cli import kb_new, kb_why
from torchtriage.errors import KnowledgeError, NotFound

_MOST_HITS = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "kb",
        help="search, show, check and extend the knowledge base",
        description="Search, show, check and extend the knowledge base.",
    )
    commands = parser.add_subparsers(dest="kb_command", metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="check that every entry matches its own examples")
    show = commands.add_parser("show", help="show one entry")
    show.add_argument("entry", metavar="ENTRY", help="id of an entry, such as cuda.oom")
    search = commands.add_parser("search", help="find entries by symptom, in English or Chinese")
    search.add_argument("query", metavar="QUERY", nargs="+", help="words that describe what happens")
    for command in (show, search):
        command.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    for command, function in ((check, _check), (show, _show), (search, _search)):
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=function)
    schema = commands.add_parser("schema", help="print the JSON Schema of an entry for editors")
    schema.set_defaults(run=_schema)
    kb_new.add_parser(commands)
    kb_why.add_parser(commands)


def _check(options: argparse.Namespace) -> int:
    from torchtriage.cli.start_engine import folders
    from torchtriage.knowledge import checks, loader

    knowledge = loader.load(folders())
    problems = checks.problems(knowledge, folders())
    if options.json:
        print(json.dumps({"entries": len(knowledge.entries), "problems": problems}, ensure_ascii=False))
        return 1 if problems else 0
    if problems:
        raise KnowledgeError(problems)
    print(f"{len(knowledge.entries)} entries, no problems")
    return 0


def _show(options: argparse.Namespace) -> int:
    from torchtriage.cli.entry_report import entry_report
    from torchtriage.cli.start_engine import load_knowledge

    entries = load_knowledge().entries
    if options.entry not in entries:
        near = [name for name in entries if options.entry.split(".")[-1] in name][:5]
        raise NotFound(f"no entry {options.entry}" + (f"; near: {', '.join(near)}" if near else ""))
    entry = entries[options.entry]
    print(
        json.dumps(asdict(entry), default=sorted, ensure_ascii=False)
        if options.json
        else entry_report(entry, options.lang)
    )
    return 0


def _search(options: argparse.Namespace) -> int:
    from torchtriage.cli.start_engine import load_knowledge
    from torchtriage.knowledge.cache import cache_folder, load_index

    knowledge = load_knowledge()
    hits = load_index(knowledge, cache_folder()).search(" ".join(options.query), _MOST_HITS)
    titles = {hit.entry: knowledge.entries[hit.entry].title.in_(options.lang) for hit in hits}
    if options.json:
        found = [{"entry": hit.entry, "title": titles[hit.entry], "score": hit.score} for hit in hits]
        print(json.dumps(found, ensure_ascii=False))
        return 0
    width = max((len(hit.entry) for hit in hits), default=0)
    for hit in hits:
        print(f"{hit.score:.2f}  {hit.entry:{width}}  {titles[hit.entry]}")
    if not hits:
        print("没有找到，换个说法试试" if options.lang == "zh" else "nothing found; try other words")
    return 0


def _schema(options: argparse.Namespace) -> int:
    from torchtriage.knowledge.schema import json_schema

    print(json_schema(), end="")
    return 0
