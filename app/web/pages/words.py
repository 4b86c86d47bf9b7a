"""The words of the pages: a key in, the sentence in English or Chinese out. They stand in words.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from app.domain.entry import Language, Text


@cache
def catalogue() -> dict[str, Text]:
    """-> every key with its words in both languages."""
    content = tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))
    return {key: Text(**texts) for key, texts in content.items()}


def word(lang: Language, key: str, **values: object) -> str:
    """-> the words of `key`, with `{names}` filled in."""
    return catalogue()[key].in_(lang).format(**values)
