"""Takes out of a message what differs from job to job: numbers, paths, addresses, hosts, quoted values."""

from __future__ import annotations

import re
from functools import lru_cache

# Order matters: the longer form comes before the parts it is made of.
_MASKS = (
    ("<time>", re.compile(r"\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")),
    ("<uuid>", re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")),
    ("<url>", re.compile(r"\b[a-z][a-z0-9+]{1,8}://[^\s'\"<>)\]]+")),
    ("<addr>", re.compile(r"\[[0-9a-fA-F:.]+\]:\d+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:<\d+>)?\b")),
    ("<hex>", re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b")),
    (
        "<path>",
        re.compile(
            r"(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.+@%=~-]+(?:[/\\][\w.+@%=~-]+)*/?|\b[\w.+-]+(?:/[\w.+-]+){1,}\.\w{1,12}\b"
        ),
    ),
    ("<shape>", re.compile(r"\[\s*-?\d+(?:\s*[,x]\s*-?\d+)*\s*,?\s*\]")),
    ("<num>", re.compile(r"(?<![A-Za-z_])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:\s?(?:[KMGT]i?B|ms|GiB|MiB)\b)?")),
)


@lru_cache(maxsize=4096)
def mask(text: str) -> str:
    """-> `text` with what differs from job to job replaced by names in angle brackets."""
    for name, pattern in _MASKS:
        text = pattern.sub(name, text)
    return text
