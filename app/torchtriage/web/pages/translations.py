"""The texts of the pages in English and Chinese, by key. Each page has a file in translations/. The
labels of a verdict come from `answer.labels`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from torchtriage.answer.labels import LABELS
from torchtriage.domain.entry import Language, Text


@cache
def catalogue() -> dict[str, Text]:
    """Returns every key with its text in both languages."""
    files = sorted((Path(__file__).parent / "translations").glob("*.toml"))
    texts_of_pages = {
        key: Text(**texts) for file in files for key, texts in tomllib.loads(file.read_text("utf-8")).items()
    }
    return {**texts_of_pages, **LABELS}


def word(lang: Language, key: str, **values: object) -> str:
    """Returns the text of `key`, with its `{names}` filled in."""
    return catalogue()[key].in_(lang).format(**values)


def area_name(lang: Language, area: str) -> str:
    """Returns the name of an area, or its id if it exists only in the user's own entries."""
    found = catalogue().get(f"area_{area}")
    return found.in_(lang) if found else area
