"""The words of the pages: a key in, the sentence in English or Chinese out. Each page has a file in translations/."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from torchtriage.domain.entry import Language, Text


@cache
def catalogue() -> dict[str, Text]:
    """-> every key with its words in both languages."""
    files = sorted((Path(__file__).parent / "translations").glob("*.toml"))
    return {key: Text(**texts) for file in files for key, texts in tomllib.loads(file.read_text("utf-8")).items()}


def word(lang: Language, key: str, **values: object) -> str:
    """-> the words of `key`, with `{names}` filled in."""
    return catalogue()[key].in_(lang).format(**values)


def area_name(lang: Language, area: str) -> str:
    """-> its name; the id itself for an area that only somebody's own entries have."""
    found = catalogue().get(f"area_{area}")
    return found.in_(lang) if found else area
