"""The first text of a new entry: an id, and a failure where one is at hand, in; YAML with gaps to fill out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from torchtriage.domain.verdict import Verdict
from torchtriage.errors import BadInput

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*")
_VARIES = re.compile(r"""'[^']*'|"[^"]*"|\S*[/\\]\S*|0x[0-9a-f]+|\S*\d\S*|\{[^}]*\}|\[[^]]*\]""")
_YAML_ONLY = re.compile("[\x7f-\xa0\u2028\u2029\ufeff]")
_SHORTEST = 12  # characters of a constant part that still say something
_SAMPLE = "SomeError: the message, word for word as the program prints it"


def path_of(entry: str, folders: Iterable[Path]) -> Path:
    """-> where the file of a new entry belongs: in the last of `folders`.

    Raises BadInput where the name is none, or an entry has it already.
    """
    if not _NAME.fullmatch(entry):
        raise BadInput(f"{entry!r} is no name for an entry; it is area.name in small letters, digits and hyphens")
    area, _, name = entry.partition(".")
    places = [folder / area / f"{name}.yaml" for folder in folders]
    for place in places:
        if place.exists():
            raise BadInput(f"{entry} exists already: {place}")
    return places[-1]


def name_for(failed: str) -> str:
    """-> a name for an entry that is yet to be thought about, from the message that it is to match."""
    kind = re.match(r"[\w.]+", failed)
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", kind[0].rpartition(".")[2] if kind else "")
    return f"new.{'-'.join(words).lower()[:60] or 'failure'}"


def failure(verdict: Verdict) -> str:
    """-> the line that tells what failed: the exception, else the first line of evidence.

    Raises BadInput where nothing failed.
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


def constant_part(line: str) -> str:
    """-> the longest piece of a message's first line without numbers, paths and quoted names; else the whole line."""
    first = line.splitlines()[0]
    pieces = [piece.strip(" ,;(") for piece in _VARIES.split(first)]
    longest = max(pieces, key=len)
    return longest if len(longest) >= _SHORTEST else first


def draft(entry: str, failed: str | None) -> str:
    """-> the YAML of a new entry; `failed` is a message that it must match."""
    sign = constant_part(failed) if failed else _SAMPLE
    example = failed or _SAMPLE
    return f"""\
id: {entry}
kind: cause  # or consequence (something else is usually behind it), or advice (leaves no line; has asks, no signs)
title:
  en: TODO what happened, in one plain sentence
  zh: TODO 用一句话说明发生了什么
area: {entry.partition(".")[0]}
owner: user  # who must act: user, framework, platform or hardware
signs:  # any of them is enough; the constant words of the message, without names and numbers
  - text: {_quoted(sign)}
explains: []  # ids or globs of entries that follow from this one
action: {{advice: fix-first, retry: no}}  # retry, retry-elsewhere, fix-first or none; retry: yes, no or once
causes:  # the likeliest first
  - en: TODO why it happens
    zh: TODO 为什么会发生
fixes:  # the quickest sure one first
  - title:
      en: TODO what to do
      zh: TODO 怎么办
    commands: []  # can be pasted; {{host}}, {{rank}} and {{pid}} are filled in
    applies: any  # or a version range, as torch<2.4
checks: []  # what to run to be sure
prevent: []  # texts in en and zh: how to keep it from happening again
versions: {{affected: null, fixed: null}}
references: []  # https links to documentation, source, issues
asks:  # how someone asks for it who has no log
  - en: TODO a question
    zh: TODO 一个问题
examples:
  match:  # two at least, as they stand in logs
    - {_quoted(example)}
  no_match: []  # one at least: the nearest message that means something else
"""


def _quoted(text: str) -> str:
    """-> a YAML scalar: what JSON quotes, YAML reads, but for the line ends and marks that only YAML has."""
    return _YAML_ONLY.sub(lambda mark: f"\\u{ord(mark[0]):04x}", json.dumps(text, ensure_ascii=False))
