"""Creates and checks tokens. A secret is shown once; only its digest is stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from torchtriage.domain.access import AuditLine, Caller, Scope, Token
from torchtriage.domain.timestamps import iso
from torchtriage.errors import BadInput
from torchtriage.services.user_text import cleaned
from torchtriage.storage import audit_log, tokens
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.storage.database import Database
from torchtriage.storage.pagination import Page

MAX_NAME_LENGTH = 100  # characters
MAX_SESSIONS = 50  # per token, or per person who logs in with a provider
_BATCH_SIZE = 200  # changes per read
_LATEST = 2000  # changes whose authors are suggested
_PREFIX = "tt_"  # lets secret scanners, and our own redaction, recognize a leaked token


def create(
    database: Database, name: str, scopes: Collection[Scope], lifetime: timedelta | None, by: str
) -> tuple[str, Token]:
    """Returns (secret, token). Raises BadInput if the name is empty or too long, and StorageUnavailable."""
    now, name = datetime.now(UTC), " ".join(cleaned(name).split())
    if not name or len(name) > MAX_NAME_LENGTH:
        raise BadInput(f"a token name has 1 to {MAX_NAME_LENGTH} characters")
    token = Token("", name, frozenset(scopes), now, now + lifetime if lifetime else None)
    return _make(database, token, by, "create")


def begin_session(database: Database, caller: Caller, lifetime: timedelta) -> tuple[str, Token]:
    """Returns (secret, token) of a login on the page. It has the caller's scopes and ends with the caller's token. If
    the caller has too many logins, the oldest end.

    Raises StorageUnavailable.
    """
    now = datetime.now(UTC)
    token = Token("", caller.name, caller.scopes, now, now + lifetime, session=True, begun_with=caller.token)
    return _make(database, token, caller.name, "login")


def caller_of(database: Database, secret: str, sessions: bool = True) -> Caller | None:
    """Returns the caller of a valid secret, or None. Without `sessions`, secrets of logins on the page are not valid.

    Raises StorageUnavailable.
    """
    # The digest is looked up, so the time it takes reveals nothing about the secret.
    digest, now = _digest(secret), datetime.now(UTC)
    with database.reading() as session:
        token = tokens.valid(session, digest, now)
    if token is None or (token.session and not sessions):
        return None
    if tokens.is_use_stale(token, now):
        with database.transaction(durable=False) as session:
            tokens.used(session, token.id, now)
    return Caller(token.name, token.scopes, token.begun_with if token.session else token.id)


def listed(database: Database, sessions: bool = False) -> list[Token]:
    """Returns all tokens, or with `sessions` all logins on the page; newest first."""
    with database.reading() as session:
        return tokens.listed(session, sessions)


def revoke(database: Database, token_id: str, by: str) -> Token:
    """Revokes a token and the logins made with it, and returns it. Raises NotFound."""
    now = datetime.now(UTC)
    with database.transaction() as session:
        token, new = tokens.revoke(session, token_id, now)
        if new:
            audit_log.add(session, AuditLine(now, by, "revoke", f"token {token.id}", {"before": _audit_details(token)}))
        return token


def end_session(database: Database, secret: str) -> None:
    """Ends a login. Does nothing if it has ended already."""
    now = datetime.now(UTC)
    with database.transaction() as session:
        token = tokens.valid(session, _digest(secret), now)
        if token is not None and token.session:
            tokens.revoke(session, token.id, now)
            audit_log.add(
                session,
                AuditLine(now, token.name, "logout", f"token {token.id}", {"before": _audit_details(token)}),
            )


def changes(database: Database, wanted: ChangeFilter, limit: int, cursor: str | None = None) -> Page[AuditLine]:
    """Returns a page of the audit log, newest first. Raises BadCursor."""
    with database.reading() as session:
        return audit_log.listed(session, wanted, limit, cursor)


def authors(database: Database) -> tuple[str, ...]:
    """Returns who made the latest changes, in alphabetical order."""
    with database.reading() as session:
        return audit_log.people(session, _LATEST)


def every_change(database: Database, wanted: ChangeFilter) -> Iterator[AuditLine]:
    """Yields all matching changes, newest first. Raises StorageUnavailable."""
    cursor: str | None = None
    while True:
        page = changes(database, wanted, _BATCH_SIZE, cursor)
        yield from page.items
        cursor = page.next
        if cursor is None:
            return


def _make(database: Database, token: Token, by: str, action: str) -> tuple[str, Token]:
    secret = _PREFIX + secrets.token_urlsafe(32)
    with database.transaction() as session:
        made = tokens.add(session, _digest(secret), token)
        audit_log.add(
            session, AuditLine(made.created_at, by, action, f"token {made.id}", {"after": _audit_details(made)})
        )
        tokens.sweep(session, made.created_at)
        for ended in tokens.end_oldest(session, made, MAX_SESSIONS) if made.session else ():
            audit_log.add(
                session,
                AuditLine(made.created_at, by, "revoke", f"token {ended.id}", {"before": _audit_details(ended)}),
            )
    return secret, made


def _audit_details(token: Token) -> dict[str, Any]:
    """Returns what the audit log records about a token."""
    detail = {"name": token.name, "scopes": sorted(token.scopes), "expires_at": iso(token.expires_at)}
    return detail | ({"token": token.begun_with} if token.session else {})


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
