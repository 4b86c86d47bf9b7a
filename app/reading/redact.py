"""Takes secrets out of text that is shown or kept: the value goes, its name stays."""

from __future__ import annotations

import re2

_MARK = "[redacted]"
_SECRETS = re2.compile(
    r"(?i)((?:api[_-]?key|secret|token|passw(?:or)?d|credential)[\w-]{0,20}[\"']?\s{0,3}[=:]\s{0,3}[\"']?)[^\s\"',;&]{6,}"
    r"|(://[^\s:/@]{1,64}:)[^\s:/@]{3,}@"
    r"|((?:authorization: )?bearer )[\w.~+/-]{12,}=*"
)
_BARE = re2.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|sk-[\w-]{20,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}|AIza[\w-]{35}|glpat-[\w-]{20,})"
)


def redact(text: str) -> str:
    """-> `text` with known kinds of secrets replaced by a mark."""
    if not _SECRETS.search(text) and not _BARE.search(text):
        return text
    return str(_BARE.sub(_MARK, _SECRETS.sub(_with_name, text)))


def _with_name(found: re2._Match) -> str:
    name = found.group(1) or found.group(2) or found.group(3)
    return f"{name}{_MARK}" + ("@" if found.group(2) else "")
