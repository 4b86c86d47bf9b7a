"""Converts the form of a draft into a draft, and finds the fields in which two drafts differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from torchtriage.domain.draft import MAX_STEPS, Draft, DraftStep

MAX_LENGTH = 400_000  # bytes of the form: a character can take nine of them
_CHOICES = {name: get_args(kind) for name, kind in get_type_hints(Draft).items() if get_args(kind) and name != "steps"}
OWNERS, KINDS, PLACES, RETRIES = (_CHOICES[name] for name in ("owner", "kind", "search_in", "retry"))


@dataclass(frozen=True, slots=True)
class Differing:
    """A field in which two people entered different values."""

    field: str
    theirs: str


def draft_of_form(given: Mapping[str, str]) -> Draft:
    """Returns the draft that was typed. An invalid choice is replaced by the first one."""
    typed = {name: given.get(name, "").replace("\r\n", "\n") for name in field_names()}
    steps = (DraftStep(*(typed[f"step{number}_{part}"] for part in ("en", "zh", "run"))) for number in _numbers())
    values: dict[str, Any] = {field.name: typed[field.name] for field in fields(Draft) if field.name != "steps"}
    values |= {name: values[name] if values[name] in some else some[0] for name, some in _CHOICES.items()}
    return Draft(**values, steps=tuple(steps))


def field_names() -> list[str]:
    """Returns the fields of the form, in the order of the page."""
    steps = [f"step{number}_{part}" for number in _numbers() for part in ("en", "zh", "run")]
    return [*(field.name for field in fields(Draft) if field.name != "steps"), *steps]


def values_of(draft: Draft) -> dict[str, str]:
    """Returns the value of each field."""
    values = {field.name: getattr(draft, field.name) for field in fields(Draft) if field.name != "steps"}
    for number, step in zip(_numbers(), (*draft.steps, *[DraftStep()] * MAX_STEPS), strict=False):
        values |= {f"step{number}_{part}": getattr(step, part) for part in ("en", "zh", "run")}
    return values


def differing(mine: Draft, theirs: Draft) -> tuple[Differing, ...]:
    """Returns the fields in which another person's draft differs from mine, with their values."""
    own, others = values_of(mine), values_of(theirs)
    return tuple(Differing(name, others[name]) for name in field_names() if own[name] != others[name])


def _numbers() -> range:
    return range(1, MAX_STEPS + 1)
