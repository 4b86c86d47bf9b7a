"""The words of a notice in reading order, the same for every chat. Each chat formats them in its own way."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchtriage.answer.labels import LABELS
from torchtriage.chat.sanitize import plain
from torchtriage.domain.entry import Language, Text
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.domain.verdict import AnswerStep

_TITLE, _NAME, _EVIDENCE, _WHAT, _SENTENCE, _COMMAND = 140, 60, 400, 420, 200, 200  # maximum characters


@dataclass(frozen=True, slots=True)
class Wording:
    """The parts of a notice, as plain text of one line each. A part without content is empty."""

    headline: str
    what: str
    place: str  # rank, host, time and line of code; job, user and cluster
    evidence: str
    steps: tuple[NumberedStep, ...]
    retry: str
    unknown: str  # what the log does not show
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberedStep:
    """One step to take, with its number. `command` is empty if there is none or if it is too long for a chat."""

    do: str
    command: str


def wording(notice: Notice) -> Wording:
    """Returns the words of a notice, fewer than 3000 characters in total."""
    screen = notice.screen
    return Wording(
        headline=headline(notice),
        what=plain(screen.below(notice.title), _WHAT) if screen else "",
        place=word(notice.lang, "tested") if notice.kind is NoticeKind.TEST else _place(notice),
        evidence=plain(notice.evidence or "", _EVIDENCE),
        steps=tuple(_step(number, step) for number, step in enumerate(screen.steps, 1)) if screen else (),
        retry=_retry(screen, notice.lang) if screen and screen.retry else "",
        unknown=plain(screen.unknown or "", _SENTENCE) if screen else "",
        facts=tuple(_facts(notice)),
    )


def headline(notice: Notice) -> str:
    """Returns the cause in plain words, and why the notice is sent."""
    key: str = notice.kind
    over = notice.over.get(notice.kind, 0)
    words = {"title": notice.title, "count": int(over or notice.count), "hours": _hours(over)}
    return plain(word(notice.lang, key, **words), _TITLE) or "torchtriage"


def word(lang: Language, key: str, **values: object) -> str:
    """Returns the text of `key` with its `{names}` filled in."""
    return _catalogue()[key].in_(lang).format(**values)


@cache
def _catalogue() -> dict[str, Text]:
    found = tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))
    return {key: Text(**texts) for key, texts in found.items()}


def _place(notice: Notice) -> str:
    lang = notice.lang
    name, number = plain(notice.job_name or "", _NAME), plain(notice.job_id or "", _NAME)
    job = f"{name} ({number})" if name and number else name or number
    parts = [
        *(plain(part, _NAME) for part in (notice.screen.where if notice.screen else ())),
        word(lang, "job", name=job) if job else "",
        word(lang, "of", user=plain(notice.user, _NAME)) if notice.user else "",
        word(lang, "on", cluster=plain(notice.cluster, _NAME)) if notice.cluster else "",
    ]
    return " · ".join(part for part in parts if part)


def _step(number: int, step: AnswerStep) -> NumberedStep:
    """Returns a step for a chat. A long command is left out, because a shortened one would be a different command."""
    command = plain(step.run or "", _COMMAND + 1) if "\n" not in (step.run or "").strip() else ""
    return NumberedStep(f"{number}. {plain(step.do, _SENTENCE)}", command if len(command) <= _COMMAND else "")


def _retry(screen: FirstScreen, lang: Language) -> str:
    advice = word(lang, f"retry_{screen.retry}")
    without = f" ({plain(screen.exclusion, _SENTENCE)})" if screen.exclusion else ""
    return f"{advice}{without}{'。' if lang == 'zh' else '. '}{plain(screen.because, _SENTENCE)}".rstrip()


def _facts(notice: Notice) -> list[str]:
    lang = notice.lang
    sure = notice.screen.sure if notice.screen else None
    found = [LABELS[sure].in_(lang)] if sure in ("certain", "likely", "possible") else []
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
