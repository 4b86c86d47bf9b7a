"""Translates error messages into the reader's language.

All messages are raised in English. error_texts.toml has both languages of those that a page can show, with `{names}`
for the parts that vary. A message that is not in it is shown unchanged.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from string import Formatter

from torchtriage.domain.entry import Language, Text


def problem_text(lang: Language, message: object) -> str:
    """Returns the message in the reader's language."""
    plain = str(message)
    if lang == "en":
        return plain
    for pattern, text in sentences():
        if found := pattern.fullmatch(plain):
            within = {name: problem_text(lang, part) for name, part in found.groupdict().items()}  # in one another
            return text.in_(lang).format(**within)
    return plain


@cache
def sentences() -> tuple[tuple[re.Pattern[str], Text], ...]:
    """Returns a pattern and the texts of each message. Patterns with fewer placeholders come first, and those that
    start with one come last."""
    file = Path(__file__).with_suffix(".toml")
    texts = [Text(**texts) for texts in tomllib.loads(file.read_text("utf-8")).values()]
    texts.sort(key=lambda text: (text.in_("en")[0] == "{", text.in_("en").count("{"), -len(text.in_("en"))))
    return tuple((_pattern(text.in_("en")), text) for text in texts)


def _pattern(template: str) -> re.Pattern[str]:
    parsed = Formatter().parse(template)
    parts = [re.escape(plain) + (f"(?P<{name}>.*)" if name else "") for plain, name, _, _ in parsed]
    return re.compile("".join(parts), re.DOTALL)
