"""Removes secrets from whole answers: lists, dicts and dataclasses that contain texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar, cast

from torchtriage.reading.redaction.encoded_secrets import redact_encoded
from torchtriage.reading.redaction.known_secrets import KnownSecrets

Value = TypeVar("Value")
_NO_TEXTS = frozenset({type(None), bool, int, float})


def without_secrets(value: Value) -> Value:
    """Returns the value with known kinds of secrets removed from every text in it, including names of fields. A secret
    recognized in one text is removed from all. Returns the same object if there are none; one scan of all texts decides
    that."""
    texts: list[str] = []
    _collect((value,), texts)
    whole = "\n".join(texts)
    known = KnownSecrets()
    return value if redact_encoded(whole, known) == whole else cast(Value, _cleaned(value, known))


def _collect(values: Iterable[Any], texts: list[str]) -> None:
    """Adds every text in the values to `texts`, in order. A verdict has a thousand values, of which few are texts."""
    for value in values:
        kind = type(value)
        if kind in _NO_TEXTS:
            continue
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            _collect(chain.from_iterable(value.items()), texts)
        else:
            _collect(value if isinstance(value, list | tuple) else _values_of(kind)(value), texts)  # type: ignore[arg-type]  # a type is hashable


@cache
def _values_of(kind: type) -> Callable[[Any], Iterable[Any]]:
    """Returns a function that returns the values of a dataclass's fields. For other classes, it returns nothing."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    if len(names) < 2:
        return lambda value: [getattr(value, name) for name in names]
    return attrgetter(*names)


def _cleaned(value: Any, known: KnownSecrets) -> Any:
    if isinstance(value, str):
        return redact_encoded(value, known)
    if isinstance(value, dict):
        return {_cleaned(name, known): _cleaned(inner, known) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner, known) for inner in value]
    if isinstance(value, tuple):
        return tuple(_cleaned(inner, known) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _cleaned(getattr(value, field.name), known) for field in fields(value)})
    return value
