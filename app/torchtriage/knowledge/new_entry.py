"""Writes the YAML of a new entry or case with TODOs. Sign, facts and example can come from the failure in a log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from torchtriage.answer.templates import short
from torchtriage.domain.verdict import Verdict
from torchtriage.errors import BadInput
from torchtriage.knowledge.proposed_sign import proposed_sign
from torchtriage.knowledge.yaml_positions import Loader
from torchtriage.lazy_regex import lazy_regex

_NAME = lazy_regex(r"[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*")
_CASE = lazy_regex(r"[a-z0-9][a-z0-9-]*")
_YAML_ONLY = lazy_regex("[\x7f-\xa0\u2028\u2029\ufeff]")
_WORDS = lazy_regex(r"[A-Za-z]{3,}")
_SAMPLE = "SomeError: the message, word for word as the program prints it"
_MAX_FACT_LENGTH, _MAX_COMMENT_LENGTH = 60, 90  # characters of a value, and of a line of values, in a comment


@dataclass(frozen=True)
class Sample:
    """A failure from which a case is created: its message, where signs find it (`exception` or `line`), the lines of
    the log around it, and the facts of the log."""

    message: str
    search_in: str = "exception"
    example: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def path_of(entry: str, folders: Iterable[Path]) -> Path:
    """Returns the path for the file of a new entry, in the last of `folders`.

    Raises BadInput if the id is invalid or exists already.
    """
    if not _NAME.fullmatch(entry):
        raise BadInput(f"{entry!r} is not a valid entry id: use area.name in lower-case letters, digits and hyphens")
    area, _, name = entry.partition(".")
    places = [folder / area / f"{name}.yaml" for folder in folders]
    for place in places:
        if place.exists():
            raise BadInput(f"{entry} exists already: {place}; --case ID adds a case to it")
    return places[-1]


def file_of(entry: str, folders: Sequence[Path]) -> Path | None:
    """Returns the file of an entry in the last folder that has it, or None if it is new."""
    if not _NAME.fullmatch(entry):
        return None
    area, _, name = entry.partition(".")
    files = (folder / area / f"{name}.yaml" for folder in reversed(folders))
    return next((file for file in files if file.is_file()), None)


def is_entry_id(entry: str) -> bool:
    """Returns whether `entry` is a valid entry id."""
    return _NAME.fullmatch(entry) is not None


def name_for(failed: str) -> str:
    """Returns a preliminary id for a new entry, derived from a message."""
    kind = re.match(r"[\w.]+", failed)
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", kind[0].rpartition(".")[2] if kind else "")
    return f"new.{'-'.join(words).lower()[:60] or 'failure'}"


def failure(verdict: Verdict) -> str:
    """Returns the line that describes the failure: the exception if there is one, else the first line of evidence.

    Raises BadInput if nothing failed.
    """
    root = verdict.root_cause
    if root is None:
        raise BadInput(f"nothing failed in {verdict.source}")
    if root.exception:
        message = root.exception.message.strip()
        return f"{root.exception.type}: {message}" if message else root.exception.type
    if root.evidence:
        return root.evidence[0].text.strip()
    return root.title


def case_name(message: str) -> str:
    """Returns a case id made of the first words of a message."""
    constant = re.sub(r"'[^']*'|\"[^\"]*\"|\S*[/\\]\S*", " ", message.partition(": ")[2] or message)
    words = [word.lower() for word in _WORDS.findall(constant)]
    telling = [word for word in words if word not in _COMMON]
    return "-".join((telling or words)[:4])[:60] or "case"


_COMMON = frozenset(
    re.findall(r"\w+", "the and for with from that this its was were has have not but got are into after")
)


def checked_case(case: str) -> str:
    """Returns `case`. Raises BadInput if it is not a valid case id."""
    if not _CASE.fullmatch(case):
        raise BadInput(f"{case!r} is not a valid case id: use lower-case letters, digits and hyphens")
    return case


def new_entry(entry: str, case: str, sample: Sample | None) -> str:
    """Returns the YAML of a new entry with one case."""
    return f"""\
id: {entry}
kind: cause  # or consequence, if another failure usually causes it
title:
  en: 'TODO what happened, in at most ten words'
area: {entry.partition(".")[0]}
owner: user  # who must act: user, framework, platform or hardware
cases:  # the first that applies is shown
{new_case(case, sample)}\
action: {{advice: fix-first, retry: no}}  # for failures without a case
examples:
  no_match: []  # at least one: a similar message that means something else
"""


def new_case(case: str, sample: Sample | None) -> str:
    """Returns the YAML of a case, as an item of the list `cases`."""
    sample = sample or Sample(_SAMPLE)
    message = next((line for line in sample.message.splitlines() if line.strip()), sample.message)
    sign = proposed_sign(message)
    slots = "".join(f" {{{name}}}" for name in sign.groups)
    lines = [f"  - id: {case}"]
    if sign.general:
        lines.append("    # This sign has few words and may match other failures. Add `when:`, or more words.")
    lines += [f"    sign: {single_quoted(sign.regex)}", f"    search_in: {sample.search_in}"]
    facts = {name: value for name, value in sample.facts.items() if name not in sign.groups}
    for title, values in (("slots that the sign fills", sign.groups), ("other facts of this log", facts)):
        if values:
            lines += [f"    # {title}:", *_listed(values)]
    says = f"TODO what it means, at most 35 words, with slots:{slots or ' {where}'}"
    lines += [
        "    says:  # write a quote inside the text twice; zh can be added later",
        f"      en: {single_quoted(says)}",
        "    do:  # at most 3 steps, the first for this run",
        "      - en: 'TODO what to do, in at most 20 words'",
        "        # run: 'a command, which may have slots'",
        "    retry: no  # does a rerun of the same job help? yes, no or once",
        "    source: 'TODO the package with its version and the file, or a document with its date'",
        *block_text("example", sample.example or sample.message),
        "    expect: 'TODO kb check --accept writes it'",
    ]
    return "\n".join(lines) + "\n"


def with_case(source: str, case: str, text: str) -> str:
    """Returns the YAML of an entry with the case `text` added; nothing else changes. The case goes before the first
    case without a sign, because that one applies to all remaining messages.

    Raises BadInput if the entry already has a case with this id, or if its cases are on one line.
    """
    root = yaml.compose(source, Loader=Loader)
    if not isinstance(root, yaml.MappingNode):
        raise BadInput("the entry's file has no keys")
    parts = {key.value: (key, value) for key, value in root.value}
    lines = source.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if "cases" not in parts:
        at = end_of(lines, parts["signs"][1]) if "signs" in parts else parts["action"][0].start_mark.line
        return "".join([*lines[:at], "cases:\n", text, *lines[at:]])
    key, cases = parts["cases"]
    if cases.flow_style and cases.value:
        raise BadInput("the entry's cases are on one line [...]; write them as a list first")
    if not cases.value:
        at = key.start_mark.line
        return "".join([*lines[:at], "cases:\n", text, *lines[at + 1 :]])
    known = [{name.value: value.value for name, value in item.value} for item in cases.value]
    if any(each.get("id") == case for each in known):
        raise BadInput(f"the entry already has a case {case!r}")
    margin = " " * max(0, cases.value[0].start_mark.column - 2)  # indent of the dash; the node begins after it
    item = "".join(_moved(line, margin) for line in text.splitlines(keepends=True))
    for place, each in enumerate(known):
        if not {"sign", "text", "all"} & each.keys():
            at = cases.value[place].start_mark.line
            while lines[at - 1].lstrip().startswith("#"):
                at -= 1
            break
    else:
        at = end_of(lines, cases)
    return "".join([*lines[:at], item, *lines[at:]])


def _moved(line: str, margin: str) -> str:
    """Returns a line of a case, indented for a list whose items start at `margin` instead of two spaces."""
    return margin + line[2:] if line.strip() else line


def end_of(lines: Sequence[str], node: yaml.Node) -> int:
    """Returns the index of the line after a node, before the comments of the next node."""
    at, column = node.end_mark.line, node.end_mark.column
    if at < len(lines) and lines[at][:column].strip():  # otherwise the end mark is at the start of the next node
        at += 1
    comment = re.compile(rf" {{0,{max(node.start_mark.column - 1, 0)}}}#")
    while at > node.start_mark.line + 1 and (not lines[at - 1].strip() or comment.match(lines[at - 1])):
        at -= 1
    return at


def block_text(key: str, example: str) -> list[str]:
    """Returns a key of a case with a multi-line text, as a YAML block. Text with unprintable characters is quoted
    instead."""
    text = example.strip("\n").rstrip()
    if not all(char.isprintable() or char in "\n\t" for char in text):
        return [f"    {key}: {_quoted(text)}"]
    mark = "|2-" if text.startswith((" ", "\t")) else "|-"
    return [f"    {key}: {mark}", *(f"      {line.rstrip()}" if line.strip() else "" for line in text.split("\n"))]


def _listed(values: Mapping[str, str]) -> list[str]:
    """Returns comment lines that list slots with their values, several per line."""
    lines = [""]
    for name, value in values.items():
        printable = "".join(char for char in short(value)[:_MAX_FACT_LENGTH] if char.isprintable())
        if len(lines[-1]) + len(printable) > _MAX_COMMENT_LENGTH:
            lines.append("")
        lines[-1] += f"  {{{name}}} = {printable}"
    return [f"    #{line}" for line in lines]


def single_quoted(text: str) -> str:
    """Returns a regex as a single-quoted YAML scalar, in which backslashes need no escape."""
    if all(char.isprintable() for char in text):
        return "'" + text.replace("'", "''") + "'"
    return _quoted(text)


def _quoted(text: str) -> str:
    """Returns a text as a double-quoted YAML scalar. YAML reads JSON strings, but some line ends and marks need an
    escape."""
    return _YAML_ONLY.sub(lambda mark: f"\\u{ord(mark[0]):04x}", json.dumps(text, ensure_ascii=False))
