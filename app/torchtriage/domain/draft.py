"""An entry that somebody writes on the web page: the text so far, and the results of its checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from torchtriage.domain.entry import Text

MAX_STEPS = 3


@dataclass(frozen=True, slots=True)
class DraftStep:
    """One step of a draft, with its command. All fields are empty if there is no step."""

    en: str = ""
    zh: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody typed, complete or not: an entry with one case. `example` are lines of a log that it must explain.
    `near_miss` is a similar message that means something else."""

    entry: str = ""
    title_en: str = ""
    title_zh: str = ""
    kind: Literal["cause", "consequence"] = "cause"
    owner: Literal["user", "framework", "platform", "hardware"] = "user"
    sign: str = ""
    search_in: Literal["exception", "line", "any"] = "exception"
    says_en: str = ""
    says_zh: str = ""
    steps: tuple[DraftStep, ...] = (DraftStep(),) * MAX_STEPS
    retry: Literal["no", "yes", "once"] = "no"
    source: str = ""
    example: str = ""
    near_miss: str = ""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem of a draft, at the field in which it was typed (`sign`, `says_zh`, `step2_en` …). A `warning` does not
    stop the draft from being used."""

    field: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class DraftCheck:
    """The results of the checks of a draft. `says` and `steps` are what it would answer for its example; they are None
    and empty if it does not match the example. `known` are the slots that the example fills."""

    problems: tuple[FieldProblem, ...] = ()
    says: Text | None = None
    steps: tuple[Text, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether there are no problems except warnings."""
        return all(problem.warning for problem in self.problems)


class DraftState(StrEnum):
    """The states of a draft: draft, tracking, applied. It can also go back."""

    DRAFT = "draft"  # does not match anything
    TRACKING = "tracking"  # counts new incidents that match it, but is not used in verdicts
    APPLIED = "applied"  # is used like any other entry


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """A stored draft. `revision` grows with every change, so that nobody overwrites a version that they have not seen.
    `incident` is the incident from which it was drafted, if it still exists. `expect` is its answer for its example."""

    id: str
    revision: int
    draft: Draft
    created_by: str
    created_at: datetime
    changed_by: str
    changed_at: datetime
    incident: str | None = None
    expect: Text | None = None
    state: DraftState = DraftState.DRAFT
    approved_by: str | None = None
    approved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A draft made from a failure, with the values from the log that can fill its sentences, by slot."""

    draft: Draft
    incident: str
    slots: dict[str, str] = field(default_factory=dict)
