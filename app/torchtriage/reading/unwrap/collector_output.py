"""Reads entries as collectors print them for people: the YAML of `gcloud logging read`, and Fluent Bit's stdout.

Yields the fields of each entry, with the number of the line in which its message begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoded, Decoder, Head, numbered_lines, untouched
from torchtriage.reading.unwrap.newest_first import from_records
from torchtriage.reading.unwrap.quoted_strings import unescaped

_YAML = lazy_regex(
    rb"---\r?\n(?=(?:[^\n]*\n){0,60}?(?:textPayload|jsonPayload|protoPayload):)(?=(?:[^\n]*\n){0,60}?(?:timestamp|insertId):)"
)
_FLUENT = lazy_regex(r"\[\d+\] [\w./*-]+: \[\[?(?P<time>\d{10}\.\d+)(?:, \{[^\n]{0,2000}?\}\])?, \{")
_PAIR = lazy_regex(r'"([\w.@/-]+)"=>')
_KEY = lazy_regex(r"( *)(?:- )?([\w./@\"'-]+):(?: (.*))?$")
_BLOCK = lazy_regex(r"[|>][+-]?\d?[+-]?$")


def _recognise_yaml(head: Head) -> Decode | None:
    return _decode_yaml if head.sample.startswith(b"---") and _YAML.match(head.sample) else None


def _decode_yaml(content: bytes) -> Decoded:
    return from_records(yaml_entries(content)) or untouched(content)


def _recognise_fluent_bit(head: Head) -> Decode | None:
    begin = head.sample[:400]
    return _decode_fluent_bit if begin[:1] == b"[" and _FLUENT.match(begin.decode("utf-8", "replace")) else None


def _decode_fluent_bit(content: bytes) -> Decoded:
    return from_records(fluent_bit_entries(content)) or untouched(content)


def yaml_entries(content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number of its message, fields) for each entry. Nested fields are named by their innermost name
    only."""
    entry: list[tuple[int, str]] = []
    for number, line in numbered_lines(content):
        if line.rstrip() == "---":
            if entry:
                yield _entry(entry)
            entry = []
        else:
            entry.append((number, line))
    if entry:
        yield _entry(entry)


def _entry(lines: list[tuple[int, str]]) -> tuple[int, dict[str, str]]:
    """Returns the number of the message's line and the fields of an entry, at the top level and in mappings."""
    fields: dict[str, list[str]] = {}
    numbers: dict[str, int] = {}
    name, depth = "", 0
    for number, line in lines:
        indent = len(line) - len(line.lstrip(" "))
        # Lines with a larger indent continue a value; after a name without a value, they are a mapping.
        key = _KEY.match(line) if not name or indent <= depth or fields[name] == [""] else None
        if key:
            name, depth = key[2].strip("\"'"), len(key[1])
            fields[name], numbers[name] = [key[3] or ""], number
        elif name:
            fields[name].append(line)
    message = next((each for each in ("textPayload", "message", "log", "msg") if each in fields), "")
    values = {each: _value(lines_of) for each, lines_of in fields.items() if lines_of != [""]}
    return numbers.get(message, lines[0][0]), values


def _value(lines: list[str]) -> str:
    """Returns the value that YAML wrote in these lines."""
    first, below = lines[0], lines[1:]
    if _BLOCK.match(first):
        filled = [line for line in below if line.strip()]
        edge = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
        mark = "\n" if first[0] == "|" else " "
        return mark.join(line[edge:] for line in below).rstrip("\n")
    whole = first
    for line in below:  # an empty line is a line end, another one a blank; with a backslash before it, it is nothing
        if whole.endswith("\\") and first[:1] == '"':
            whole = whole[:-1] + re.sub(r"^\\", "", line.lstrip(" "))
        elif not line.strip():
            whole += "\n"
        else:
            whole += line.strip() if whole.endswith("\n") else f" {line.strip()}"
    if whole[:1] == "'":
        return whole[1:].removesuffix("'").replace("''", "'")
    return unescaped(whole[1:].removesuffix('"')) if whole[:1] == '"' else whole


def fluent_bit_entries(content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number, fields) for each record of Fluent Bit's stdout, which prints texts without escapes."""
    first, time, lines = 0, "", list[str]()
    for number, line in numbered_lines(content):
        begins = _FLUENT.match(line)
        if begins:
            if first:
                yield first, {"date": time, **_pairs("\n".join(lines).rstrip())}
            first, time, lines = number, begins["time"], [line[begins.end() :]]
        else:
            lines.append(line)
    if first:
        yield first, {"date": time, **_pairs("\n".join(lines).rstrip())}


def _pairs(text: str) -> dict[str, str]:
    """Returns the pairs of `"log"=>"…", "stream"=>"stderr"}]`. Nested pairs have their innermost names."""
    pairs = [*_PAIR.finditer(text)]
    fields: dict[str, str] = {}
    for pair, after in zip_longest(pairs, pairs[1:]):
        value = text[pair.end() : after.start() if after else len(text)].rstrip("\r\n\t ,").rstrip("{")
        value = value if after else value.removesuffix("]").rstrip("}")
        if value[:1] == '"':
            fields.setdefault(pair[1], value[1:].rstrip("}").removesuffix('"'))
    return fields


GCLOUD_YAML = Decoder("entries in YAML", _recognise_yaml)
FLUENT_BIT = Decoder("Fluent Bit's output", _recognise_fluent_bit)
