"""Renames the keys of entries that were written for earlier versions."""

from __future__ import annotations

from typing import Any

from torchtriage.knowledge.yaml_positions import Path

_OF_ENTRIES = {
    "general": ("needs_training_log", None),
    "catch_all": ("fallback", None),
    "other_actions": ("action_when", None),
}
_OF_SIGNS = {
    "weak": ("severity", {True: "warning", False: "error"}),
    "broad": ("last_resort", None),
    "in": ("search_in", None),
}
_OF_PARTS = {"shown_by": ("when_message_has", None)}
Renamed = tuple[Path, str]  # place of the old key, and the new key as it is written in YAML


def with_current_keys(entry: Any) -> tuple[Any, list[Renamed]]:
    """Returns the data of an entry's file with current keys, and each key that was renamed."""
    renamed: list[Renamed] = []
    if not isinstance(entry, dict):
        return entry, renamed
    written = {new: old for old, (new, _) in _OF_ENTRIES.items() if old in entry}
    entry = _with_keys(entry, (), _OF_ENTRIES, renamed)
    if "signs" in entry:
        entry["signs"] = _signs(entry["signs"], ("signs",), renamed)
    for name in ("causes", "fixes", "action_when"):
        if isinstance(entry.get(name), list):
            place = written.get(name, name)
            entry[name] = [_with_keys(part, (place, at), _OF_PARTS, renamed) for at, part in enumerate(entry[name])]
    return entry, renamed


def _signs(signs: Any, place: Path, renamed: list[Renamed]) -> Any:
    if not isinstance(signs, list):
        return signs
    found = [_with_keys(sign, (*place, at), _OF_SIGNS, renamed) for at, sign in enumerate(signs)]
    for at, sign in enumerate(found):
        if isinstance(sign, dict) and "all" in sign:
            sign["all"] = _signs(sign["all"], (*place, at, "all"), renamed)
    return found


def _with_keys(data: Any, place: Path, keys: dict[str, Any], renamed: list[Renamed]) -> Any:
    """Returns a mapping with the old keys renamed. If old and new key are both present, the old one stays and is
    rejected later."""
    if not isinstance(data, dict):
        return data
    found: dict[Any, Any] = {}
    for key, value in data.items():
        new, values = keys.get(key, (None, None)) if isinstance(key, str) else (None, None)
        if new is None or new in data:
            found[key] = value
            continue
        found[new] = values.get(value, value) if values and isinstance(value, bool) else value
        renamed.append(((*place, key), f"{new}: {found[new]}" if values else new))
    return found
