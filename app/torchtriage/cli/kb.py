"""`torchtriage kb`: checks the knowledge base, shows and searches entries, and starts new ones."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.cli import kb_new, kb_pack, kb_why
from torchtriage.cli.arguments import add_commands
from torchtriage.errors import BadInput, KnowledgeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from torchtriage.domain.entry import Entry, KnowledgeBase
    from torchtriage.domain.verdict import Answer

_NOTHING_FITS = {
    "en": "no entry fits; describe what the run does or does not do, or paste its error message",
    "zh": "没有合适的条目；请描述任务发生了什么，或粘贴报错信息",
}
_MAX_HITS = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "kb",
        help="search, show, check and extend the knowledge base",
        description="Search, show, check and extend the knowledge base.",
    )
    commands = add_commands(parser, "kb_command")
    check = commands.add_parser(
        "check",
        help="test every entry and case with its own examples",
        description="Test the knowledge base, including the folders of TRIAGE_KNOWLEDGE_DIRS: every entry and case "
        "must match its own examples and print the expected sentences. Prints one line per problem, and exits with "
        "status 1 if there are any.",
    )
    check.add_argument(
        "entries",
        metavar="ENTRY",
        nargs="*",
        help="test only these entries, and print the answers of their cases to their examples",
    )
    check.add_argument(
        "--accept", action="store_true", help="write the answers of the cases of ENTRY to their examples into `expect`"
    )
    check.add_argument("--unproved", action="store_true", help="list the signs that no example of their entry matches")
    check.add_argument(
        "--negative",
        metavar="PATH",
        action="append",
        type=Path,
        help="triage logs of runs that did not fail instead, and list those in which an entry, or one of ENTRY, names "
        "a failure; each file or folder inside a folder is one run",
    )
    show = commands.add_parser(
        "show",
        help="show one entry",
        description="Show one entry: its cases, causes, fixes, checks, prevention, signs and references.",
    )
    show.add_argument("entry", metavar="ENTRY", help="id of an entry, such as cuda.oom")
    search = commands.add_parser(
        "search",
        help="find entries by symptom, in English or Chinese",
        description="Search the entries by symptom, in English or Chinese. Prints score, id and title of the "
        "closest ones, best first.",
    )
    search.add_argument(
        "query", metavar="QUERY", nargs="+", help="words that describe the symptom, or part of the error message"
    )
    for command in (show, search):
        command.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    for command, function in ((check, _check), (show, _show), (search, _search)):
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=function)
    schema = commands.add_parser("schema", help="print the JSON Schema of an entry for editors")
    schema.set_defaults(run=_schema)
    kb_new.add_parser(commands)
    kb_why.add_parser(commands)
    kb_pack.add_parser(commands)


def _check(options: argparse.Namespace) -> int:
    from torchtriage.cli.start_engine import load_knowledge

    if options.accept and not options.entries:
        raise BadInput("--accept needs the ENTRY whose sentences you have read")
    knowledge = load_knowledge(fresh=True)
    known = {form.id: form for form in knowledge.forms} | knowledge.entries
    for name in options.entries:
        _entry(name, known)
    if options.negative:
        return _try_negative(options.negative, options.entries, options.json)
    return _prove(options, knowledge, known)


def _prove(options: argparse.Namespace, knowledge: KnowledgeBase, known: Mapping[str, Entry]) -> int:
    """Tests entries with their own examples."""
    from torchtriage.cli.start_engine import folders, load_knowledge
    from torchtriage.knowledge import checks
    from torchtriage.knowledge.cache import cache_folder

    report = checks.check(knowledge, folders(), cache_folder(), options.entries)
    if options.json:
        result = {name: getattr(report, name) for name in ("entries", "cases", "forms", "in_cases", "without_case")}
        result |= {"unproved": len(report.unproved), "problems": report.problems, "warnings": report.warnings}
        print(json.dumps(result, ensure_ascii=False))
        return 1 if report.problems else 0
    if options.entries:
        from torchtriage.cli.entry_report import answers_report

        print(answers_report(report.answers), end="")
    if options.accept:
        for name in options.entries:
            _accept(known[name], report.answers)
        report = checks.check(load_knowledge(fresh=True), folders(), cache_folder(), options.entries)
    for line in report.unproved if options.unproved else ():
        print(line)
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if report.problems:
        raise KnowledgeError(report.problems)
    forms = f" and {_count(report.forms, 'message form', 'message forms')}" if report.forms else ""
    cases = _count(report.cases, "case", "cases")
    print(f"{_count(report.entries, 'entry', 'entries')} and {cases}{forms}, no problems")
    signs = report.in_cases + report.without_case
    print(
        f"{_count(signs, 'sign', 'signs')}: {report.in_cases} in cases, {report.without_case} without a case; "
        f"{len(report.unproved)} matched by no example of their entry"
    )
    return 0


def _try_negative(paths: Sequence[Path], entries: Collection[str], as_json: bool) -> int:
    """Prints the runs in which an entry names a failure that is not there. Returns 1 if there are any or a log could
    not be read."""
    from torchtriage.cli.start_engine import start_engine
    from torchtriage.errors import UnreadableLog
    from torchtriage.knowledge.negative_logs import false_alarm, runs_in

    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise BadInput(f"--negative: {missing}: no such file or folder")
    engine, found, unread, runs = start_engine(), list[str](), list[str](), 0
    for run in runs_in(paths):
        runs += 1
        try:
            alarm = false_alarm(engine, run, entries)
        except UnreadableLog as error:
            unread.append(str(error))
            continue
        found += [alarm] if alarm else []
    if as_json:
        print(json.dumps({"runs": runs, "false_alarms": found, "unread": unread}, ensure_ascii=False))
    else:
        for line in (*found, *(f"not read: {reason}" for reason in unread)):
            print(line)
        print(f"{_count(runs, 'run', 'runs')}, {_count(len(found), 'false alarm', 'false alarms')}")
    return 1 if found or unread or not runs else 0


def _accept(entry: Entry, answers: Mapping[tuple[str, str], Answer]) -> None:
    """Writes the answers of the cases to their own examples into the entry's file. Raises BadInput if the file cannot
    be written."""
    from torchtriage.answer.templates import filled
    from torchtriage.cli.start_engine import folders
    from torchtriage.domain.entry import Text
    from torchtriage.knowledge.accept_expectations import accepted
    from torchtriage.knowledge.new_entry import file_of

    says = {}
    for case in entry.cases:
        answer = answers.get((entry.id, case.id))
        if answer and case.id in (answer.case, answer.form) and "TODO" not in case.says.en:
            own, chinese = (filled(case.says.in_(lang), answer.values) for lang in ("en", "zh"))
            says[case.id] = Text(own or "", chinese or own or "")
    file = file_of(entry.id, folders())
    if file is not None:
        try:
            file.write_text(accepted(file.read_text(encoding="utf-8"), says), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{file}: {error.strerror}") from error


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _entry(name: str, entries: dict[str, Entry]) -> Entry:
    """Returns the entry or form `name`. Raises NotFound, which lists similar ids."""
    if name not in entries:
        near = [other for other in entries if name.split(".")[-1] in other][:5]
        raise NotFound(f"no entry {name}" + (f"; similar: {', '.join(near)}" if near else ""))
    return entries[name]


def _show(options: argparse.Namespace) -> int:
    from torchtriage.cli.entry_report import entry_report
    from torchtriage.cli.start_engine import load_knowledge

    entry = _entry(options.entry, load_knowledge().entries)
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
    hits = load_index(knowledge, cache_folder()).search(" ".join(options.query), _MAX_HITS)
    titles = {hit.entry: knowledge.entries[hit.entry].title.in_(options.lang) for hit in hits}
    if options.json:
        found = [{"entry": hit.entry, "title": titles[hit.entry], "score": hit.score} for hit in hits]
        print(json.dumps(found, ensure_ascii=False))
        return 0
    width = max((len(hit.entry) for hit in hits), default=0)
    for hit in hits:
        print(f"{hit.score:.2f}  {hit.entry:{width}}  {titles[hit.entry]}")
    if not hits:
        print(_NOTHING_FITS[options.lang])
    return 0


def _schema(options: argparse.Namespace) -> int:
    from torchtriage.knowledge.schema import json_schema

    print(json_schema(), end="")
    return 0
