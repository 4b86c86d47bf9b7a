"""What went wrong, in the reader's language: a message as it was raised in, its sentence out.

Messages are raised in English, everywhere. problems.toml holds both languages of those that a page can show, with
`{names}` for what differs; a message that does not stand there is shown as it is.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from string import Formatter

from torchtriage.domain.entry import Language, Text


def problem_text(lang: Language, message: object) -> str:
    """-> the message in the reader's language."""
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
    """-> a pattern for each message, those that begin with an open place last, those with fewer of them first."""
    file = Path(__file__).with_suffix(".toml")
    texts = [Text(**texts) for texts in tomllib.loads(file.read_text("utf-8")).values()]
    texts.sort(key=lambda text: (text.in_("en")[0] == "{", text.in_("en").count("{"), -len(text.in_("en"))))
    return tuple((_pattern(text.in_("en")), text) for text in texts)


def _pattern(template: str) -> re.Pattern[str]:
    parsed = Formatter().parse(template)
    parts = [re.escape(plain) + (f"(?P<{name}>.*)" if name else "") for plain, name, _, _ in parsed]
    return re.compile("".join(parts), re.DOTALL)
