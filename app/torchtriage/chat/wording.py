"""A notice in words: what every chat tells, in the order in which it is read; each chat lays it out in its own way."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchtriage.chat.sanitize import plain
from torchtriage.domain.entry import Language, Text
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind

_TITLE, _NAME, _EVIDENCE, _SENTENCE, _COMMAND = 140, 60, 600, 220, 200  # characters


@dataclass(frozen=True, slots=True)
class Wording:
    """All in plain text, each in one line; empty where there is nothing to say."""

    headline: str
    place: str  # rank and host, job, user, cluster
    evidence: str
    todo: str
    command: str
    advice: str  # whether to retry
    facts: tuple[str, ...]


def wording(notice: Notice) -> Wording:
    """-> the words of a notice; together less than 2000 characters."""
    return Wording(
        headline=headline(notice),
        place=word(notice.lang, "tested") if notice.kind is NoticeKind.TEST else _place(notice),
        evidence=plain(notice.evidence or "", _EVIDENCE),
        todo=plain(notice.fix or "", _SENTENCE),
        command=plain(notice.command or "", _COMMAND),
        advice=plain(notice.advice or "", _SENTENCE),
        facts=tuple(_facts(notice)),
    )


def headline(notice: Notice) -> str:
    """-> the cause in plain words, and why it is told."""
    key: str = notice.kind
    over = notice.over.get(notice.kind, 0)
    words = {"title": notice.title, "count": int(over or notice.count), "hours": _hours(over)}
    return plain(word(notice.lang, key, **words), _TITLE) or "torchtriage"


def word(lang: Language, key: str, **values: object) -> str:
    """-> the words of `key`, with `{names}` filled in."""
    return _catalogue()[key].in_(lang).format(**values)


@cache
def _catalogue() -> dict[str, Text]:
    found = tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))
    return {key: Text(**texts) for key, texts in found.items()}


def _place(notice: Notice) -> str:
    lang, host = notice.lang, plain(notice.host or "", _NAME)
    where = ""
    if notice.rank is not None:
        where = word(lang, "rank_host" if host else "rank", rank=notice.rank, host=host)
    elif host:
        where = word(lang, "host", host=host)
    name, number = plain(notice.job_name or "", _NAME), plain(notice.job_id or "", _NAME)
    job = f"{name} ({number})" if name and number else name or number
    parts = [
        where,
        word(lang, "job", name=job) if job else "",
        word(lang, "of", user=plain(notice.user, _NAME)) if notice.user else "",
        word(lang, "on", cluster=plain(notice.cluster, _NAME)) if notice.cluster else "",
    ]
    return " · ".join(part for part in parts if part)


def _facts(notice: Notice) -> list[str]:
    lang = notice.lang
    known = notice.confidence in ("certain", "likely", "possible")
    found = [word(lang, str(notice.confidence))] if notice.entry and known else []
    if notice.entry:
        found.append(plain(notice.entry, _NAME))
    elif notice.outcome == "unexplained":
        found.append(word(lang, "unexplained"))
    if notice.line is not None:
        found.append(word(lang, "line", line=notice.line))
    if notice.count:
        once = notice.count == 1
        found.append(word(lang, "seen_once" if once else "seen", count=notice.count, recent=notice.recent))
    if notice.gpu_hours:
        found.append(word(lang, "lost", hours=_hours(notice.gpu_hours)))
    return found + _decided(notice)


def _decided(notice: Notice) -> list[str]:
    if notice.status in (GroupStatus.RESOLVED, GroupStatus.IGNORED):
        return [word(notice.lang, f"is_{notice.status}")]
    if notice.muted_until:
        return [word(notice.lang, "is_muted", until=f"{notice.muted_until:%Y-%m-%d %H:%M} UTC")]
    return []


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}"
