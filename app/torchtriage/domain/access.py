"""Who may do what: callers, their scopes, the tokens that stand for them, and the audit log of what they changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from torchtriage.domain.json_form import fields_form, json_form


class Scope(StrEnum):
    """What a token allows. ADMIN allows everything; the others allow only what they say."""

    SUBMIT = "submit"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for something; `name` goes into the audit log. `token` is the id of the token that lets them in,
    also where they logged in with it; None where there is none."""

    name: str
    scopes: frozenset[Scope]
    token: str | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


ANYONE = Caller("anyone", frozenset(Scope))  # where there is no login


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token: never the secret itself. `session` is one that a login of the page made, with the token
    of the id `begun_with`, if it was one; it is worth nothing where that is not."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    session: bool = False
    begun_with: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The form that outsiders rely on."""
        known = {"id": self.id, "name": self.name, "scopes": sorted(self.scopes)}
        times = ("created_at", "expires_at", "last_used_at", "revoked_at")
        return known | {name: json_form(getattr(self, name)) for name in times}


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the audit log: who did what to which thing, when. What was otherwise is in `detail`, under `before`
    and `after`; `id` is given when it is written."""

    at: datetime
    by: str
    action: str
    subject: str
    detail: dict[str, Any]
    id: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The form that outsiders rely on."""
        return fields_form(self)
