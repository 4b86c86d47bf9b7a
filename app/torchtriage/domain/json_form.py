"""Converts dataclasses to JSON values and back, so that stored and public data have the form of the types.

A type with another form than that of its fields has `to_json`, and `from_json` if it is read back. Unknown keys, which
a newer version wrote, are ignored; missing keys, which an older version did not write, get the field's default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from torchtriage.domain.timestamps import iso
from torchtriage.errors import DamagedJson

Scalar = str | int | float | bool | None
Kind = TypeVar("Kind")
_Read = Callable[[Any], Any]
_NAMES: dict[Any, tuple[str, ...]] = {}  # the fields of each type, looked up once
_READERS: dict[Any, _Read] = {}  # the function for each type, made once
_CALLED = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
_PLAIN = frozenset((str, int, float, bool, NoneType))


def json_form(value: Any) -> Any:
    """Returns the value as lists, dicts and scalars."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [json_form(inner) for inner in value]
    if kind is dict:
        return {name: json_form(inner) for name, inner in value.items()}
    if hasattr(kind, "to_json"):
        return value.to_json()
    if is_dataclass(kind):
        return fields_form(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{kind.__name__} has no form in JSON")


def fields_form(value: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass, each as JSON."""
    return {name: json_form(getattr(value, name)) for name in _names(type(value))}


def from_json_form(kind: type[Kind], data: Any) -> Kind:
    """Returns the dataclass from which `json_form` made this data. Raises DamagedJson, which names the part that does
    not fit."""
    try:
        return cast(Kind, _reader(kind)(data))
    except _Misfit as misfit:
        raise DamagedJson(f"{'.'.join(misfit.path) or kind.__name__}: {misfit.problem}") from None


class _Misfit(Exception):
    """A value that does not have its type. `path` is built while the error passes upward, so that reading correct
    values stays fast."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path: list[str] = []


def _names(kind: Any) -> tuple[str, ...]:
    if kind not in _NAMES:
        _NAMES[kind] = tuple(known.name for known in fields(kind))
    return _NAMES[kind]


def _reader(kind: Any) -> _Read:
    """Returns the function that makes a value of this type from its JSON."""
    if kind not in _READERS:
        _READERS[kind] = _new_reader(kind)
    return _READERS[kind]


def _new_reader(kind: Any) -> _Read:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda data: data
    if origin in (Union, UnionType):
        return _union_reader(inner)
    if origin is tuple:
        return _list_reader(_reader(inner[0])) if inner[-1] is ... else _tuple_reader([*map(_reader, inner)])
    if origin is dict:
        return _dict_reader(_reader(inner[1]))
    if origin is Literal:
        return _literal_reader(inner)
    if hasattr(kind, "from_json"):
        return _converter(kind.from_json)
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    if issubclass(kind, Enum):
        return _converter(kind)
    if kind is datetime:
        return _converter(datetime.fromisoformat)
    return _scalar_reader(kind)


def _scalar_reader(kind: type) -> _Read:
    kinds = (float, int) if kind is float else (kind,)  # a whole number is written without its decimal point
    problem = f"is not {_CALLED.get(kind, kind.__name__)}"

    def read(data: Any) -> Any:
        if type(data) in kinds:
            return data
        raise _Misfit(problem)

    return read


def _literal_reader(values: tuple[Any, ...]) -> _Read:
    def read(data: Any) -> Any:
        if data in values:
            return data
        raise _Misfit(f"is not one of {', '.join(map(str, values))}")

    return read


def _converter(convert: _Read) -> _Read:
    def read(data: Any) -> Any:
        try:
            return convert(data)
        except (TypeError, ValueError) as error:
            raise _Misfit(str(error)) from None

    return read


def _union_reader(kinds: tuple[Any, ...]) -> _Read:
    """In a union of types, scalars are recognized by the type of the value. At most one member may be a type other than
    a scalar."""
    scalars = frozenset(kind for kind in kinds if kind in _PLAIN) | (
        frozenset((int,)) if float in kinds else frozenset()
    )
    others = [_reader(kind) for kind in kinds if kind not in _PLAIN]

    def read(data: Any) -> Any:
        if type(data) in scalars:
            return data
        if not others:
            raise _Misfit(f"is not {' or '.join(sorted(_CALLED.get(kind, kind.__name__) for kind in kinds))}")
        return others[0](data)

    return read


def _list_reader(item: _Read) -> _Read:
    def read(data: Any) -> tuple[Any, ...]:
        if type(data) is not list and type(data) is not tuple:
            raise _Misfit("is not a list")
        found: list[Any] = []
        try:
            found.extend(map(item, data))  # the values read before the error are kept, so that its place is known
        except _Misfit as misfit:
            misfit.path.insert(0, str(len(found)))
            raise
        return tuple(found)

    return read


def _tuple_reader(items: list[_Read]) -> _Read:
    def read(data: Any) -> tuple[Any, ...]:
        if type(data) not in (list, tuple) or len(data) != len(items):
            raise _Misfit(f"is not a list of {len(items)}")
        return tuple(item(inner) for item, inner in zip(items, data, strict=True))

    return read


def _dict_reader(value: _Read) -> _Read:
    def read(data: Any) -> dict[str, Any]:
        if type(data) is not dict:
            raise _Misfit("is not an object")
        name = ""
        found = {}
        try:
            for name, inner in data.items():
                found[name] = value(inner)
        except _Misfit as misfit:
            misfit.path.insert(0, name)
            raise
        return found

    return read


def _dataclass_reader(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    readers = {known.name: _reader(hints[known.name]) for known in fields(kind)}
    required = {known.name for known in fields(kind) if known.default is MISSING and known.default_factory is MISSING}

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise _Misfit("is not an object")
        if missing := required - data.keys():
            raise _Misfit(f"has no {min(missing)}")
        name = ""
        given = {}
        try:
            for name, inner in readers.items():
                if name in data:
                    given[name] = inner(data[name])
        except _Misfit as misfit:
            misfit.path.insert(0, name)
            raise
        return kind(**given)

    return read
