"""Files that a rotation cut out of one log: names in, the log that each belongs to and their order in time out."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.lazy_regex import lazy_regex

# train.log.2.gz · train.log-20261120 · train.log.2026-11-20_09 · 0.log.20261120-150916.gz
_CUT = lazy_regex(
    r"^(?P<log>.+?)[.-](?:(?P<number>\d{1,3})|(?P<date>20\d\d-?\d\d-?\d\d(?:[._T-]?[\d-]{1,10})?))(?:\.gz|\.zst)?$"
)


def pieces_of_logs(names: Iterable[str]) -> dict[str, str]:
    """-> of each name that is a piece of a rotated log, the log it was cut from; that one is among its own pieces.

    Numbered names are pieces only where the log itself lies beside them and none is numbered 0, as files that are
    numbered by rank are.
    """
    known = set(names)
    matches = {name: found for name in known if (found := _CUT.match(name))}
    ranked = {found["log"] for found in matches.values() if found["number"] and not int(found["number"])}
    pieces = {name: found["log"] for name, found in matches.items() if found["log"] in known - ranked}
    return pieces | {log: log for log in pieces.values()}


def sort_key(name: str) -> tuple[int, int, str]:
    """-> what sorts the pieces of one log from the oldest to the newest."""
    found = _CUT.match(name)
    if found is None:
        return 1, 0, ""
    return 0, -int(found["number"] or 0), found["date"] or ""
