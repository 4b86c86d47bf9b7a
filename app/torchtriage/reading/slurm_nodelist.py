"""Slurm's short forms: expands `gpu[001-004,007],login1` to host names, and `0-3,7` to numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from torchtriage.domain.host import host_name
from torchtriage.lazy_regex import lazy_regex

MAX_NAMES = 4096  # names or numbers of one list
LIST = r"[A-Za-z][\w.-]*(?:\[[\d,-]+\][\w.-]*)?(?:,[A-Za-z][\w.-]*(?:\[[\d,-]+\][\w.-]*)?){0,500}"  # as a regex
_PART = lazy_regex(r"([\w.-]+)(?:\[([\d,-]+)\]([\w.-]*))?", re.ASCII)


def hosts(text: str) -> tuple[str, ...]:
    """Returns the hosts of a node list, in order and without repeats, at most the first 4096."""
    names: dict[str, None] = {}
    for name, span, behind in _PART.findall(text):
        if host_name(name) is None:
            continue
        for number in _counted(span) if span else ("",):
            if len(names) >= MAX_NAMES:
                return tuple(names)
            if host := host_name(f"{name}{number}{behind}"):
                names.setdefault(host)
    return tuple(names)


def numbers(text: str) -> tuple[int, ...]:
    """Returns the numbers of a list like `0-3,7`, at most the first 4096."""
    return tuple(int(number) for number in _counted(text))[:MAX_NAMES]


def sorted_hosts(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names in natural order: gpu-2 before gpu-10."""

    def key(name: str) -> list[tuple[int, str]]:
        return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", name[:200])]

    return tuple(sorted(names, key=key))


def _counted(text: str) -> Iterator[str]:
    for span in text.split(","):
        first, _, last = span.partition("-")
        if not first.isdecimal() or len(first) > 9 or len(last) > 9:
            continue
        for number in range(int(first), min(int(last) if last.isdecimal() else int(first), int(first) + MAX_NAMES) + 1):
            yield str(number).zfill(len(first))
