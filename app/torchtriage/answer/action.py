"""Decides what a machine should do about a verdict, and which fixes the entry suggests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from torchtriage.answer.cause_ranking import most_likely_first, shows
from torchtriage.answer.commands import commands, filled
from torchtriage.answer.version_ranges import shown
from torchtriage.domain.entry import Case, Entry, Fix, Language
from torchtriage.domain.host import host_name
from torchtriage.domain.verdict import Action, Answer, EarlierRun, RootCause, SuggestedFix

_REASONS: dict[str, tuple[str, str]] = {
    "retry": (
        "The cause is transient; start the job again, from the last checkpoint if there is one.",
        "原因是暂时性的；重新启动任务，有 checkpoint 就从最近的继续运行。",
    ),
    "retry-elsewhere": (
        "The host is at fault, not the job; run it again without that host.",
        "问题在主机而不在任务；排除该主机后重新运行。",
    ),
    "fix-first": ("The same job fails again until the cause is removed.", "不先消除原因，同样的任务会再次失败。"),
    "none": ("This alone is no failure; there is nothing to retry.", "单独出现时不是故障，无需重试。"),
}
# The advice for other values of `retry`: with `once`, a certain statement becomes a likely one.
_BY_RETRY: dict[tuple[str, str], tuple[str, str]] = {
    ("retry", "once"): (
        "It may be transient: retry once; if it fails again, look for the cause.",
        "可能是暂时性的：值得重试一次；如果仍失败，再查找原因。",
    ),
    ("retry-elsewhere", "once"): (
        "The host may be at fault: retry once on another host; if it fails there too, look for the cause.",
        "可能是主机的问题：换一台主机试一次；如果仍失败，再查找原因。",
    ),
    ("fix-first", "once"): (
        "It probably needs a fix; one retry will tell.",
        "多半要先消除原因；重试一次可判断是否只是偶发。",
    ),
    ("none", "once"): (
        "The log shows only consequences; find the cause first. One retry shows whether it was transient.",
        "日志里只有失败的后果，先找到真正的原因；重试一次可判断是否为偶发。",
    ),
    ("none", "yes"): (
        "The log shows no failure of the job; run it again.",
        "日志里没有任务本身的失败，可原样重新运行。",
    ),
}
_NOT_KNOWN = (
    "Find out how the run ended before you start it again.",
    "先查明运行如何结束，再决定是否重新启动。",
)
_NOTHING = ("Nothing to do.", "无需处理。")
_UNKNOWN = (
    "One retry shows whether it is transient.",
    "重试一次可判断是否为偶发。",
)
# For a run that would be worth one retry, but was already started again and ended in the same way.
_AGAIN = (
    "The run before it in this log failed in the same way, so a retry alone does not help.",
    "日志中前一次运行以同样的方式失败，单纯重试没有用。",
)

# For a failure that no entry explains, but whose text is the message of a library's own check.
_CHECKED = (
    "A check of a library stopped the run; the same call fails again until what it gets is changed.",
    "库自身的检查终止了运行；不改变传入的内容，同样的调用会再次失败。",
)


def advise(
    entry: Entry | None,
    words: str,
    hosts: Iterable[str],
    lang: Language,
    answer: Answer | None = None,
    form: Case | None = None,
) -> Action:
    """Returns the advice of the answer's message form or case, or else the entry's advice for a failure with these
    words. If the advice says that a host is bad, the failing `hosts` are included as hosts to exclude. `form` is the
    message form that the answer names."""
    if entry is None and form is not None and form.action is not None:
        reason = _BY_RETRY.get((form.action.advice, form.action.retry), _REASONS[form.action.advice])
        return Action(form.action.retry, form.action.advice, (), reason[lang == "zh"])
    if entry is None and answer is not None and "own_check" in answer.values:
        return Action("no", "none", (), _CHECKED[lang == "zh"])
    if entry is None:
        return Action("once", "none", (), _UNKNOWN[lang == "zh"])
    spoken = next((one.action for one in entry.cases if answer is not None and one.id == answer.case), None)
    others = (other for other in entry.other_actions if shows(words, other.shown_by or ""))
    action = spoken or next(others, entry.action)
    excluded = tuple(filter(host_name, hosts)) if action.exclude_hosts else ()
    reason = _BY_RETRY.get((action.advice, action.retry), _REASONS[action.advice])
    return Action(action.retry, action.advice, excluded, reason[lang == "zh"])


def after_earlier_runs(before: Sequence[EarlierRun], entry: str | None, action: Action, lang: Language) -> Action:
    """Returns the advice for a run that follows other runs in its file. A run that failed twice in the same way is not
    worth another retry, except on other hosts."""
    again = bool(before) and entry is not None and before[-1].entry == entry
    if not again or action.retry != "once" or action.advice == "retry-elsewhere":
        return action
    return replace(action, retry="no", advice="fix-first", reason=_AGAIN[lang == "zh"])


def healthy_action(lang: Language) -> Action:
    """Returns the action for a healthy run."""
    return Action("no", "none", (), _NOTHING[lang == "zh"])


def inconclusive_action(lang: Language) -> Action:
    """Returns the action for a run whose log shows neither a failure nor a successful end."""
    return Action("no", "none", (), _NOT_KNOWN[lang == "zh"])


def explained(root: RootCause, entry: Entry, versions: dict[str, str], lang: Language) -> RootCause:
    """Returns the root cause with the entry's text in one language. Causes and fixes that match the failure's words
    come first. Commands are filled with the captured values."""
    words = root.words
    return replace(
        root,
        title=entry.title.in_(lang),
        causes=tuple(cause.in_(lang) for cause in most_likely_first(entry.causes, words)),
        fixes=suggested_fixes(entry, words, root.captured, versions, lang),
        checks=commands(entry.checks, root.captured),
        prevent=tuple(item.in_(lang) for item in entry.prevent),
        references=entry.references,
        owner=entry.owner,
    )


def suggested_fixes(
    entry: Entry, words: str, values: Mapping[str, str], versions: dict[str, str], lang: Language
) -> tuple[SuggestedFix, ...]:
    """Returns an entry's fixes in the verdict's form. Fixes that match the failure's words come first. Fixes for
    versions other than those in the log come last."""
    fixes = [_suggested_fix(fix, values, versions, lang) for fix in most_likely_first(entry.fixes, words)]
    return tuple(sorted(fixes, key=lambda fix: fix.fits is False))


def _suggested_fix(fix: Fix, values: Mapping[str, str], versions: dict[str, str], lang: Language) -> SuggestedFix:
    version, fits = shown(fix.applies, versions)
    return SuggestedFix(
        title=filled(fix.title.in_(lang), values),
        detail=filled(fix.detail.in_(lang), values) if fix.detail else "",
        commands=commands(fix.commands, values),
        applies=fix.applies,
        shown=version,
        fits=fits,
    )
