"""Writes what is made from the knowledge base: docs/knowledge.md, docs/coverage.md, knowledge_base/schema.json."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.knowledge.loader import load
from torchtriage.knowledge.schema import json_schema

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = ROOT / "docs" / "coverage.yaml"
_MADE = "<!-- Made by python -m scripts.knowledge_docs; edit {source}, not this file. -->"
_KINDS = {"cause": "", "consequence": " · consequence", "advice": " · advice"}


def documents() -> dict[Path, str]:
    """-> each file and what must stand in it. Raises KnowledgeError; KeyError for a row that names no entry."""
    knowledge = load()
    tables = yaml.safe_load(COVERAGE.read_text(encoding="utf-8"))
    return {
        ROOT / "docs" / "knowledge.md": _index(knowledge),
        ROOT / "docs" / "coverage.md": _coverage(tables, knowledge.entries),
        ROOT / "knowledge_base" / "schema.json": json_schema(),
    }


def _index(knowledge: KnowledgeBase) -> str:
    entries = sorted(knowledge.entries.values(), key=lambda entry: entry.id)
    areas = [(area, list(members)) for area, members in groupby(entries, key=lambda entry: entry.area)]
    lines = [
        "# What the knowledge base knows",
        _MADE.format(source="the entries in knowledge_base"),
        "",
        f"{len(entries)} entries in {len(areas)} areas. The page `/knowledge` and `torchtriage kb show ENTRY` show an",
        "entry whole; `torchtriage kb search` finds one by what happens. "
        + " · ".join(f"[{area}](#{area})" for area, _ in areas),
    ]
    for area, members in areas:
        lines += ["", f"## {area}", *(_line(entry) for entry in members)]
    return "\n".join(lines) + "\n"


def _line(entry: Entry) -> str:
    link = f"[{entry.id}](../knowledge_base/{entry.file})"
    return f"- {link}{_KINDS[entry.kind]}: {entry.title.en} · {entry.title.zh}"


def _coverage(tables: list[dict[str, Any]], entries: dict[str, Entry]) -> str:
    rows = sum(len(table["rows"]) for table in tables)
    lines = [
        "# Coverage of the published failure tables",
        _MADE.format(source="docs/coverage.yaml"),
        "",
        f"Why training runs fail, as others have published it, row by row, with the entries that cover it: {rows}",
        f"rows of {len(tables)} tables. A row is covered where an entry tells what happened, why, and what to do now.",
    ]
    for table in tables:
        lines += ["", f"## {table['name']}", f"{table['what']}. [{table['reference']}]({table['link']})", ""]
        lines += ["| row | entries |", "|---|---|"]
        for row, names in table["rows"].items():
            links = (f"[{entries[name].id}](../knowledge_base/{entries[name].file})" for name in names)
            lines.append(f"| {row} | {', '.join(links)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
