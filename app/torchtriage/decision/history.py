"""Reads the earlier attempts of a job from JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from torchtriage.domain.decision import AttemptRecord
from torchtriage.domain.host import host_name

MAX_ATTEMPTS = 1000  # attempts at most
_Word = Annotated[str, Field(max_length=500)]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class AttemptForm(BaseModel):
    """One earlier attempt, in the form of a decision's `attempt`. It counts as failed unless `outcome` says
    otherwise."""

    model_config = ConfigDict(extra="forbid")

    attempt: _Count = Field(description="The attempt of the job, counted from 0")
    outcome: Annotated[str, Field(pattern="^(explained|unexplained|healthy|inconclusive|unknown)$")] | None = None
    entry: _Word | None = Field(None, description="The entry that names its cause")
    fingerprint: _Word | None = None
    step: _Count | None = Field(None, description="The last step that its log shows")
    host: _Word | None = Field(None, description="The host that failed first")
    rank: _Count | None = None

    def record(self) -> AttemptRecord:
        outcome = self.outcome or ("explained" if self.entry else "unexplained")
        return AttemptRecord(
            self.attempt, outcome, self.entry, self.fingerprint, self.step, host_name(self.host), self.rank
        )


History = Annotated[list[AttemptForm], Field(max_length=MAX_ATTEMPTS)]
_history = TypeAdapter(History)


def read_history(text: str) -> tuple[AttemptRecord, ...]:
    """Returns the attempts in a JSON list, or in lines with one JSON object each. If an object is a decision, its
    `attempt` is used.

    Raises ValueError with a sentence for the user.
    """
    if not text.strip():
        return ()
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else [*map(json.loads, text.strip().splitlines())]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    try:
        forms = _history.validate_python([_attempt(one) for one in found])
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return tuple(form.record() for form in forms)


def _attempt(given: Any) -> Any:
    inner = given.get("attempt") if isinstance(given, dict) else None
    return inner if isinstance(inner, dict) else given
