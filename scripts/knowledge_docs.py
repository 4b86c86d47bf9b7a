"""Generates the documents made from the knowledge base: docs/knowledge.md, docs/coverage.md, docs/facts.md, and
knowledge_base/schema.json."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from torchtriage.answer.failure_facts.fact_names import ENGINE_FACTS, known_slots
from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.domain.fact import Fact
from torchtriage.facts.line_forms import LISTS, LineForms
from torchtriage.facts.versions import packages
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.folders import VOCABULARY
from torchtriage.knowledge.loader import load
from torchtriage.knowledge.schema import json_schema

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = ROOT / "docs" / "coverage.yaml"
_MADE = "<!-- Made by python -m scripts.knowledge_docs; edit {source}, not this file. -->"
_MAX_LENGTH = 110  # characters of an example
_KINDS = {"cause": "", "consequence": " · consequence", "advice": " · advice"}


def documents() -> dict[Path, str]:
    """Returns each file with its content. Raises KnowledgeError, and KeyError for a row with an unknown entry."""
    knowledge = load()
    tables = yaml.safe_load(COVERAGE.read_text(encoding="utf-8"))
    return {
        ROOT / "docs" / "knowledge.md": _index(knowledge),
        ROOT / "docs" / "coverage.md": _coverage(tables, knowledge.entries),
        ROOT / "docs" / "facts.md": _facts(knowledge),
        ROOT / "knowledge_base" / "schema.json": json_schema(),
    }


def _index(knowledge: KnowledgeBase) -> str:
    entries = sorted(knowledge.entries.values(), key=lambda entry: entry.id)
    areas = [(area, list(members)) for area, members in groupby(entries, key=lambda entry: entry.area)]
    cases = sum(len(entry.cases) for entry in entries)
    signs = sum(len(entry.signs) for entry in entries)
    lines = [
        "# What the knowledge base knows",
        _MADE.format(source="the entries in knowledge_base"),
        "",
        f"{len(entries)} entries in {len(areas)} areas, with {cases} cases and {signs} signs. `torchtriage kb check`",
        "proves each sign by an example. The page `/knowledge` and `torchtriage kb show ENTRY` show a whole entry;",
        "`torchtriage kb search` finds entries by symptom. The number",
        "after an entry is its number of cases. " + " · ".join(f"[{area}](#{area})" for area, _ in areas),
    ]
    for area, members in areas:
        lines += ["", f"## {area}", *(_line(entry) for entry in members)]
    return "\n".join(lines) + "\n"


def _line(entry: Entry) -> str:
    link = f"[{entry.id}](../knowledge_base/{entry.file})"
    cases = f" ({len(entry.cases)})" if entry.cases else ""
    return f"- {link}{_KINDS[entry.kind]}: {entry.title.en} · {entry.title.zh}{cases}"


def _coverage(tables: list[dict[str, Any]], entries: dict[str, Entry]) -> str:
    rows = sum(len(table["rows"]) for table in tables)
    lines = [
        "# Coverage of the published failure tables",
        _MADE.format(source="docs/coverage.yaml"),
        "",
        f"Published tables of why training runs fail, row by row, with the entries that cover each row: {rows} rows of",
        f"{len(tables)} tables. A row is covered if an entry says what happened, why, and what to do.",
    ]
    for table in tables:
        lines += ["", f"## {table['name']}", f"{table['what']}. [{table['reference']}]({table['link']})", ""]
        lines += ["| row | entries |", "|---|---|"]
        for row, names in table["rows"].items():
            links = (f"[{entries[name].id}](../knowledge_base/{entries[name].file})" for name in names)
            lines.append(f"| {row} | {', '.join(links)} |")
    return "\n".join(lines) + "\n"


_FACTS = """A fact is a value that the log states about this run: name, value, unit, the line that states it, and the
rank and attempt where they may differ. A verdict lists all of them in `facts`. Each name can be a slot in the sentences
and steps of cases, and a condition in `when` ([entries.md](entries.md)). `kb check` rejects a slot that is no fact, no
capture of the entry and no group of the case.

`knowledge_base/_vocabulary/line-facts-*.yaml` lists the facts of single lines: a regex whose groups are the facts, the
unit, an example, and the meaning of each fact. A new one needs no Python. `tells_of` says which lines count:

- `run`: any line; those of the failure first, then the nearest above it of the same rank
- `moment`: only lines above the failure, of the same attempt
- `process`: only lines of the rank that failed

Lines are read only if the run failed. The scan keeps the lines that a pattern hits, up to a limit, and the last
progress lines of each rank."""


def _facts(knowledge: KnowledgeBase) -> str:
    names = known_slots(knowledge.vocabulary)
    lines = ["# Facts", _MADE.format(source="answer/failure_facts/fact_names.py and the vocabulary"), "", _FACTS, ""]
    lines += [
        f"{len(names)} names, including the versions of {len(packages(knowledge.vocabulary))} packages.",
        "",
        "## The failure and its run",
    ]
    lines += ["| fact | meaning | unit | example |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {what} | {unit or ''} | {_code(example)} |"
        for name, (what, unit, example) in ENGINE_FACTS.items()
    ]
    versions = ", ".join(f"`{name.replace('-', '_')}_version`" for name in packages(knowledge.vocabulary))
    lines += ["", f"Versions that lines print, or that a container image is known to contain: {versions}."]
    forms = LineForms(knowledge.vocabulary)
    shown = _shown(forms)
    for one in knowledge.vocabulary.beginning(LISTS):
        title = one.name.removeprefix(LISTS)
        lines += ["", f"## {title.capitalize()}", " ".join(one.purpose.split()), ""]
        lines += ["| fact | meaning | value | example line |", "|---|---|---|---|"]
        for name, what in one.facts:
            value, example = shown.get((one.name, name), ("", ""))
            lines.append(f"| `{name}` | {what} | {_code(value)} | {_code(example)} |")
    return "\n".join(lines) + "\n"


def _shown(forms: LineForms) -> dict[tuple[str, str], tuple[str, str]]:
    """Returns, for each list and fact, the value in the first example as the engine reads it, and the example."""
    shown: dict[tuple[str, str], tuple[str, str]] = {}
    for path in sorted(BUILT_IN.glob(f"{VOCABULARY}/{LISTS}*.yaml")):
        for pattern in yaml.safe_load(path.read_bytes())["patterns"]:
            for example in pattern["examples"]:
                for value in forms.read_by(pattern["regex"], example):
                    text = Fact(value.name, value.value, value.unit).text
                    shown.setdefault((path.stem, value.name), (text, example.strip()))
    return shown


def _code(text: str) -> str:
    """Returns a text as code in a table cell."""
    short = text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
    quote = "``" if "`" in short else "`"
    escaped = short.replace("|", "\\|")
    return f"{quote}{escaped}{quote}" if short else ""


def main() -> None:
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
