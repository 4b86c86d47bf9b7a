"""Takes secrets out of whole answers: lists, dicts and dataclasses with texts in them in, the same without secrets out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from torchtriage.reading.redaction.encoded_secrets import redact_encoded

Value = TypeVar("Value")


def without_secrets(value: Value) -> Value:
    """-> the value with known kinds of secrets taken out of every text in it, names of fields too; the very same value
    where there are none, which one scan of all texts tells."""
    whole = "\n".join(_texts(value))
    return value if redact_encoded(whole) == whole else cast(Value, _cleaned(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(name)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    else:
        for name in getattr(value, "__dataclass_fields__", ()):  # what `fields` reads, which takes ten times as long
            yield from _texts(getattr(value, name))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return redact_encoded(value)
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    if isinstance(value, tuple):
        return tuple(_cleaned(inner) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _cleaned(getattr(value, field.name)) for field in fields(value)})
    return value
