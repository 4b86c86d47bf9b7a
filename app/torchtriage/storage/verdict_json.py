"""Verdicts as they are stored: a Verdict in, JSON out, and back, whichever version wrote it.

`form` numbers what is written. What an older version wrote is brought to today's form step by step, one function a
form, so that each says what changed once. A newer version's verdict, which a server sees that was set back to an older
release, is read as far as it is known; its row stays as it is.
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
    """Raises DamagedJson, whose message names the part that is in the form of no version."""
    if not isinstance(stored, dict):
        raise DamagedJson("Verdict: is not an object")
    form = stored.get("form", 1)
    if type(form) is not int or form < 1:
        raise DamagedJson("form: is not the number of one")
    for upcast in _UPCASTS[form - 1 :]:
        stored = upcast(stored)
    return from_json_form(Verdict, stored)


def _from_unnumbered(stored: _Stored) -> _Stored:
    """Form 1, of releases up to 0.1.0, had no number. The earliest left out what was empty."""
    empty: _Stored = dict.fromkeys(("signature", "fingerprint", "root_cause"))
    empty |= {name: [] for name in ("candidates", "cascades", "attempts", "earlier_runs", "warnings", "timeline")}
    empty |= {"run": {}, "stats": {}, "engine": "", "knowledge": ""}
    return empty | stored


# In the order of the forms: the first one makes form 2 of form 1.
_UPCASTS: tuple[Callable[[_Stored], _Stored], ...] = (_from_unnumbered,)
FORM = len(_UPCASTS) + 1
