"""Converts verdicts to their stored JSON and back, from any version.

`form` is the number of the JSON's form. Older forms are converted step by step, with one function per form, so that
each change is described once. A server that was downgraded can read the known parts of a newer verdict; the stored row
does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtriage.domain.json_form import from_json_form
from torchtriage.domain.verdict import Verdict
from torchtriage.errors import DamagedJson

_Stored = dict[str, Any]


def to_stored(verdict: Verdict) -> _Stored:
    return verdict.as_dict() | {"form": FORM}


def from_stored(stored: object) -> Verdict:
    """Raises DamagedJson, which names the part that fits no version."""
    if not isinstance(stored, dict):
        raise DamagedJson("Verdict: is not an object")
    form = stored.get("form", 1)
    if type(form) is not int or form < 1:
        raise DamagedJson("form: is not the number of one")
    for upcast in _UPCASTS[form - 1 :]:
        stored = upcast(stored)
    return from_json_form(Verdict, stored)


def _from_unnumbered(stored: _Stored) -> _Stored:
    """Converts form 1 (releases up to 0.1.0), which had no number. The earliest omitted empty values."""
    empty: _Stored = dict.fromkeys(("signature", "fingerprint", "root_cause"))
    empty |= {name: [] for name in ("candidates", "cascades", "attempts", "earlier_runs", "warnings", "timeline")}
    empty |= {"run": {}, "stats": {}, "engine": "", "knowledge": ""}
    return empty | stored


# In order: the first function makes form 2 from form 1.
_UPCASTS: tuple[Callable[[_Stored], _Stored], ...] = (_from_unnumbered,)
FORM = len(_UPCASTS) + 1
