"""Who may do what: callers, their scopes, their access tokens, and the audit log of their changes."""

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
    """The person or program that sent a request. `name` is written to the audit log. `token` is the id of the token
    that was used, also if it was used to log in, or None."""

    name: str
    scopes: frozenset[Scope]
    token: str | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


ANYONE = Caller("anyone", frozenset(Scope))  # if no login is required


@dataclass(frozen=True, slots=True)
class Token:
    """What is stored about a token. The secret itself is never stored. A `session` token was made by a login on the web
    page; `begun_with` is the id of the token that was used for this login, if any. When that token is no longer valid,
    the session is not valid either."""

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
        """The public JSON form."""
        known = {"id": self.id, "name": self.name, "scopes": sorted(self.scopes)}
        times = ("created_at", "expires_at", "last_used_at", "revoked_at")
        return known | {name: json_form(getattr(self, name)) for name in times}


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit log: who changed what, and when. `detail` has the changed values under `before` and
    `after`. `id` is set when the line is written."""

    at: datetime
    by: str
    action: str
    subject: str
    detail: dict[str, Any]
    id: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form."""
        return fields_form(self)
