"""`torchtriage kb new`: writes a new case into the file of its entry. With --from, fills it in from a log."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.errors import BadInput

if TYPE_CHECKING:
    from torchtriage.domain.verdict import Verdict
    from torchtriage.knowledge.new_entry import Sample


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    new = subparsers.add_parser(
        "new",
        help="create a case, in a new or an existing entry",
        description="Create a case, in a new or an existing entry, in the last folder of TRIAGE_KNOWLEDGE_DIRS. "
        "Prints the file and the line to edit: replace each TODO there, then run `torchtriage kb check ENTRY`.",
    )
    new.add_argument("entry", metavar="ENTRY", help="id of a new or an existing entry: AREA.NAME")
    new.add_argument("--case", metavar="ID", help="id of the case, such as shard-is-empty (derived from LOG)")
    new.add_argument(
        "--from", dest="log", metavar="LOG", help="use the failure in this log for sign, facts and example"
    )
    new.add_argument("--line", type=int, metavar="N", help="use this line of LOG instead of the failure")
    new.add_argument("--json", action="store_true", help="print JSON")
    new.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the case into the last knowledge folder. Raises BadInput for an invalid name, a case that exists, or a log
    that cannot be read."""
    from torchtriage.cli.start_engine import folders_of_files
    from torchtriage.knowledge import new_entry

    if options.line is not None and not options.log:
        raise BadInput("--line needs --from LOG")
    old = new_entry.file_of(options.entry, folders_of_files())
    if old is None or not options.case:
        path = new_entry.path_of(options.entry, folders_of_files())  # raises BadInput if the entry exists
    else:
        path = folders_of_files()[-1].joinpath(*old.parts[-2:])
    sample = _sample(options.log, options.line, options.entry) if options.log else None
    case = new_entry.checked_case(options.case or (new_entry.case_name(sample.message) if sample else "some-case"))
    if old is not None:
        text = new_entry.with_case(old.read_text(encoding="utf-8"), case, new_entry.new_case(case, sample))
    else:
        text = new_entry.new_entry(options.entry, case, sample)
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}; set TRIAGE_KNOWLEDGE_DIRS to a folder that you can write to"
        ) from error
    line = next(number for number, found in enumerate(text.splitlines(), 1) if found.strip() == f"- id: {case}")
    if options.json:
        print(json.dumps({"entry": options.entry, "case": case, "file": str(path), "line": line}, ensure_ascii=False))
        return 0
    if old is not None and old != path:
        print(f"{path} is a copy of the built-in entry and replaces it")
    print(f"{path}:{line}\nReplace each TODO, then run: torchtriage kb check {options.entry}")
    return 0


def _sample(log: str, number: int | None, entry: str) -> Sample:
    """Returns the failure in a log, or its line `number` if one is given."""
    from torchtriage.cli.start_engine import start_engine
    from torchtriage.knowledge.example_extraction import extract_example
    from torchtriage.knowledge.new_entry import Sample, failure
    from torchtriage.reading.sources import open_path

    run = open_path(Path(log))
    verdict = start_engine().triage(run)
    root = verdict.root_cause
    facts = {fact.name: fact.text for fact in verdict.facts}
    if number is not None:
        text, example = extract_example(open_path(Path(log)), None, number)
        raised = root.exception if root else None
        inside = raised is not None and text in f"{raised.type}: {raised.message}"
        return Sample(text, "exception" if inside else "line", example, facts)
    message = failure(verdict)
    if root is not None and root.entry:
        case = f", case {verdict.answer.case}" if verdict.answer and verdict.answer.case else ""
        other = (
            ""
            if root.entry == entry
            else f"; to add a case to it: torchtriage kb new {root.entry} --case ID --from {log}"
        )
        print(f"torchtriage: {log} is already explained by {root.entry}{case}{other}", file=sys.stderr)
    file, line = _place(verdict, message)
    _, example = extract_example(open_path(Path(log)), file, line) if line else ("", message)
    return Sample(message, "exception" if root and root.exception else "line", example, facts)


def _place(verdict: Verdict, message: str) -> tuple[str | None, int | None]:
    """Returns the file and the number of the line that contains the start of `message`."""
    evidence = verdict.root_cause.evidence if verdict.root_cause else ()
    first = message.splitlines()[0]
    shown = next((each for each in evidence if first in each.text), evidence[0] if evidence else None)
    return (shown.file, shown.line) if shown else (None, None)
