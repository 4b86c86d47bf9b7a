"""Prints an entry of the knowledge base as text for people."""

from __future__ import annotations

from collections.abc import Mapping

from torchtriage.answer.commands import general
from torchtriage.answer.shell_prompt import with_prompt
from torchtriage.domain.entry import Case, Condition, Entry, Language, Sign
from torchtriage.domain.verdict import Answer

_WORDS = {
    "en": (
        "Cases (the first that applies is shown)",
        "Causes",
        "Fixes",
        "Confirm it",
        "Prevention",
        "Signs",
        "References",
    ),
    "zh": ("情形（第一个成立的生效）", "原因", "怎么办", "如何确认", "如何预防", "日志特征", "参考"),
}
_KNOWN = {"en": ("{} is known", "{} is not known"), "zh": ("已知 {}", "未知 {}")}


def entry_report(entry: Entry, lang: Language) -> str:
    """Returns the whole entry as text."""
    cases, causes, fixes, checks, prevent, signs, references = _WORDS[lang]
    parts = [
        (cases, [_case(case, lang) for case in entry.cases]),
        (causes, [cause.in_(lang) for cause in entry.causes]),
        (fixes, ["\n    ".join([general(fix.title.in_(lang)), *([fix.detail.in_(lang)] if fix.detail else []),
                                *map(_command, fix.commands)]) for fix in entry.fixes]),
        (checks, [_command(check) for check in entry.checks]),
        (prevent, [item.in_(lang) for item in entry.prevent]),
        (signs, [_sign(sign) for sign in entry.signs]),
        (references, list(entry.references)),
    ]  # fmt: skip
    action = f"{entry.action.advice}, retry: {entry.action.retry}" + (", exclude the host" * entry.action.exclude_hosts)
    lines = [entry.title.in_(lang), f"{entry.id} · {entry.kind} · {entry.owner} · {action}"]
    lines += [f"pack {entry.pack}"] if entry.pack else []
    for title, items in parts:
        if items:
            lines += ["", title, *(f"  {number}. {item}" for number, item in enumerate(items, 1))]
    return "\n".join(lines)


def answers_report(answers: Mapping[tuple[str, str], Answer]) -> str:
    """Returns, as text, the answers of the cases to their own examples. Empty if there are none."""
    lines: list[str] = []
    for (entry, case), answer in answers.items():
        lines += [f"{entry}, the example of case {case}:", f"  {answer.says}"]
        lines += [f"  {answer.unknown}"] if answer.unknown else []
        for number, step in enumerate(answer.steps, 1):
            lines += [f"  {number}. {step.do}", *([f"    {_command(step.run)}"] if step.run else [])]
        lines.append("")
    return "\n".join([*lines, ""]) if lines else ""


def _case(case: Case, lang: Language) -> str:
    """Returns one case as text: id, signs and conditions, its sentence, steps and source."""
    head = f"{case.id} (retry: {case.action.retry})" if case.action else case.id
    lines = [head, *(_sign(sign) for sign in case.all_signs)]
    lines += [_condition(condition, lang) for condition in case.when]
    lines.append(case.says.in_(lang))
    lines += [case.unknown.in_(lang)] if case.unknown else []
    for step in case.steps:
        lines += [
            f"- {step.do.in_(lang)}",
            *(["  " + with_prompt(step.run).replace("\n", "\n      ")] if step.run else []),
        ]
    lines += [f"[{case.source}]"] if case.source else []
    lines += [f"pack {case.pack}"] if case.pack else []
    return "\n    ".join(lines)


def _sign(sign: Sign) -> str:
    return sign.text or sign.regex or " + ".join(part.text or part.regex or "" for part in sign.all)


def _condition(condition: Condition, lang: Language) -> str:
    if condition.regex is not None:
        return f"{condition.fact}: {condition.regex}"
    return _KNOWN[lang][0 if condition.known else 1].format(condition.fact)


def _command(command: str) -> str:
    """Returns a command, with its other lines indented below the first."""
    return with_prompt(general(command)).replace("\n", "\n      ")
