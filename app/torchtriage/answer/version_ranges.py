"""Compares a version range of the knowledge base (`torch>=2.1`, `torch>=1.8,<2.1`) with the versions that a log
shows."""

from __future__ import annotations

from functools import lru_cache

from torchtriage.lazy_regex import lazy_regex

_PART = lazy_regex(r"^([a-z][\w.-]*?)? *(>=|<=|==|<|>) *(\d+(?:\.\d+)*)$")
_PLAIN = lazy_regex(r"^\d+(?:\.\d+)*")
_LAST = (1 << 30,)

VersionRange = tuple[tuple[int, ...], tuple[int, ...]]  # from the first version (included) to the last (excluded)


def shown(applies: str, versions: dict[str, str]) -> tuple[str | None, bool | None]:
    """Returns the version of the range's package as the log shows it, and whether the range covers it (None if
    unknown).

    `versions` contains versions (`2.6.0+cu124`) and inferred ranges (`>=2.3,<2.5`). For an inferred range it can be
    unknown whether it is covered.
    """
    wanted, package = _span(applies), _package(applies)
    version = versions.get(package or "")
    plain = _PLAIN.match(version or "")
    known = _span(f"=={plain[0]}" if plain else version or "")
    if wanted is None or known is None:
        return None, None
    inside = wanted[0] <= known[0] and known[1] <= wanted[1]
    outside = known[1] <= wanted[0] or wanted[1] <= known[0]
    return version, True if inside else False if outside else None


@lru_cache(maxsize=1024)
def _package(applies: str) -> str | None:
    first = _PART.match(applies.split(",")[0].strip())
    return first[1] if first else None


@lru_cache(maxsize=1024)
def _span(text: str) -> VersionRange | None:
    """Returns the versions that meet all parts of a range. `==1.10` means 1.10 and all its patch releases."""
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = _LAST
    for part in text.split(","):
        found = _PART.match(part.strip())
        if found is None:
            return None
        numbers = [int(number) for number in found[3].split(".")]
        version, after = _bare(numbers), _bare([*numbers[:-1], numbers[-1] + 1])
        if found[2] in (">=", "==", ">"):
            low = max(low, after if found[2] == ">" else version)
        if found[2] in ("<", "==", "<="):
            high = min(high, version if found[2] == "<" else after)
    return low, high


def _bare(numbers: list[int]) -> tuple[int, ...]:
    """Returns the parts of a version without trailing zeros: 2.1.0 becomes 2.1."""
    size = max((place for place, number in enumerate(numbers, 1) if number), default=0)
    return tuple(numbers[:size])
