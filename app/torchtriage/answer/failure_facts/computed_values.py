"""Arithmetic and spelling: what follows from the values that a case took out of a message, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from torchtriage.lazy_regex import lazy_regex

_LEAST_ALIKE = 70  # percent: of a choice that a mistyped word can mean
_MOST_CHOICES = 200
_MOST_TRIED = 4096  # as a divisor, so that no message makes a long loop
_FARTHEST = 4  # times the divisor: a larger one is no alternative to it
_CHOICE = lazy_regex(r"[\w.:/+-]+")
_NUMBER = lazy_regex(r"\d{1,18}")


def computed_values(values: Mapping[str, str]) -> dict[str, str]:
    """`dividend` and `divisor` tell `multiple_below` and `multiple_above`, the multiples of the divisor beside the
    dividend, and `divisor_below` and `divisor_above`, the dividend's own divisors beside the divisor, where it is no
    multiple. `have` and `limit`, or `have` and `want`, tell `difference`; `surplus` is that of a `have` above `want`.
    `product`, `factor` and `other_factor` tell `third_factor`, which makes the product of the three right. `written`
    and `choices` tell `nearest_choice`, what a mistyped word can mean."""
    told: dict[str, str] = {}
    dividend, divisor = _number(values, "dividend"), _number(values, "divisor")
    if dividend and divisor and dividend % divisor:
        below = dividend - dividend % divisor
        beside = {"multiple_below": below, "multiple_above": below + divisor} | _divisors_beside(dividend, divisor)
        told |= {name: str(number) for name, number in beside.items() if number}
    have = _number(values, "have")
    other = _number(values, "limit") or _number(values, "want")
    if have is not None and other is not None and have != other:
        told["difference"] = str(abs(have - other))
        if have > other and "want" in values:
            told["surplus"] = told["difference"]
    factors = (_number(values, "factor") or 0) * (_number(values, "other_factor") or 0)
    product = _number(values, "product")
    if factors and product and product % factors == 0:
        told["third_factor"] = str(product // factors)
    if "written" in values and "choices" in values:
        from rapidfuzz import fuzz, process  # here, as few messages list what they accept

        choices = list(dict.fromkeys(_CHOICE.findall(values["choices"])))[:_MOST_CHOICES]
        nearest = process.extractOne(values["written"], choices, scorer=fuzz.ratio, score_cutoff=_LEAST_ALIKE)
        told |= {"nearest_choice": nearest[0]} if nearest and nearest[0] != values["written"] else {}
    return told


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "").replace(",", "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _divisors_beside(dividend: int, divisor: int) -> dict[str, int]:
    """-> the next divisors of `dividend` below and above `divisor`, 0 where there is none but 1 and itself."""
    if divisor > _MOST_TRIED:
        return {}
    sides = {
        "divisor_below": range(divisor - 1, 1, -1),
        "divisor_above": range(divisor + 1, min(_FARTHEST * divisor, dividend)),
    }
    return {name: next((one for one in side if dividend % one == 0), 0) for name, side in sides.items()}
