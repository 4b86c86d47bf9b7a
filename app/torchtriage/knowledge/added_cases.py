"""Cases that a file adds to an entry of another folder: the entry and what is added in, the entry with both out."""

from __future__ import annotations

import re
from dataclasses import replace

from torchtriage.domain.entry import Entry

_CASE = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_ADDS = re.compile(rb"(?m)^adds_to:")


def adds_cases(source: bytes) -> bool:
    """-> whether a file of entries adds cases to one, instead of being one."""
    return _ADDS.search(source) is not None


def with_cases(entry: Entry, added: Entry) -> Entry:
    """-> the entry with the cases of `added` before its own, so that the first that holds is one of them. All else is
    the entry's, as it is today: what is no example of the case can be one of the entry."""
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
    """-> the entry and the case of `area.name/case`; no case where it is the id of an entry."""
    entry, _, case = name.partition("/")
    return entry, case


def is_case_id(case: str) -> bool:
    """-> whether a case can have this id."""
    return _CASE.fullmatch(case) is not None


def file_of(name: str) -> str:
    """-> the file under a folder of knowledge for an entry, or for a case that is added to one."""
    entry, case = split_id(name)
    return f"{entry.replace('.', '/', 1)}{'+' + case if case else ''}.yaml"


def is_in_use(name: str, entries: dict[str, Entry]) -> bool:
    """-> whether these entries have an entry, or a case of one."""
    entry, case = split_id(name)
    found = entries.get(entry)
    return found is not None and (not case or any(own.id == case for own in found.cases))
