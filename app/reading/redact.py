"""Takes secrets out of text that is shown or kept: the value goes, its name stays.

Hyperscan finds the lines, RE2 the places in them; a log without secrets goes by uncopied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import re2

from app.reading.scan import Scanner
from app.reading.secrets import FORMS, KEY_BEGINS, KEY_ENDS, NAMED

_MARK = b"[redacted]"
_LONGEST_KEY = 200  # lines; what goes on longer is no key
# What stands after such names and is none: numbers, nothing, code, what was redacted already, paths of files.
_NO_SECRET = re2.compile(
    rb"(?i)^(?:[\d.,:x+-]+|none|null|true|false|undefined|missing|required|invalid|unset|empty|str|string|optional\S*"
    rb"|bytes|not|your\S*|\*+|x+|[\[({<$%].*|\[redacted\].*|os\.\S*|self\.\S*|args\.\S*|cfg\.\S*|config\.\S*|/\S*|\.{1,2}/\S*"
    rb"|\S*(?:Error|Exception|Token|Tokenizer\w*)\b.*|\S*\(.*)$"
)


def redact(text: str) -> str:
    """-> `text`, a few lines at most, with known kinds of secrets replaced by a mark."""
    data = _without_keys(text.encode("utf-8", "surrogateescape"), 0)[0]
    if _any().search(data):
        data = _line(data, range(len(_patterns())))
    return data.decode("utf-8", "surrogateescape")


def redacted(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the same blocks, which end at line ends, without their secrets; lines stay lines."""
    inside = 0  # lines of a private key that may still come
    for block in blocks:
        if inside or _begins_key(block):
            block, inside = _without_keys(block, inside)
        yield _cleaned(block)


def _cleaned(block: bytes) -> bytes:
    hits, _ = _scanner().ends(block)
    if not hits:
        return block
    parts, done = [], 0
    for start, end, kinds in _lines(block, hits):
        parts += [block[done:start], _line(block[start:end], sorted(kinds))]
        done = end
    return b"".join([*parts, block[done:]])


def _line(line: bytes, kinds: Iterable[int]) -> bytes:
    for kind in kinds:
        line = _patterns()[kind].sub(_named if kind >= len(FORMS) else _formed, line)
    return line


def _lines(block: bytes, hits: list[tuple[int, int]]) -> Iterator[tuple[int, int, set[int]]]:
    """Yields (start, end, kinds) of the lines in which secrets were found; the hits are in the order of their ends."""
    start, end, kinds = 0, -1, set[int]()
    for kind, at in hits:
        if at > end:
            if kinds:
                yield start, end, kinds
            start = block.rfind(b"\n", 0, at) + 1
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            kinds = set()
        kinds.add(kind)
    yield start, end, kinds


def _formed(found: re2._Match) -> bytes:
    kept: bytes = (found.group(1) if found.re.groups else None) or b""
    return kept + _MARK + (b"@" if found.group(0).endswith(b"@") else b"")


def _named(found: re2._Match) -> bytes:
    name: bytes = found.group(1)
    value: bytes = found.group(2)
    return name + (value if _NO_SECRET.search(value) else _MARK)


def _without_keys(block: bytes, inside: int) -> tuple[bytes, int]:
    """-> the block without the lines of private keys, and how many lines of one may still come after it."""
    lines = block.split(b"\n")
    for number, line in enumerate(lines):
        if inside and line:
            inside = 0 if _KEY_ENDS.search(line) else inside - 1
            lines[number] = line if not inside and _KEY_ENDS.search(line) else _MARK
        elif _begins_key(line):
            inside = 0 if _KEY_ENDS.search(line) else _LONGEST_KEY
            lines[number] = _KEY_BEGINS.sub(lambda found: found.group(1) + _MARK, line)
    return b"\n".join(lines), inside


_KEY_BEGINS = re2.compile(rb"(" + KEY_BEGINS.encode() + rb").*")
_KEY_ENDS = re2.compile(KEY_ENDS.encode())


def _begins_key(data: bytes) -> bool:
    return b"PRIVATE KEY" in data and _KEY_BEGINS.search(data) is not None


@cache
def _patterns() -> list[re2._Regexp]:
    return [re2.compile(form.encode()) for form in (*FORMS, *NAMED)]


@cache
def _any() -> re2._Regexp:
    """-> all forms in one: most lines hold no secret, and this says so in a thirtieth of the time."""
    return re2.compile(b"|".join(b"(?:%b)" % form.encode() for form in (*FORMS, *NAMED)))


@cache
def _scanner() -> Scanner:
    return Scanner(lambda: [_shortest(form).encode() for form in (*FORMS, *NAMED)])


def _shortest(form: str) -> str:
    """-> the pattern for the shortest secret of the form: one hit for each, and none for every further character."""
    cut = re.sub(r"\{(\d+),\d*\}[=*@)]*$", r"{\1}", form)
    return cut + ")" * (cut.count("(") - cut.count(")"))
