"""Which names only one of two lists in a message has, in the forms in which datasets prints them."""

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

ROWS = "id: string\nreference: list<item: string>\n  child 0, item: string\ninput: string"


@pytest.mark.parametrize(
    ("second", "extra", "lacking"),
    [
        ("{'id': Value('string'), 'input': Value('string')}", "reference", None),
        ("{'id': Value('string'), 'meta': {'reference': Value('string')}}", "reference, input", "meta"),
        ("{'input': Value('string'), 'reference': [Value('string')], 'id': Value('int64')}", None, None),
        ("no list of names", None, None),
        ("struct<id: string, input: struct<reference: string>, meta: int64>", "reference", "meta"),
    ],
)
def test_names_that_only_one_list_has(engine: Engine, second: str, extra: str | None, lacking: str | None) -> None:
    raised = f"Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in main\n    f()\nValueError: Couldn't cast\n{ROWS}\nto\n{second}\nbecause column names don't match\n"
    found = {fact.name: fact.value for fact in engine.triage(from_bytes(raised.encode())).facts}
    assert (found.get("extra_names"), found.get("lacking_names")) == (extra, lacking)


def test_metadata_below_the_columns_is_no_column(engine: Engine) -> None:
    rows = "id: string\n-- schema metadata --\npandas: '{\"index_columns\": []}'"
    raised = f"Traceback (most recent call last):\n  File \"/job/a.py\", line 3, in main\n    f()\nValueError: Couldn't cast\n{rows}\nto\n{{'id': Value('string'), 'text': Value('string')}}\nbecause column names don't match\n"
    found = {fact.name: fact.value for fact in engine.triage(from_bytes(raised.encode())).facts}
    assert (found.get("extra_names"), found.get("lacking_names")) == (None, "text")
