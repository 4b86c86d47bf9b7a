"""An incident as Markdown, for an issue or a chat: incident and verdict in, text without secrets out."""

from __future__ import annotations

import re

from torchtriage.domain.entry import Language
from torchtriage.domain.incident import Incident
from torchtriage.domain.verdict import RootCause, Verdict
from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.reading.redaction.redact import redact
from torchtriage.web.pages.translations import word

_MOST_LINES = 6  # of evidence
_MOST = 3  # causes, fixes and what followed


def markdown(incident: Incident, verdict: Verdict | None, address: str, lang: Language) -> str:
    """-> title, where, what to do, evidence and the link; foreign text stands in code, so that it does nothing."""
    root = verdict.root_cause if verdict else None
    kind = verdict.outcome if verdict else incident.state.value
    title = root.title if root else word(lang, f"title_{kind}")
    parts = [f"### {_plain(title)}", f"{address}"]
    if verdict and root:
        parts += [_facts(incident, verdict, root, lang)]
        evidence = [f"{line.file + ':' if line.file else ''}{line.line}: {line.text}" for line in root.evidence]
        parts += [f"**{word(lang, 'evidence')}**", _fenced("\n".join(evidence[:_MOST_LINES]))]
        if root.causes:
            parts += [f"**{word(lang, 'causes')}**", "\n".join(f"- {_plain(cause)}" for cause in root.causes[:_MOST])]
        for number, fix in enumerate(root.fixes[:_MOST], 1):
            head = f"**{word(lang, 'do')}**\n\n" if number == 1 else ""
            detail = f": {_plain(fix.detail)}" if fix.detail else ""
            parts.append(f"{head}{number}. {_plain(fix.title)}{detail}")
            if fix.commands:
                parts.append(_fenced("\n".join(fix.commands)))
        if verdict.cascades:
            followed = [f"- {_code(cascade.entry or cascade.text)}" for cascade in verdict.cascades[:_MOST]]
            parts += [f"**{word(lang, 'cascade')}**", "\n".join(followed)]
    return redact("\n\n".join(parts)) + "\n"


def _facts(incident: Incident, verdict: Verdict, root: RootCause, lang: Language) -> str:
    where = [f"rank {root.rank}"] if root.rank is not None else []
    where += [_code(root.host)] if root.host else []
    if root.suspects:
        where.append(
            word(lang, "look_first" if root.suspects.isdecimal() else "look_first_several", ranks=root.suspects)
        )
    retry = "retry_elsewhere" if verdict.action.advice == "retry-elsewhere" else f"retry_{verdict.action.retry}"
    without = f" ({_code(verdict.action.exclusion)})" if verdict.action.exclusion else ""
    job = incident.job
    rows = {
        "failed_first": " · ".join(where) or word(lang, "not_told"),
        "retry_question": word(lang, retry) + without,
        "how_sure": word(lang, f"sure_{root.confidence}") if root.entry else word(lang, "cause_unknown"),
        "entry": _code(root.entry) if root.entry else "",
        "job": " · ".join(_code(str(value)) for value in (job.job_name, job.job_id, job.cluster, job.user) if value),
        "versions": " · ".join(_code(f"{name} {version}") for name, version in verdict.run.versions.items()),
    }
    asked = {name: word(lang, name) for name in rows}
    return "\n".join(f"- {asked[name].rstrip('?？')}: {value}" for name, value in rows.items() if value)


def _plain(text: str) -> str:
    """-> foreign text as one line in which nothing is markup: no links, no mentions, no headings."""
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
