from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.knowledge_docs import COVERAGE, ROOT, documents
from tests.built_in import built_in_knowledge
from tests.yaml_files import read_yaml
from torchtriage.knowledge import BUILT_IN

TABLES: list[dict[str, Any]] = read_yaml(COVERAGE)


def test_generated_documents_are_current() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in documents().items() if path.read_text("utf-8") != text]
    assert not stale, "run: python -m scripts.knowledge_docs"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["name"])
def test_every_row_of_a_published_table_is_covered_by_entries_that_exist(table: dict[str, Any]) -> None:
    entries = built_in_knowledge().entries
    assert table["rows"]
    for row, names in table["rows"].items():
        assert names, row
        assert len(set(names)) == len(names), row
        assert set(names) <= set(entries), row


def test_every_table_says_where_it_comes_from() -> None:
    assert all(table["link"].startswith("https://") and table["reference"] and table["what"] for table in TABLES)


@pytest.mark.parametrize(
    ("name", "rows"), [("Philly", 22), ("Acme", 29), ("Llama 3", 18), ("FT-HSDP", 16), ("Minder", 10), ("Unicron", 16)]
)
def test_published_tables_are_complete(name: str, rows: int) -> None:
    assert len(next(table for table in TABLES if table["name"] == name)["rows"]) == rows


def test_the_schema_knows_every_key_that_entries_use() -> None:
    schema = json.loads((BUILT_IN / "schema.json").read_text("utf-8"))
    for path in BUILT_IN.glob("[a-z]*/*.yaml"):
        assert set(read_yaml(path)) <= set(schema["properties"]), path
