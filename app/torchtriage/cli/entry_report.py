"""An entry of the knowledge base as a page for people."""

from __future__ import annotations

from torchtriage.answer.commands import general
from torchtriage.domain.entry import Entry, Language

_WORDS = {
    "en": ("Causes", "Fixes", "Confirm it", "Prevention", "Shown by", "References"),
    "zh": ("原因", "怎么办", "如何确认", "如何预防", "日志特征", "参考"),
}


def entry_report(entry: Entry, lang: Language) -> str:
    """-> the whole entry as text."""
    causes, fixes, checks, prevent, signs, references = _WORDS[lang]
    parts = [
        (causes, [cause.in_(lang) for cause in entry.causes]),
        (fixes, ["\n    ".join([general(fix.title.in_(lang)), *([fix.detail.in_(lang)] if fix.detail else []),
                                *map(_command, fix.commands)]) for fix in entry.fixes]),
        (checks, [_command(check) for check in entry.checks]),
        (prevent, [item.in_(lang) for item in entry.prevent]),
        (signs, [sign.text or sign.regex or " + ".join(part.text or part.regex or "" for part in sign.all)
                 for sign in entry.signs]),
        (references, list(entry.references)),
    ]  # fmt: skip
    action = f"{entry.action.advice}, retry: {entry.action.retry}" + (", exclude the host" * entry.action.exclude_hosts)
    lines = [entry.title.in_(lang), f"{entry.id} · {entry.kind} · {entry.owner} · {action}"]
    for title, items in parts:
        if items:
            lines += ["", title, *(f"  {number}. {item}" for number, item in enumerate(items, 1))]
    return "\n".join(lines)


def _command(command: str) -> str:
    """-> a command behind a prompt; its further lines stand under its first."""
    return "$ " + general(command).replace("\n", "\n      ")
