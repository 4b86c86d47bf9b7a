"""Splits a text into words for the search: English words and their stems, parts of names, single Chinese characters."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from torchtriage.lazy_regex import lazy_regex

_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT = lazy_regex(rf"[{_CJK}]|(?<![^\s(:=])-\d+\b|[^\W_{_CJK}]+")
_PARTS = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDINGS = ("ing", "ed", "es", "s", "ly")
MAX_LENGTH = 20_000  # characters of a text that are read


def units(text: str) -> list[str]:
    """Returns the words in lower case and the single Chinese characters of a text, in order. For camelCase names,
    returns the whole name and its parts."""
    found: list[str] = []
    for unit in _UNIT.findall(unicodedata.normalize("NFKC", text[:MAX_LENGTH])):
        found += _with_parts(unit)
    return found


@lru_cache(maxsize=1 << 16)
def _with_parts(unit: str) -> tuple[str, ...]:
    """Returns a word in lower case, with its parts if it has some: "gpu0" and "ChildFailedError" do, "A100" and "OOM"
    do not."""
    parts = _PARTS.findall(unit)
    if len(parts) < 2 or unit[0].isdigit() or (len(unit) < 5 and not unit.lower().startswith("gpu")):
        return (unit.lower(),)
    return (unit.lower(), *(part.lower() for part in parts))


def is_chinese(unit: str) -> bool:
    return "\u3400" <= unit[0] <= "\u9fff" or "\uf900" <= unit[0] <= "\ufaff"


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Returns a word without its English ending, so that saves, saved and saving are equal. Other words stay as they
    are."""
    if len(word) < 4 or not word.isalpha() or not word.isascii() or word.endswith(("ss", "us", "is")):
        return word
    for ending in _ENDINGS:
        bare = word.removesuffix(ending)
        if bare != word and len(bare) >= 3:
            if ending in ("ing", "ed") and len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "sl":
                bare = bare[:-1]
            return bare.removesuffix("e") if len(bare) > 3 else bare
    return word.removesuffix("e") if len(word) > 3 else word
