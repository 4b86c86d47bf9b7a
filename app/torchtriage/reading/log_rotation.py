"""Recognizes by their names the files that log rotation created from one log, and their order in time."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.lazy_regex import lazy_regex

# train.log.2.gz · train.log-20261120 · train.log.2026-11-20_09 · 0.log.20261120-150916.gz
_CUT = lazy_regex(
    r"^(?P<log>.+?)[.-](?:(?P<number>\d{1,3})|(?P<date>20\d\d-?\d\d-?\d\d(?:[._T-]?[\d-]{1,10})?))(?:\.gz|\.zst)?$"
)


def pieces_of_logs(names: Iterable[str]) -> dict[str, str]:
    """Maps each name of a piece of a rotated log to the name of the log. The log itself is also included.

    Numbered files are pieces only if the log itself exists next to them and none has the number 0. Otherwise the
    numbers may be ranks.
    """
    known = set(names)
    matches = {name: found for name in known if (found := _CUT.match(name))}
    ranked = {found["log"] for found in matches.values() if found["number"] and not int(found["number"])}
    pieces = {name: found["log"] for name, found in matches.items() if found["log"] in known - ranked}
    return pieces | {log: log for log in pieces.values()}


def sort_key(name: str) -> tuple[int, int, str]:
    """Sort key for the pieces of one log, from the oldest to the newest."""
    found = _CUT.match(name)
    if found is None:
        return 1, 0, ""
    return 0, -int(found["number"] or 0), found["date"] or ""
