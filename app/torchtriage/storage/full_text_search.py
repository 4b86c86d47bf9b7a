"""Full-text search over incidents. Words are split here and not by the database, so that both databases find the same.

The table `incident_search` has two columns: rowid (the incident's number) and words. On SQLite it is an FTS5 table, on
Postgres an ordinary one with an index over the words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Text,
    and_,
    bindparam,
    column,
    delete,
    insert,
    literal,
    select,
    table,
    text,
    update,
)
from sqlalchemy.orm import Session

from torchtriage.lazy_regex import lazy_regex

TABLE = "incident_search"
MAX_LENGTH = 20_000  # characters of a text that are indexed
_search = table(TABLE, column("rowid", BigInteger), column("words", Text))
_ADD = insert(_search)
_REPLACE = update(_search).where(_search.c.rowid == bindparam("of")).values(words=bindparam("its_words"))
_REMOVE = delete(_search).where(_search.c.rowid == bindparam("of"))
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_RUN = lazy_regex(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = lazy_regex(f"[{_CJK}]")
_PARTS = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MAX_WORD_LENGTH = 64


def words(content: str) -> set[str]:
    """Returns the words of a text: sequences of letters and digits, the parts of camelCase, and pairs of Chinese
    characters."""
    found: set[str] = set()
    for run in set(_runs(content[:MAX_LENGTH])):
        if _is_cjk(run):
            found.update(run[i : i + 2] for i in range(len(run)))
        else:
            found.add(run.lower()[:_MAX_WORD_LENGTH])
            parts = _PARTS.findall(run)
            found.update(part.lower()[:_MAX_WORD_LENGTH] for part in parts if len(parts) > 1)
    return found


def asked(query: str) -> list[str]:
    """Returns the words of a query. Each matches the beginning of a word in an incident; all must match."""
    found: list[str] = []
    for run in _runs(query[:1000]):
        if _is_cjk(run):
            found += [run[i : i + 2] for i in range(max(len(run) - 1, 1))]
        else:
            found.append(run.lower()[:_MAX_WORD_LENGTH])
    return list(dict.fromkeys(found))[:50]


def replace(session: Session, contents: Mapping[int, str]) -> None:
    """Replaces the indexed text of incidents."""
    rows = [{"of": number, "its_words": _row_words(content)} for number, content in contents.items()]
    session.connection().execute(_REPLACE, rows)


def index_all(session: Session, contents: Mapping[int, str]) -> None:
    """Adds the text of incidents that are not indexed yet."""
    rows = [{"rowid": number, "words": _row_words(content)} for number, content in contents.items()]
    session.connection().execute(_ADD, rows)


def remove(session: Session, number: int) -> None:
    session.connection().execute(_REMOVE, {"of": number})


def has(number: ColumnElement[int], query: str) -> ColumnElement[bool]:
    """Returns a condition: incident `number` has every word of `query`, which must not be empty. It reads the
    incident's words and uses no index, for incidents that are checked one by one."""
    words_of = literal(" ") + _search.c.words
    found = and_(*(words_of.contains(f" {term}") for term in asked(query)))
    return select(found).where(_search.c.rowid == number).scalar_subquery()


def some(session: Session, query: str, most: int) -> list[int]:
    """Returns the numbers of at most `most` incidents that have every word of `query`, which must not be empty."""
    terms = asked(query)
    # Terms contain only letters and digits. Quotes are needed for keywords of the database (AND, NEAR).
    if session.get_bind().dialect.name == "sqlite":
        having = text(f"{TABLE} MATCH :terms").bindparams(terms=" ".join(f'"{term}"*' for term in terms))
    else:
        # Without the index, Postgres would split the words of each row, which is slower than its planner assumes.
        session.execute(text("SET LOCAL enable_seqscan = off"))
        vector = "array_to_tsvector(string_to_array(words, ' '))"
        expression = " & ".join(f"'{term}':*" for term in terms)
        having = text(f"{vector} @@ CAST(:terms AS tsquery)").bindparams(terms=expression)
    return list(session.execute(select(_search.c.rowid).where(having).limit(most)).scalars())


def _row_words(content: str) -> str:
    return " ".join(sorted(words(content)))


def _runs(content: str) -> Iterator[str]:
    for line in content.split("\n"):
        if not line.isascii():  # most lines are ASCII and need no change
            plain = unicodedata.normalize("NFKD", line)
            bare = "".join(char for char in plain if not unicodedata.combining(char))
            line = unicodedata.normalize("NFKC", bare)
        yield from _RUN.findall(line)


def _is_cjk(run: str) -> bool:
    return not run.isascii() and _IS_CJK.match(run) is not None
