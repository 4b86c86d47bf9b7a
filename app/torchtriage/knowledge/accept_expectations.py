"""Writes the answers of cases to their own examples into the `expect` keys of an entry's YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from torchtriage.domain.entry import Text
from torchtriage.knowledge.new_entry import end_of, single_quoted
from torchtriage.knowledge.yaml_positions import Loader


def accepted(source: str, says: Mapping[str, Text]) -> str:
    """Returns the YAML of an entry in which each case named in `says` expects the text given there. Nothing else
    changes. The Chinese text is written only if the case already expects one."""
    for case, text in says.items():
        source = _with(source, case, text)
    return source


def _with(source: str, case: str, says: Text) -> str:
    item = _item(source, case)
    if item is None:
        return source
    keys = {key.value: value for key, value in item.value}
    expect = keys.get("expect")
    lines = source.splitlines(keepends=True)
    if expect is None:
        at, margin = end_of(lines, item), " " * item.start_mark.column
        return "".join([*lines[:at], f"{margin}expect: {single_quoted(says.en)}\n", *lines[at:]])
    if isinstance(expect, yaml.MappingNode):
        places = {key.value: value for key, value in expect.value}
        written = [(places[lang], text) for lang, text in (("en", says.en), ("zh", says.zh)) if lang in places]
    else:
        written = [(expect, says.en)]
    for node, text in reversed(written):
        source = _replaced(source, lines, node, text)
    return source


def _item(source: str, case: str) -> yaml.MappingNode | None:
    root = yaml.compose(source, Loader=Loader)
    cases = next((value for key, value in root.value if key.value == "cases"), None) if root is not None else None
    for item in cases.value if cases is not None else ():
        if any(key.value == "id" and value.value == case for key, value in item.value):
            return item if isinstance(item, yaml.MappingNode) else None
    return None


def _replaced(source: str, lines: Sequence[str], node: yaml.Node, text: str) -> str:
    start, end = (sum(map(len, lines[: mark.line])) + mark.column for mark in (node.start_mark, node.end_mark))
    return f"{source[:start]}{single_quoted(text)}" + "\n" * source[start:end].endswith("\n") + source[end:]
