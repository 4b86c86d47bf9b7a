"""Extracts logs that were quoted as a whole: a JSON or Python string, bytes, or a list of strings, with all line ends
escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import (
    MAX_BYTES,
    Decode,
    Decoded,
    Decoder,
    Head,
    from_lines,
    numbered_lines,
)

_MIN_COUNT = 4  # escaped line ends, or strings of a list
_MAX_DEPTH = 8  # levels of a document
_LONG_WORD = 400  # characters
_CHUNK_SIZE = 1 << 20  # characters
_ESCAPED_END = b"\\n"
_QUOTES = (b"[", b'"', b"'", b"b")  # beginnings of lists, strings and bytes
_LINE_END = lazy_regex(r"(?<!\\)(?:\\\\)*+\\n")
_OPENS = lazy_regex(rb"\s*(?:\[\s*)?b?[\"']")
_LIST = lazy_regex(rb"[\"'],\s{0,9}b?[\"']")
# Possessive (`+`), because otherwise each character of a string costs as much memory as a machine word. No string
# begins with an escaped quote, because in a string that is cut off all of them would be tried.
_STRING = lazy_regex(r"b?(?<!\\)(?:\"((?:[^\"\\]++|\\.)*+)\"|'((?:[^'\\]++|\\.)*+)')")
_IN_QUOTES = lazy_regex(r"\s*\[?\s*b?[\"'].*[\"'],?\s*\]?,?\s*")
_OBJECT = lazy_regex(r"[{\[]\s*[\"\[{]")
_ESCAPE = lazy_regex(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.S)
_BYTES = lazy_regex(r"(?:\\x[89a-fA-F][0-9a-fA-F])+")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "e": "\x1b"}
_LINES_OF = lazy_regex(r"(.+)_lines")  # Ansible writes the same text twice


def _recognise(head: Head) -> Decode | None:
    sample = head.sample
    may_be = (b"\\" in sample or sample[:1] in _QUOTES) and sample[:1] != b"{"
    return _decode if may_be and is_quoted(sample) else None


def _decode(content: bytes) -> Decoded:
    return from_lines(quoted_lines(content))


def is_quoted(sample: bytes) -> bool:
    """Returns whether a file that begins with `sample` contains a quoted log and hardly anything else."""
    escaped, ends = sample.count(_ESCAPED_END), sample.count(b"\n")
    if escaped >= max(_MIN_COUNT, 4 * ends):
        return True
    if not _OPENS.match(sample):
        return False
    return escaped >= max(_MIN_COUNT, ends - 1) or len(_LIST.findall(sample)) >= max(_MIN_COUNT, ends - 3)


def quoted_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number in the file, line) for each quoted line, and for the lines between them."""
    for number, line in numbered_lines(content):
        for each in _unquoted(line):
            yield number, each


def lines_in_strings(data: Any) -> Iterator[str]:
    """Yields the lines of the multi-line texts, and lists of texts, in a decoded document. Omits the source of
    notebooks."""
    yield from _texts(data, 0)


def may_be_encoded(text: str) -> bool:
    """Returns whether a text may be an encoded log: it is long and has no blanks."""
    return len(text) > _LONG_WORD and " " not in text


def _unquoted(line: str) -> Iterator[str]:
    if "\\n" not in line and not _IN_QUOTES.fullmatch(line):
        yield line
        return
    begins = _OBJECT.search(line)
    if begins:
        try:
            data, end = json.JSONDecoder().raw_decode(line, begins.start())
        except (ValueError, RecursionError):  # not JSON: read as quoted text below
            pass
        else:
            lines = [*_texts(data, 0)]
            if lines:
                yield from (each for each in (line[: begins.start()], *lines, line[end:]) if each.strip())
                return
    yield from _lines_of_literals(line)


def _lines_of_literals(line: str) -> Iterator[str]:
    """Yields the lines in the strings of a line, or the line itself if it has no quotes."""
    at = 0
    for found in _STRING.finditer(line):
        inside = found[1] if found[1] is not None else found[2]
        alone = found.start() == 0 or line[found.start() - 1] in "[ ,("
        if not alone or ("\\n" not in inside and not line.lstrip().startswith(("[", "b'", "'", '"'))):
            continue
        yield from filter(str.strip, _unquoted_part(line[at : found.start()].strip("[, ")))
        yield from _unescaped_lines(inside)
        at = found.end()
    yield from filter(str.strip, _unquoted_part(line[at:].strip("], ") if at else line))


def _unquoted_part(text: str) -> Iterator[str]:
    yield from _unescaped_lines(text) if "\\n" in text else (text,)


def _unescaped_lines(text: str) -> Iterator[str]:
    """Yields the lines of an escaped text. A long text is unescaped in parts, which takes a tenth of the memory."""
    at = 0
    while len(text) - at > _CHUNK_SIZE and (cut := _LINE_END.search(text, at + _CHUNK_SIZE)):
        yield from _lines(unescaped(text[at : cut.end()]))
        at = cut.end()
    yield from _lines(unescaped(text[at:]))


def unescaped(text: str) -> str:
    """Returns a text without the escapes of JSON or Python."""
    text = _BYTES.sub(lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace"), text)
    plain = _ESCAPE.sub(_character, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else plain


def _character(found: re.Match[str]) -> str:
    code, byte, other = found.groups()
    return chr(int(code or byte, 16)) if other is None else _ESCAPED.get(other, other)


def _lines(text: str) -> Iterator[str]:
    return iter(text.removesuffix("\n").replace("\r\n", "\n").split("\n"))


def _texts(data: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(data, str) and ("\n" in data or may_be_encoded(data)):
        yield from _lines(data)
    elif isinstance(data, list) and len(data) >= 1 and all(isinstance(each, str) for each in data):
        if len(data) >= _MIN_COUNT or any("\n" in each for each in data):
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


DECODER = Decoder("a log in quotes", _recognise, largest=MAX_BYTES, once=True)
