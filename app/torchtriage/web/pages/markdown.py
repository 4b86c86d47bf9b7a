"""Formats an incident as Markdown, for an issue or a chat, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchtriage.answer.first_screen import first_screen
from torchtriage.domain.entry import Language
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.incident import Incident
from torchtriage.domain.verdict import Cascade, Verdict
from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.reading.redaction.redact import redact
from torchtriage.web.pages.translations import word

_MAX_LINES = 6  # of evidence
_MAX_COUNT = 3  # of what followed


def markdown(
    incident: Incident, verdict: Verdict | None, address: str, lang: Language, titles: Mapping[str, str] | None = None
) -> str:
    """Returns title, what failed, where, what to do, evidence and the link. Text from the log is in code or escaped, so
    that it has no effect. `titles`: entries' titles by id."""
    root = verdict.root_cause if verdict else None
    kind = verdict.outcome if verdict else incident.state.value
    title = root.title if root else word(lang, f"title_{kind}")
    parts = [f"### {_plain(title)}", f"{address}"]
    if verdict and root:
        screen = first_screen(verdict, lang)
        parts += [_sentence(screen.below(title))] if screen.below(title) else []
        parts.append(_facts(incident, verdict, screen, root.entry, lang))
        evidence = [f"{line.file + ':' if line.file else ''}{line.line}: {line.text}" for line in root.evidence]
        parts += [f"**{word(lang, 'evidence')}**", _fenced("\n".join(evidence[:_MAX_LINES]))]
        parts += _next_steps(screen, lang)
        if verdict.cascades:
            followed = [f"- {_followed(cascade, titles or {})}" for cascade in verdict.cascades[:_MAX_COUNT]]
            parts += [f"**{word(lang, 'followed')}**", "\n".join(followed)]
    elif verdict and verdict.answer:
        screen = first_screen(verdict, lang)
        parts.append(_sentence(screen.what))
        parts += [_fenced(f"{screen.why.line}: {screen.why.text}")] if screen.why else []
        parts += _next_steps(screen, lang)
    return redact("\n\n".join(parts)) + "\n"


def _followed(cascade: Cascade, titles: Mapping[str, str]) -> str:
    title = titles.get(cascade.entry or "")
    return f"{_plain(title)} ({_code(cascade.entry or '')})" if title else _code(cascade.entry or cascade.text)


def _next_steps(screen: FirstScreen, lang: Language) -> list[str]:
    """Returns what to do, and what the log does not show."""
    parts = []
    for number, step in enumerate(screen.steps, 1):
        head = f"**{word(lang, 'do')}**\n\n" if number == 1 else ""
        parts.append(f"{head}{number}. {_sentence(step.do)}")
        if step.run:
            parts.append(_fenced(step.run))
    if screen.unknown:
        parts += [f"**{word(lang, 'not_in_log')}**", _sentence(screen.unknown)]
    return parts


def _facts(incident: Incident, verdict: Verdict, screen: FirstScreen, entry: str | None, lang: Language) -> str:
    without = f" ({_code(screen.exclusion)})" if screen.exclusion else ""
    because = f". {_plain(screen.because)}" if screen.because else ""
    job = incident.job
    rows = {
        "failed_first": " · ".join(_place(part) for part in screen.where) or word(lang, "not_in_log"),
        "retry_question": word(lang, f"retry_{screen.retry}") + without + because,
        "confidence": word(lang, f"sure_{screen.sure}") if screen.sure else word(lang, "cause_unknown"),
        "entry": _code(entry) if entry else "",
        "job": " · ".join(_code(str(value)) for value in (job.job_name, job.job_id, job.cluster, job.user) if value),
        "versions": " · ".join(_code(f"{name} {version}") for name, version in verdict.run.versions.items()),
    }
    asked = {name: word(lang, name) for name in rows}
    return "\n".join(f"- {asked[name].rstrip('?？')}: {value}" for name, value in rows.items() if value)


def _place(part: str) -> str:
    """Returns a rank as plain words, and anything else as code."""
    return part if re.fullmatch(r"(seen on |check |见于 |先检查 )?ranks? [\d,-]+( first)?", part) else _code(part)


def _sentence(text: str) -> str:
    """Returns a sentence. Text between backticks becomes code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _plain(text)
    return " ".join("".join(_code(part) if at % 2 else _spaced(part) for at, part in enumerate(parts) if part).split())


def _spaced(text: str) -> str:
    """Returns plain text, keeping the spaces at its ends."""
    before = " " if text[:1].isspace() else ""
    return f"{before}{_plain(text)}{' ' if text.strip() and text[-1:].isspace() else ''}"


def _plain(text: str) -> str:
    """Returns text from a log as one line without markup: no links, mentions or headings."""
    flat = " ".join(ANSI.sub("", text).split())
    return re.sub(r"([\\`*_{}\[\]<>#|~!@])", r"\\\1", flat)


def _code(text: str) -> str:
    flat = " ".join(ANSI.sub("", text).split())
    ticks = "`" * (max(map(len, re.findall("`+", flat)), default=0) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{space}{flat}{space}{ticks}"


def _fenced(text: str) -> str:
    text = ANSI.sub("", text)
    fence = "`" * max(3, max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{fence}text\n{text}\n{fence}"
