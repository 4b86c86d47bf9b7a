"""Finds how the sizes in a message are related, and returns the arithmetic that explains it."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, isqrt, prod

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

_WITHIN = 600  # characters of a message that are searched
_PRODUCT = lazy_regex(r"\b(\d{1,12})x(\d{1,12}) and (\d{1,12})x(\d{1,12})\b")
_VIEW = lazy_regex(r"'?\[(-?\d{1,12}(?:, ?-?\d{1,12}){0,7})\]'? .{1,60} size (\d{1,12})\b")
_SHAPE = lazy_regex(r"[\[(](\d{1,12}(?:, ?\d{1,12}){1,7})[\])]")
_IN_BRACKETS = lazy_regex(r"\((\d{1,12})\)")
_NAMED = lazy_regex(r"\bsize (\d{1,12})\b")
_NUMBER = lazy_regex(r"(?<![\w.\-/:])\d{1,9}(?![\w/:]|\.\d)")
_MIN_SIZE = 8  # smaller sizes are often multiples of each other by chance
_MIN_SIDE = 7  # patches along an image
_MAX_TIMES, _MAX_APART = 64, 4
_MAX_DIVISOR = 4096
_MIN_FLATTENED, _MAX_SIDE = 256, 64


def size_arithmetic(failure: Failure) -> Iterator[Fact]:
    """Yields facts about the sizes in the message.

    `relation`: how two sizes that do not fit are related (`4608 = 3 × 1536`, `577 = 24² + 1, 257 = 16² + 1`).
    `turned_operand`: the matrix of a product that would fit after a transpose. `packed_outputs`: the number of outputs
    of a layer whose weight is one row of packed 4-bit values. `side_ratio`: how many times as long the sides of a
    flattened feature map are as the layer expects (`16/7`). `division`: the larger of the only two numbers in a
    message, divided by the smaller (`46 = 11 × 4 + 2`). `fitting_size`: the first size of a shape that would be correct
    if the other sizes are, and `first_size`, its current value. `fitting_side`: the side of a square map that would
    be correct in a shape that ends with two equal sides, and `given_side`, its current value.
    """
    raised = failure.raised
    if raised is None:
        return
    message = raised.message[:_WITHIN]
    if product := _PRODUCT.search(message):
        rows, inner, other, columns = map(int, product.groups())
        if inner != other and (rows == other or inner == columns):
            yield failure.fact("turned_operand", product[0].split(" and ")[0 if rows == other else 1])
        if other == 1 and columns * 2 % inner == 0:
            yield failure.fact("packed_outputs", columns * 2 // inner)
        if sides := _side_ratio(inner, other):
            yield failure.fact("side_ratio", sides)
    if related := _relation(message):
        yield failure.fact("relation", related)
    if fitting := _fitting(message):
        yield failure.fact("first_size", fitting[0])
        yield failure.fact("fitting_size", fitting[1])
    if sides_of_map := _fitting_side(message):
        yield failure.fact("given_side", sides_of_map[0])
        yield failure.fact("fitting_side", sides_of_map[1])
    if divided := _division(message):
        yield failure.fact("division", divided)


def _side_ratio(given: int, expected: int) -> str | None:
    """Returns how many times as long the sides of a square feature map are, if two flattened sizes differ by the square
    of a simple ratio."""
    common = gcd(given, expected)
    if min(given, expected) < _MIN_FLATTENED or common == 0:
        return None
    over, under = isqrt(given // common), isqrt(expected // common)
    if given == expected or over**2 * common != given or under**2 * common != expected or max(over, under) > _MAX_SIDE:
        return None
    return f"{over}/{under}" if under > 1 else str(over)


def _relation(message: str) -> str | None:
    if view := _VIEW.search(message):
        return _view_product([int(size) for size in view[1].split(",")], int(view[2]))
    pair = _pair(message)
    if pair is None or min(pair) < _MIN_SIZE or pair[0] == pair[1]:
        return None
    large, small = max(pair), min(pair)
    sides = [isqrt(size - 1) for size in pair]
    if all(side >= _MIN_SIDE and side * side + 1 == size for side, size in zip(sides, pair, strict=True)):
        return ", ".join(f"{size} = {side}² + 1" for side, size in zip(sides, pair, strict=True))
    if large % small == 0 and large // small <= _MAX_TIMES:
        return f"{large} = {large // small} × {small}"
    sides = [isqrt(size) for size in pair]
    if all(side >= _MIN_SIDE and side * side == size for side, size in zip(sides, pair, strict=True)):
        return ", ".join(f"{size} = {side}²" for side, size in zip(sides, pair, strict=True))
    return f"{large} = {small} + {large - small}" if large - small <= _MAX_APART else None


def _pair(message: str) -> tuple[int, int] | None:
    """Returns the two sizes that a message compares, if it names exactly two."""
    if product := _PRODUCT.search(message):
        return int(product[2]), int(product[3])
    for form in (_IN_BRACKETS, _NAMED):
        sizes = [int(size) for size in form.findall(message)]
        if len(sizes) == 2:
            return sizes[0], sizes[1]
    shapes = [tuple(map(int, shape.split(","))) for shape in _SHAPE.findall(message)]
    if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]):
        differ = [(one, other) for one, other in zip(*shapes, strict=True) if one != other]
        return differ[0] if len(differ) == 1 else None
    return None


def _view_product(target: list[int], elements: int) -> str | None:
    """Returns the product of a shape's sizes, compared with the number of elements."""
    wanted = prod(size for size in target if size > 0)
    if wanted in (0, 1, elements) or not elements:
        return None
    large, small = max(wanted, elements), min(wanted, elements)
    times, rest = divmod(large, small)
    if len(target) > 1 and -1 not in target:
        held = f"{' × '.join(map(str, target))} = {wanted}"
        return held if rest else f"{held}; {large} = {times} × {small}"
    return f"{large} = {times} × {small} + {rest}" if rest else f"{large} = {times} × {small}"


def _fitting(message: str) -> tuple[int, int] | None:
    """Returns the first size of a shape that does not fit the number of elements, and the size that would fit if all
    others are correct."""
    view = _VIEW.search(message)
    first, *others = [int(size) for size in view[1].split(",")] if view else [0]
    rest = prod(size for size in others if size != -1)
    if view is None or first < 1 or not others or rest < 1:
        return None
    fitting, left = divmod(int(view[2]), rest)
    return (first, fitting) if left == 0 and fitting not in (0, first) else None


def _fitting_side(message: str) -> tuple[int, int] | None:
    """Returns the equal last two sizes of a shape that does not fit the number of elements, and the size that would fit
    if the sizes before them are correct: 802816 elements in [32, 128, 9, 9] are maps of 14 × 14."""
    view = _VIEW.search(message)
    sizes = [int(size) for size in view[1].split(",")] if view else []
    if view is None or len(sizes) < 3 or sizes[-1] != sizes[-2] or min(sizes) < 1 or sizes[-1] == 1:
        return None
    area, left = divmod(int(view[2]), prod(sizes[:-2]))
    side = isqrt(area)
    return (sizes[-1], side) if left == 0 and side * side == area and side not in (0, sizes[-1]) else None


def _division(message: str) -> str | None:
    first = message.strip().split("\n", 1)[0]
    numbers = list(dict.fromkeys(int(number) for number in _NUMBER.findall(first)))
    if len(numbers) != 2 or not 1 < min(numbers) <= _MAX_DIVISOR:
        return None
    large, small = max(numbers), min(numbers)
    times, rest = divmod(large, small)
    return f"{large} = {times} × {small} + {rest}" if rest else None
