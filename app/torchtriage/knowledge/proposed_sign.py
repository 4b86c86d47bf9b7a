"""Proposes the sign of a case from one message: a regex that matches any value in place of names and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchtriage.lazy_regex import lazy_regex

MAX_LENGTH = 200  # characters of a sign
_MIN_LENGTH = 12  # constant letters in a sign; with fewer, it may match other messages
_ENDINGS = "pth?|ckpt|bin|safetensors|json|ya?ml|py|csv|tsv|txt|npy|npz|tar|parquet|so|cfg|toml|h5|idx|log"
_NUMBER = r"-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?"
# Longer forms come before the forms that they contain. Each has its regex and the name of its group.
_FORMS = (
    ("time", r"\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", r"[\d-]+[T_ ][\d:.,]+", ""),
    ("shape", r"\[\s*\d+(?:\s*[,x]\s*\d+)*\s*,?\]|\(\s*\d+(?:\s*,\s*\d+)+\s*,?\)|\b\d+(?:x\d+)+\b", "", "shape"),
    ("quoted", r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|‘[^’\n]*’", "", "name"),
    ("url", r"\b[a-z][a-z0-9+]{1,8}://[^\s'\"<>)\]]+", r"[a-z0-9+]+://[^\s\"'<>)\]]+", "url"),
    ("address", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", r"\d+\.\d+\.[\d.:]+\d", "address"),
    ("hex", r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b", r"(?:0x)?[0-9a-fA-F]+", ""),
    ("path", r"(?:~|\.{1,2})?/[\w.+@%=~-]+(?:/[\w.+@%=~-]+)*/?|[A-Za-z]:\\[^\s'\"]+"
             r"|(?<![\w.+-])[\w.+-]+(?:/[\w.+-]+)+\b"
             rf"|\b[\w+-]+\.(?:{_ENDINGS})\b",
     r"[^\s'\"]*[^\s'\".,:;)]", "path"),
    ("dtype", r"\b(?:float|bfloat|int|uint|complex)\d+\b", r"\w+", "dtype"),
    ("size", _NUMBER + r"\s?(?:[KMGT]i?B|bytes|ms)\b", "", "size"),
    ("version", r"\b\d+(?:\.\d+){2,}[\w.+]*", r"\d[\w.+]*", "version"),
    ("named", r"\b(?=[\w-]*\d)(?=[\w-]{6})[A-Za-z][\w]*[-_]?\d[\w-]*", r"[\w-]+", "name"),
    ("number", r"(?<![A-Za-z_\d])" + _NUMBER, "", "count"),
)  # fmt: skip
_FORM = lazy_regex("|".join(f"(?P<{name}>{form})" for name, form, _, _ in _FORMS))
_BECOMES = {name: (becomes, called) for name, _, becomes, called in _FORMS}
_PATH = lazy_regex(rf"[^\s]*[/\\][^\s].*|\S+\.(?:{_ENDINGS})")
_CODE = lazy_regex(
    r"(?i)\b(?:errno|error|code|status|signal)[ :=(]{1,2}$"
)  # a number after these words identifies the failure, so it stays constant
_SPECIAL = lazy_regex(r"[\\.^$*+?{}\[\]()|]")
_MODULES = lazy_regex(r"(?:[a-z_]\w*\.)+(?=[A-Z]\w*(?::|$))")
# Words that are not a useful name for the value next to them.
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and but for must while when trying with from than that this has have had was were are its after into onto "
        "each all any not only least most more less about over under between requires require need needs using type",
    )
)


@dataclass(frozen=True)
class ProposedSign:
    """The proposed sign. `regex` has at most 200 characters. `groups` maps its named groups to their values in the
    message.

    `general` is true if so few constant words remain that the sign may match other messages.
    """

    regex: str
    groups: dict[str, str]
    general: bool


def proposed_sign(message: str) -> ProposedSign:
    """Returns the sign for one line: its constant words, with wildcards for values. A group gets its name from the word
    next to its value."""
    line = _MODULES.sub("", message.strip(), count=1)
    parts: list[str] = []
    groups: dict[str, str] = {}
    letters = done = 0
    for found in _FORM.finditer(line):
        constant, kind = line[done : found.start()], str(found.lastgroup)
        if kind == "number" and _CODE.search(line[: found.start()]):
            continue
        parts.append(_escaped(constant))
        letters += sum(map(str.isalpha, constant))
        open_part, groups_with = _opened(line, found, kind, groups)
        if len("".join(parts)) + len(open_part) > MAX_LENGTH:
            done = len(line)
            break
        parts.append(open_part)
        groups, done = groups_with, found.end()
    parts.append(_escaped(line[done:]))
    letters += sum(map(str.isalpha, line[done:]))
    regex = "".join(parts)
    return ProposedSign(_cut(regex).rstrip(" "), groups, letters < _MIN_LENGTH)


def _opened(line: str, found: re.Match[str], kind: str, groups: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Returns the regex for one value, and `groups` with the group of this value added."""
    value, (becomes, called) = found[0], _BECOMES[kind]
    before, after = "", ""
    if kind == "quoted":
        value, before, after = value[1:-1], _escaped(value[0]), _escaped(value[-1])
        becomes = f"[^{found[0][-1]}\\n]*" if not value else f"[^{found[0][-1]}\\n]+"
        called = "path" if _PATH.fullmatch(value) else called
    elif kind == "shape" and value[0] in "[(":
        value, before, after = value[1:-1], _escaped(value[0]), _escaped(value[-1])
        becomes = r"[\d, x]+"
    elif kind == "shape":
        becomes = r"\d[\dx]+"
    elif kind == "number":
        becomes = ("-?" if value[0] == "-" else "") + (r"\d+" if value.lstrip("-").isdigit() else r"\d[\d.,e+-]*")
    elif kind == "size":
        unit = re.search(r"[A-Za-z]+$", value)
        amount = r"\d+" if re.match(r"\d+(?![\d.,])", value) else r"\d[\d.,]*"
        becomes = f"{amount} ?{unit[0] if unit and unit[0] in ('bytes', 'ms', 'B') else '[KMGT]i?B'}"
    if not called or not value:
        return f"{before}{becomes}{after}", groups
    name = (
        called if called in ("path", "shape", "dtype", "url", "version") else _neighbouring_word(line, found) or called
    )
    name = next((each for each in (name, f"other_{name}") if each not in groups), "")
    if not name:
        return f"{before}{becomes}{after}", groups
    return f"{before}(?P<{name}>{becomes}){after}", {**groups, name: value}


def _neighbouring_word(line: str, found: re.Match[str]) -> str | None:
    """Returns the word before a value, or else the one after it, if it is a useful name for the value."""
    before = re.search(r"([A-Za-z_]{3,20})['\"`:=#(\s]{0,3}$", line[: found.start()])
    behind = re.match(r"['\"`)]?\s([a-z_]{3,20})\b", line[found.end() :])
    for word in (before, behind):
        if word and word[1].lower() not in _EMPTY_WORDS and not re.search(r"Error|Exception", word[1]):
            return word[1].lower().strip("_") or None
    return None


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda char: f"\\{char[0]}", text)


def _cut(regex: str) -> str:
    """Returns a regex of at most 200 characters, cut between words and outside groups."""
    if len(regex) <= MAX_LENGTH:
        return regex
    cut = regex[:MAX_LENGTH]
    while cut and (_open(cut) or cut.endswith("\\")):
        cut = cut[:-1]
    return cut.rpartition(" ")[0] if " " in cut and not _open(cut.rpartition(" ")[0]) else cut


def _open(regex: str) -> bool:
    plain = re.sub(r"\\.", "", regex)
    return plain.count("(") != plain.count(")") or plain.count("[") != plain.count("]")
