"""Tokens in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.orm import Session, aliased

from torchtriage.domain.access import Scope, Token
from torchtriage.errors import NotFound
from torchtriage.storage.database import lock
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import TokenRow

_BEGUN_WITH = aliased(TokenRow)
_USE_KEPT_EVERY = timedelta(minutes=1)  # not for every request, because a write would cost more than the request


def add(session: Session, sha256: str, token: Token) -> Token:
    """Stores a new token under the digest of its secret. Returns the token with its id."""
    row = TokenRow(
        sha256=sha256,
        name=token.name,
        scopes=" ".join(sorted(token.scopes)),
        session=token.session,
        begun_with=number_of(token.begun_with) if token.begun_with else None,
        created_at=token.created_at,
        expires_at=token.expires_at,
    )
    session.add(row)
    session.flush()
    return _token(row)


def valid(session: Session, sha256: str, now: datetime) -> Token | None:
    """Returns the token of a secret's digest, or None if it is expired or revoked. For a session, the token used to log
    in must be valid, too."""
    query = select(TokenRow).outerjoin(_BEGUN_WITH, TokenRow.begun_with == _BEGUN_WITH.number)
    query = query.where(TokenRow.sha256 == sha256, *_alive(TokenRow, now), *_alive(_BEGUN_WITH, now))
    row = session.execute(query).scalar_one_or_none()
    return _token(row) if row else None


def is_use_stale(token: Token, now: datetime) -> bool:
    """Returns whether the stored time of the last use is old enough to be updated."""
    return token.last_used_at is None or now - token.last_used_at > _USE_KEPT_EVERY


def used(session: Session, token_id: str, now: datetime) -> None:
    session.execute(update(TokenRow).where(TokenRow.number == number_of(token_id)).values(last_used_at=now))


def listed(session: Session, sessions: bool) -> list[Token]:
    """Returns all tokens that people made, or with `sessions` all logins on the page; newest first."""
    query = select(TokenRow).where(TokenRow.session.is_(sessions)).order_by(TokenRow.number.desc())
    return [_token(row) for row in session.execute(query).scalars()]


def revoke(session: Session, token_id: str, now: datetime) -> tuple[Token, bool]:
    """Revokes a token. Returns it, and whether it was valid before. Raises NotFound."""
    row = session.execute(select(TokenRow).where(TokenRow.number == number_of(token_id)).with_for_update()).scalar()
    if row is None:
        raise NotFound("no such token", token=token_id[:100])
    new = row.revoked_at is None
    row.revoked_at = row.revoked_at or now
    session.flush()
    return _token(row), new


def end_oldest(session: Session, latest: Token, most: int) -> list[Token]:
    """Deletes the oldest sessions until `most` remain, including `latest`. Returns the deleted ones.

    Counts sessions begun with the same token. Sessions from a login provider have no token; for them, those of the same
    name.
    """
    begun_with = number_of(latest.begun_with) if latest.begun_with else None
    same = (
        (TokenRow.begun_with == begun_with)
        if begun_with
        else (TokenRow.begun_with.is_(None) & (TokenRow.name == latest.name))
    )
    lock(session, f"sessions {latest.begun_with or latest.name}")
    query = select(TokenRow).where(TokenRow.session, same, *_alive(TokenRow, latest.created_at))
    ended = session.execute(query.order_by(TokenRow.number.desc()).offset(most)).scalars().all()
    for row in ended:
        session.delete(row)
    return [_token(row) for row in ended]


def sweep(session: Session, before: datetime) -> None:
    """Deletes sessions of the page that ended before this time."""
    session.execute(delete(TokenRow).where(TokenRow.session, TokenRow.expires_at < before))


def _alive(row: type[TokenRow], now: datetime) -> tuple[ColumnElement[bool], ...]:
    return row.revoked_at.is_(None), or_(row.expires_at.is_(None), row.expires_at > now)


def _token(row: TokenRow) -> Token:
    return Token(
        id=str(row.number),
        name=row.name,
        scopes=frozenset(map(Scope, row.scopes.split())),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        session=row.session,
        begun_with=str(row.begun_with) if row.begun_with else None,
    )
