"""An entry that somebody writes in the page: what was typed so far, and what the checks say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from torchtriage.domain.entry import Text

MOST_STEPS = 3


@dataclass(frozen=True, slots=True)
class DraftStep:
    """One thing to do, with its command; all empty where there is none."""

    en: str = ""
    zh: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody typed, whole or not: an entry of one case. `example` are lines of a log that it must explain,
    `near_miss` is a message like it that means something else."""

    entry: str = ""
    title_en: str = ""
    title_zh: str = ""
    kind: Literal["cause", "consequence"] = "cause"
    owner: Literal["user", "framework", "platform", "hardware"] = "user"
    sign: str = ""
    search_in: Literal["exception", "line", "any"] = "exception"
    says_en: str = ""
    says_zh: str = ""
    steps: tuple[DraftStep, ...] = (DraftStep(),) * MOST_STEPS
    retry: Literal["no", "yes", "once"] = "no"
    source: str = ""
    example: str = ""
    near_miss: str = ""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with a draft, at the field that it is typed in (`sign`, `says_zh`, `step2_en` …). A `warning` keeps
    it from nothing."""

    field: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class DraftCheck:
    """What the checks say of a draft. `says` and `steps` are what it would say about its example, None and none where
    it does not speak of it; `known` are the slots that the example fills."""

    problems: tuple[FieldProblem, ...] = ()
    says: Text | None = None
    steps: tuple[Text, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether only warnings are left."""
        return all(problem.warning for problem in self.problems)


class DraftState(StrEnum):
    """draft → tracking → applied, and back."""

    DRAFT = "draft"  # says nothing
    TRACKING = "tracking"  # counts the new incidents that show it, and says nothing
    APPLIED = "applied"  # is an entry like any other


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """A draft as it is kept. `revision` grows with every change, so that nobody writes over what they have not seen;
    `incident` is the one it was drafted from, while that is there. `expect` is what it says about its example."""

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
    """A draft made from a failure, and what of the log its sentences can be filled with, by slot."""

    draft: Draft
    incident: str
    slots: dict[str, str] = field(default_factory=dict)
