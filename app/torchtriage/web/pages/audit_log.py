"""Describes the changes in the audit log in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from torchtriage.domain.access import Change
from torchtriage.domain.entry import Language
from torchtriage.web.pages.translations import catalogue, word

_WITH_PAGES = ("incident", "group", "draft")


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """Who changed what, in words. `address` is the page of the changed object, or None if it has none."""

    at: datetime
    by: str
    did: str
    thing: str
    address: str | None


def change_lines(changes: Iterable[Change], lang: Language) -> tuple[ChangeLine, ...]:
    """Returns the changes in words. Actions of an older version that are unknown now are shown as they were stored."""
    return tuple(_line(change, lang) for change in changes)


def _line(change: Change, lang: Language) -> ChangeLine:
    kind, _, name = change.subject.partition(" ")
    undone = change.detail.get("undoes")
    did, thing = f"did_{change.action.replace(' ', '_')}", f"thing_{kind}"
    if isinstance(undone, str) and (undo := f"did_undo_{undone.replace(' ', '_')}") in catalogue():
        did = undo
    after = change.detail.get("after")
    if isinstance(after, dict) and (judged := f"{did}_{after.get('verdict')}") in catalogue():
        did = judged
    return ChangeLine(
        change.at,
        change.by,
        word(lang, did) if did in catalogue() else change.action,
        word(lang, thing, name=name) if thing in catalogue() else change.subject,
        f"/{kind}s/{name}" if name and kind in _WITH_PAGES and change.action not in ("forget", "remove") else None,
    )
