"""Merges the cases of a file with `adds_to` into an entry of another folder."""

from __future__ import annotations

import re
from dataclasses import replace

from torchtriage.domain.entry import Entry

_CASE = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_ADDS = re.compile(rb"(?m)^adds_to:")


def adds_cases(source: bytes) -> bool:
    """Returns whether a YAML file adds cases to an entry (it has the key `adds_to`) instead of defining an entry."""
    return _ADDS.search(source) is not None


def with_cases(entry: Entry, added: Entry) -> Entry:
    """Returns `entry` with the cases of `added` before its own, so they are tried first. Everything else stays as in
    `entry`; the near misses of `added` are not taken over, because the entry itself may match them."""
    own = tuple(sign for sign, case in zip(entry.signs, entry.case_of_signs, strict=True) if case is None)
    cased = [(sign, case) for sign, case in zip(entry.signs, entry.case_of_signs, strict=True) if case is not None]
    more = len(added.cases)
    return replace(
        entry,
        cases=(*added.cases, *entry.cases),
        signs=(*own, *added.signs, *(sign for sign, _ in cased)),
        case_of_signs=(*(None for _ in own), *added.case_of_signs, *(case + more for _, case in cased)),
    )


def split_id(name: str) -> tuple[str, str]:
    """Splits `area.name/case` into the ids of entry and case. The case is empty if the name has none."""
    entry, _, case = name.partition("/")
    return entry, case


def is_case_id(case: str) -> bool:
    """Returns whether `case` is a valid case id."""
    return _CASE.fullmatch(case) is not None


def file_of(name: str) -> str:
    """Returns the path, relative to a knowledge folder, of the file for an entry (`area.name`) or for a case added to
    one (`area.name/case`)."""
    entry, case = split_id(name)
    return f"{entry.replace('.', '/', 1)}{'+' + case if case else ''}.yaml"


def is_in_use(name: str, entries: dict[str, Entry]) -> bool:
    """Returns whether `entries` contains this entry, or this case of an entry."""
    entry, case = split_id(name)
    found = entries.get(entry)
    return found is not None and (not case or any(own.id == case for own in found.cases))
