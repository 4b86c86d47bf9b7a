"""Full-text search over incidents. Words are cut here and not by the database, so that both find the same.

`incident_search` has two columns on both: rowid (the incident's number) and words. On SQLite it is an FTS5 table, on
Postgres a plain one with an index over the words as they stand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Text,
    TextClause,
    bindparam,
    column,
    delete,
    insert,
    select,
    table,
    text,
)
from sqlalchemy.orm import Session

TABLE = "incident_search"
LONGEST = 20_000  # characters of a text that are searched
_search = table(TABLE, column("rowid", BigInteger), column("words", Text))
_ADD = insert(_search)
_REMOVE = delete(_search).where(_search.c.rowid == bindparam("of"))
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LONGEST_WORD = 64


def words(content: str) -> set[str]:
    """-> the words of a text: runs of letters and digits, the parts of camelCase, pairs of Chinese characters."""
    found: set[str] = set()
    for run in _runs(content[:LONGEST]):
        if _is_cjk(run):
            found.update(run[i : i + 2] for i in range(len(run)))
        else:
            found.add(run.lower()[:_LONGEST_WORD])
            parts = _PARTS.findall(run)
            found.update(part.lower()[:_LONGEST_WORD] for part in parts if len(parts) > 1)
    return found


def asked(query: str) -> list[str]:
    """-> what a query asks for; each is the beginning of a word that must be there."""
    found: list[str] = []
    for run in _runs(query[:1000]):
        if _is_cjk(run):
            found += [run[i : i + 2] for i in range(max(len(run) - 1, 1))]
        else:
            found.append(run.lower()[:_LONGEST_WORD])
    return list(dict.fromkeys(found))[:50]


def put(session: Session, number: int, content: str) -> None:
    """Makes an incident that is in no search yet findable by `content`."""
    session.connection().execute(_ADD, {"rowid": number, "words": " ".join(sorted(words(content)))})


def remove(session: Session, number: int) -> None:
    session.connection().execute(_REMOVE, {"of": number})


def matches(session: Session, number: ColumnElement[int], query: str) -> ColumnElement[bool] | None:
    """-> the condition that the incident `number` has every word of `query`; None where `query` asks for none."""
    terms = asked(query)
    if not terms:
        return None
    having = select(_search.c.rowid).where(_having(session, terms))
    if session.get_bind().dialect.name == "sqlite":
        # As no column, so that SQLite walks the incidents in their order, and does not look up all that are found.
        return (number + 0).in_(having)
    return number.in_(having)


def some(session: Session, query: str, most: int) -> list[int] | None:
    """-> numbers of at most so many incidents that have every word of `query`; None where it asks for none."""
    terms = asked(query)
    if not terms:
        return None
    return list(session.execute(select(_search.c.rowid).where(_having(session, terms)).limit(most)).scalars())


def _having(session: Session, terms: list[str]) -> TextClause:
    # Terms hold letters and digits only, so quoting is for the databases' own words (AND, NEAR).
    if session.get_bind().dialect.name == "sqlite":
        return text(f"{TABLE} MATCH :terms").bindparams(terms=" ".join(f'"{term}"*' for term in terms))
    vector = "array_to_tsvector(string_to_array(words, ' '))"
    return text(f"{vector} @@ CAST(:terms AS tsquery)").bindparams(terms=" & ".join(f"'{term}':*" for term in terms))


def _runs(content: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKD", content)
    bare = "".join(char for char in plain if not unicodedata.combining(char))
    yield from _RUN.findall(unicodedata.normalize("NFKC", bare))


def _is_cjk(run: str) -> bool:
    return re.match(f"[{_CJK}]", run) is not None
