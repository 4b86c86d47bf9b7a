"""Logs that were quoted whole: a string of JSON or of Python, bytes, a list of strings, with every line end spelled.

The content of a file in, the lines that were quoted out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from torchtriage.reading.unwrap.numbered_lines import numbered

_FEWEST = 4  # spelled line ends, or strings of a list
_DEEPEST = 8  # levels of a document
_PACKED = 400  # characters
_LONG = 1 << 20  # characters
_SPELLED = b"\\n"
_LINE_END = re.compile(r"(?<!\\)(?:\\\\)*+\\n")
_OPENS = re.compile(rb"\s*(?:\[\s*)?b?[\"']")
_LIST = re.compile(rb"[\"'],\s{0,9}b?[\"']")
# What is taken is never given back (`+`): else each character of a string costs as much memory as a word of the machine.
# No string begins with a quote that was spelled: of one that is cut off, all of them would be tried.
_STRING = re.compile(r"b?(?<!\\)(?:\"((?:[^\"\\]++|\\.)*+)\"|'((?:[^'\\]++|\\.)*+)')")
_IN_QUOTES = re.compile(r"\s*\[?\s*b?[\"'].*[\"'],?\s*\]?,?\s*")
_OBJECT = re.compile(r"[{\[]\s*[\"\[{]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.S)
_BYTES = re.compile(r"(?:\\x[89a-fA-F][0-9a-fA-F])+")
_MEANT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "e": "\x1b"}
_LINES_OF = re.compile(r"(.+)_lines")  # Ansible tells the same twice


def is_quoted(sample: bytes) -> bool:
    """-> whether a file that begins with `sample` holds a quoted log, and hardly anything beside it."""
    spelled, ends = sample.count(_SPELLED), sample.count(b"\n")
    if spelled >= max(_FEWEST, 4 * ends):
        return True
    if not _OPENS.match(sample):
        return False
    return spelled >= max(_FEWEST, ends - 1) or len(_LIST.findall(sample)) >= max(_FEWEST, ends - 3)


def in_quotes(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number in the file, line) for each line that was quoted, and those that stand between."""
    for number, line in numbered(content):
        for each in _unquoted(line):
            yield number, each


def in_strings(data: Any) -> Iterator[str]:
    """Yields the lines of the texts in a decoded document, of those that hold several and of lists of them; nothing of a
    notebook's source."""
    yield from _texts(data, 0)


def is_packed(text: str) -> bool:
    """-> whether a text may be a log that was encoded: it is long, and has no blanks."""
    return len(text) > _PACKED and " " not in text


def _unquoted(line: str) -> Iterator[str]:
    if "\\n" not in line and not _IN_QUOTES.fullmatch(line):
        yield line
        return
    begins = _OBJECT.search(line)
    if begins:
        try:
            data, end = json.JSONDecoder().raw_decode(line, begins.start())
        except (ValueError, RecursionError):
            pass
        else:
            told = [*_texts(data, 0)]
            if told:
                yield from (each for each in (line[: begins.start()], *told, line[end:]) if each.strip())
                return
    yield from _of_literals(line)


def _of_literals(line: str) -> Iterator[str]:
    """Yields the lines in the strings of a line, or in the line itself where it was put in no quotes."""
    at = 0
    for found in _STRING.finditer(line):
        inside = found[1] if found[1] is not None else found[2]
        alone = found.start() == 0 or line[found.start() - 1] in "[ ,("
        if not alone or ("\\n" not in inside and not line.lstrip().startswith(("[", "b'", "'", '"'))):
            continue
        yield from filter(str.strip, _bare(line[at : found.start()].strip("[, ")))
        yield from _spelled(inside)
        at = found.end()
    yield from filter(str.strip, _bare(line[at:].strip("], ") if at else line))


def _bare(text: str) -> Iterator[str]:
    yield from _spelled(text) if "\\n" in text else (text,)


def _spelled(text: str) -> Iterator[str]:
    """Yields the lines of a text that was spelled; of a long one a part at a time, which takes a tenth of the memory."""
    at = 0
    while len(text) - at > _LONG and (cut := _LINE_END.search(text, at + _LONG)):
        yield from _lines(meant(text[at : cut.end()]))
        at = cut.end()
    yield from _lines(meant(text[at:]))


def meant(text: str) -> str:
    """-> a text as it was before JSON or Python spelled it."""
    text = _BYTES.sub(lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace"), text)
    told = _ESCAPE.sub(_one, text)
    return told.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else told


def _one(found: re.Match[str]) -> str:
    code, byte, other = found.groups()
    return chr(int(code or byte, 16)) if other is None else _MEANT.get(other, other)


def _lines(text: str) -> Iterator[str]:
    return iter(text.removesuffix("\n").replace("\r\n", "\n").split("\n"))


def _texts(data: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(data, str) and ("\n" in data or is_packed(data)):
        yield from _lines(data)
    elif isinstance(data, list) and len(data) >= 1 and all(isinstance(each, str) for each in data):
        if len(data) >= _FEWEST or any("\n" in each for each in data):
            yield from (line for each in data for line in _lines(each))
    elif isinstance(data, list):
        for each in data:
            yield from _texts(each, depth + 1)
    elif isinstance(data, dict):
        notebook = "cell_type" in data
        for name, value in data.items():
            same = _LINES_OF.fullmatch(name)
            if not (notebook and name == "source") and not (same and isinstance(data.get(same[1]), str)):
                yield from _texts(value, depth + 1)
