"""Who may do what: callers, their scopes, the tokens that stand for them, and the trail of what they changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.domain.moment import iso


class Scope(StrEnum):
    """What a token allows. ADMIN allows everything; the others allow only what they say."""

    SUBMIT = "submit"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for something; `name` goes into the trail of changes."""

    name: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


ANYONE = Caller("anyone", frozenset(Scope))  # where there is no login


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token: never the secret itself. `session` is one that a login of the page made."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    session: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "scopes": sorted(self.scopes),
            "created_at": iso(self.created_at),
            "expires_at": iso(self.expires_at),
            "last_used_at": iso(self.last_used_at),
            "revoked_at": iso(self.revoked_at),
        }


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the trail: who did what to which thing, when."""

    at: datetime
    by: str
    action: str
    subject: str
    detail: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "at": iso(self.at),
            "by": self.by,
            "action": self.action,
            "subject": self.subject,
            "detail": self.detail,
        }
