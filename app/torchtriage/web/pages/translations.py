"""The texts of the pages in English and Chinese, by key. Each page has a file in translations/."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from torchtriage.domain.entry import Language, Text


@cache
def catalogue() -> dict[str, Text]:
    """Returns every key with its text in both languages."""
    files = sorted((Path(__file__).parent / "translations").glob("*.toml"))
    return {key: Text(**texts) for file in files for key, texts in tomllib.loads(file.read_text("utf-8")).items()}


def word(lang: Language, key: str, **values: object) -> str:
    """Returns the text of `key`, with its `{names}` filled in."""
    return catalogue()[key].in_(lang).format(**values)


def area_name(lang: Language, area: str) -> str:
    """Returns the name of an area, or its id if it exists only in the user's own entries."""
    found = catalogue().get(f"area_{area}")
    return found.in_(lang) if found else area
