"""Computes values from those that a case captured from a message, such as differences, divisors and the nearest
spelling."""

from __future__ import annotations

from collections.abc import Mapping

from torchtriage.lazy_regex import lazy_regex

_MIN_SIMILARITY = 70  # percent: the lowest similarity at which a choice can be what a mistyped word means
_MAX_CHOICES = 200
_MAX_DIVISOR = 4096  # largest divisor that is tried, so that no message causes a long loop
_MAX_RATIO = 4  # times the divisor: a larger divisor is no useful alternative
_CHOICE = lazy_regex(r"[\w.:/+-]+")
_NUMBER = lazy_regex(r"\d{1,18}")
_UNITS = "KMGT"
_SIZE = lazy_regex(r"(\d{1,9}(?:\.\d{1,6})?) ?([KMGT])(?:i?B)?")


def computed_values(values: Mapping[str, str]) -> dict[str, str]:
    """Returns values computed from captured ones, by name.

    - `dividend` and `divisor` give `multiple_below` and `multiple_above`, the multiples of the divisor next to the
    dividend. If the dividend is no multiple, they also give `divisor_below` and `divisor_above`, its own divisors next
    to the divisor.

    - `have` and `limit`, or `have` and `want`, give `difference`. `surplus` is the difference if `have` is above
    `want`.

    - `used` and `limit`, two sizes with units, give `times_limit` if more is used: how many times the limit it is.

    - `product`, `factor` and `other_factor` give `third_factor`, so that the three factors make the product.

    - `written` and `choices` give `nearest_choice`, the choice that a mistyped word can mean.
    """
    computed: dict[str, str] = {}
    dividend, divisor = _number(values, "dividend"), _number(values, "divisor")
    if dividend and divisor and dividend % divisor:
        below = dividend - dividend % divisor
        neighbours = {"multiple_below": below, "multiple_above": below + divisor} | _neighbouring_divisors(
            dividend, divisor
        )
        computed |= {name: str(number) for name, number in neighbours.items() if number}
    have = _number(values, "have")
    other = _number(values, "limit") or _number(values, "want")
    if have is not None and other is not None and have != other:
        computed["difference"] = str(abs(have - other))
        if have > other and "want" in values:
            computed["surplus"] = computed["difference"]
    used, most = _size(values, "used"), _size(values, "limit")
    if used and most and used > most:
        computed["times_limit"] = f"{used / most:.1f}"
    factors = (_number(values, "factor") or 0) * (_number(values, "other_factor") or 0)
    product = _number(values, "product")
    if factors and product and product % factors == 0:
        computed["third_factor"] = str(product // factors)
    if "written" in values and "choices" in values:
        from rapidfuzz import fuzz, process  # imported here, because few messages list the accepted values

        choices = list(dict.fromkeys(_CHOICE.findall(values["choices"])))[:_MAX_CHOICES]
        nearest = process.extractOne(values["written"], choices, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY)
        computed |= {"nearest_choice": nearest[0]} if nearest and nearest[0] != values["written"] else {}
    return computed


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "").replace(",", "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _size(values: Mapping[str, str], name: str) -> float | None:
    """Returns a size such as `7.48G` in KiB."""
    found = _SIZE.fullmatch(values.get(name, ""))
    return float(found[1]) * 1024 ** _UNITS.index(found[2]) if found else None


def _neighbouring_divisors(dividend: int, divisor: int) -> dict[str, int]:
    """Returns the next divisors of `dividend` below and above `divisor`. A value is 0 if only 1 or the dividend itself
    is left."""
    if divisor > _MAX_DIVISOR:
        return {}
    sides = {
        "divisor_below": range(divisor - 1, 1, -1),
        "divisor_above": range(divisor + 1, min(_MAX_RATIO * divisor, dividend)),
    }
    return {name: next((one for one in side if dividend % one == 0), 0) for name, side in sides.items()}
