"""Makes and checks tokens; a secret is shown once and kept only as its digest."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from app.domain.access import Caller, Change, Scope, Token
from app.storage import tokens, trail
from app.storage.cursor import Page
from app.storage.database import Database

_PREFIX = "tt_"  # makes a leaked one known to scanners, and to our own redaction


def create(
    database: Database,
    name: str,
    scopes: Collection[Scope],
    lifetime: timedelta | None,
    by: str,
    session: bool = False,
) -> tuple[str, Token]:
    """-> (the secret, the token). `session` is for one that a login of the page makes. Raises StorageUnavailable."""
    secret = _PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    token = Token("", name, frozenset(scopes), now, now + lifetime if lifetime else None, session=session)
    with database.transaction() as opened:
        made = tokens.add(opened, _digest(secret), token)
        trail.add(opened, Change(now, by, "login" if session else "create", f"token {made.id}", {"name": name}))
        tokens.sweep(opened, now)
    return secret, made


def caller_of(database: Database, secret: str) -> Caller | None:
    """-> whom a secret stands for, if it is one that is valid now. Raises StorageUnavailable."""
    # The digest is what is looked up, so how long that takes tells nothing about the secret.
    digest, now = _digest(secret), datetime.now(UTC)
    with database.reading() as session:
        token = tokens.valid(session, digest, now)
    if token is None:
        return None
    if tokens.is_use_stale(token, now):
        with database.transaction(durable=False) as session:
            tokens.used(session, token.id, now)
    return Caller(token.name, token.scopes)


def listed(database: Database, sessions: bool = False) -> list[Token]:
    """-> all tokens, or all sessions of the page instead; the latest first."""
    with database.reading() as session:
        return tokens.listed(session, sessions)


def revoke(database: Database, token_id: str, by: str) -> Token:
    """-> the token, which lets nobody in any more. Raises NotFound."""
    now = datetime.now(UTC)
    with database.transaction() as session:
        token = tokens.revoke(session, token_id, now)
        trail.add(session, Change(now, by, "revoke", f"token {token.id}", {"name": token.name}))
        return token


def end_session(database: Database, secret: str) -> None:
    """Makes the secret of a login worthless; one that is worthless already is no error."""
    now = datetime.now(UTC)
    with database.transaction() as session:
        token = tokens.valid(session, _digest(secret), now)
        if token is not None and token.session:
            tokens.revoke(session, token.id, now)


def changes(database: Database, subject: str | None, limit: int, cursor: str | None = None) -> Page[Change]:
    """-> the trail of a subject, as in `group 7`, or of all; the latest first. Raises BadCursor."""
    with database.reading() as session:
        return trail.listed(session, subject, limit, cursor)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
