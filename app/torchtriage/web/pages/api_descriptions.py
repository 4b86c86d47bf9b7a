"""The words of the API reference in the reader's language.

api_descriptions.toml has the Chinese of each English sentence of the OpenAPI document, and a purpose for parameters
that have no description there. A sentence that is not in it is shown in English.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchtriage.domain.entry import Language, Text


@dataclass(frozen=True, slots=True)
class Descriptions:
    """`purposes` are by the name of a parameter, `chinese` by the English sentence."""

    purposes: dict[str, Text]
    chinese: dict[str, str]


@cache
def descriptions() -> Descriptions:
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return Descriptions({name: Text(**texts) for name, texts in content["purposes"].items()}, content["chinese"])


def described(lang: Language, sentence: str) -> str:
    """Returns a sentence of the OpenAPI document in the reader's language."""
    return descriptions().chinese.get(sentence, sentence) if lang == "zh" else sentence


def purpose(lang: Language, name: str, sentence: str) -> str:
    """Returns what a parameter is for: its sentence in the OpenAPI document, or else the words for its name."""
    known = descriptions().purposes.get(name)
    return described(lang, sentence) if sentence or known is None else known.in_(lang)
