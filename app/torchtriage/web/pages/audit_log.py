"""Describes the changes in the audit log in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torchtriage.domain.access import AuditLine
from torchtriage.domain.entry import Language
from torchtriage.web.pages.translations import catalogue, word

# The recorded values that are shown. Each has a word; the rest is in the API.
SHOWN = ("name", "scopes", "expires_at", "status", "owner", "note", "muted_until", "entry", "job_name", "channel",
          "into", "groups", "changed", "id", "title")  # fmt: skip
_MAX_LENGTH = 200  # characters of a value
_WITH_PAGES = ("incident", "group", "draft")


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """Who changed what, in words. `address` is the page of the changed object, or None if it has none. `details` are
    the changed values, each with the name of its word."""

    at: datetime
    by: str
    did: str
    thing: str
    address: str | None
    details: tuple[tuple[str, str], ...] = ()


def change_lines(changes: Iterable[AuditLine], lang: Language) -> tuple[ChangeLine, ...]:
    """Returns the changes in words. Actions of an older version that are unknown now are shown as they were stored."""
    return tuple(_line(change, lang) for change in changes)


def _line(change: AuditLine, lang: Language) -> ChangeLine:
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
        _details(change.detail, lang),
    )


def _details(detail: Mapping[str, Any], lang: Language) -> tuple[tuple[str, str], ...]:
    """Returns the values that were changed, as `old → new`, or those that were set or are gone."""
    before, after = detail.get("before"), detail.get("after")
    was, now = before if isinstance(before, dict) else {}, after if isinstance(after, dict) else {}
    known = {**detail, **(now or was)}
    texts = ((name, _text(name, was.get(name), lang), _text(name, known.get(name), lang)) for name in SHOWN)
    return tuple(
        (name, f"{old} → {new or '–'}" if old and now else new)
        for name, old, new in texts
        if (old or new) and not (now and old == new)
    )


def _text(name: str, value: object, lang: Language) -> str:
    if isinstance(value, list):
        return ", ".join(_text(name, one, lang) for one in value)
    if name == "status" and (status := f"status_{value}") in catalogue():
        return word(lang, status)
    return str(value)[:_MAX_LENGTH] if isinstance(value, str | int) and not isinstance(value, bool) else ""
