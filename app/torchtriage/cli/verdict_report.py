"""A verdict as a page for people: what failed, why, what to do, and the lines that show it."""

from __future__ import annotations

from torchtriage.domain.entry import Language
from torchtriage.domain.verdict import SuggestedFix, Verdict
from torchtriage.reading.prefixes.strip import ANSI

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN, _OFF = (
    "\x1b[1m",
    "\x1b[2m",
    "\x1b[31m",
    "\x1b[32m",
    "\x1b[33m",
    "\x1b[36m",
    "\x1b[0m",
)
_WORDS: dict[str, tuple[str, str]] = {
    "healthy": ("Nothing failed", "没有发现失败"),
    "unexplained": ("Failed, and no entry names the cause", "运行失败，知识库中没有对应条目"),
    "evidence": ("Evidence", "证据"),
    "why": ("Cause", "原因"),
    "do": ("What to do", "怎么办"),
    "check": ("Confirm it", "如何确认"),
    "shown": ("this log shows", "本日志显示"),
    "prevent": ("Prevention", "如何预防"),
    "followed": ("What followed", "连带后果"),
    "reasons": ("Why this verdict", "判断依据"),
    "others": ("Also seen", "其他候选"),
    "earlier": ("Earlier runs in this log", "同一日志中更早的运行"),
    "more": ("Read more", "参考"),
    "retry": ("Retry", "重试"),
}
_RETRY = {
    "yes": ("will help", "有帮助"),
    "no": ("will not help", "没有帮助"),
    "once": ("is worth one try", "可以试一次"),
}


_SURE = {"certain": "确定", "likely": "很可能", "possible": "可能"}


def report(verdict: Verdict, lang: Language, colour: bool) -> str:
    """-> the whole page as text, with ANSI colours where `colour` is set."""
    page = _Page(lang == "zh", colour)
    root = verdict.root_cause
    page.line(verdict.source, _DIM)
    if root is None:
        page.line(page.word("healthy"), _BOLD + _GREEN)
    else:
        page.line(root.title if root.entry else page.word("unexplained"), _BOLD + _RED)
        sure = _SURE[root.confidence] if page.chinese else root.confidence
        about = [root.entry or verdict.signature or "", sure, _host_and_rank(verdict), root.time or ""]
        page.line(" · ".join(part for part in about if part), _CYAN)
        retry = _RETRY[verdict.action.retry][lang == "zh"]
        elsewhere = f" ({verdict.action.exclusion})" if verdict.action.exclusion else ""
        colon, stop = ("：", "。") if page.chinese else (": ", ". ")
        page.line(f"{page.word('retry')}{colon}{retry}{elsewhere}{stop}{verdict.action.reason}", _YELLOW)
        page.part("evidence", [f"{line.file + ':' if line.file else ''}{line.line}: {ANSI.sub('', line.text).strip()}"
                               for line in root.evidence])  # fmt: skip
        page.part("why", list(root.causes), numbered=True)
        page.part("do", [_fix(fix, page.word("shown")) for fix in root.fixes], numbered=True)
        page.part("check", [f"$ {check}" for check in root.checks])
        page.part("prevent", list(root.prevent))
        page.part("followed", [_cascade(verdict, number) for number in range(len(verdict.cascades))])
        page.part("reasons", list(root.reasons))
        page.part("more", list(root.references))
    page.part("others", [f"{other.entry} ({other.score:.2f})" for other in verdict.candidates])
    page.part("earlier", [f"{run.line}: {run.outcome} {run.entry or ''}".rstrip() for run in verdict.earlier_runs])
    page.part("", [f"! {warning}" for warning in verdict.warnings])
    return "\n".join(page.lines) + "\n"


class _Page:
    def __init__(self, chinese: bool, colour: bool) -> None:
        self.lines: list[str] = []
        self.chinese, self._colour = chinese, colour

    def word(self, key: str) -> str:
        return _WORDS[key][self.chinese]

    def line(self, text: str, style: str = "") -> None:
        self.lines.append(f"{style}{text}{_OFF}" if self._colour and style else text)

    def part(self, title: str, items: list[str], numbered: bool = False) -> None:
        if not items:
            return
        self.line("")
        if title:
            self.line(self.word(title), _BOLD)
        for number, item in enumerate(items, 1):
            lead = f"{number}. " if numbered else ""
            self.line("  " + lead + item.replace("\n", "\n     "))


def _host_and_rank(verdict: Verdict) -> str:
    root = verdict.root_cause
    if root is None:
        return ""
    rank = f"rank {root.rank}" if root.rank is not None else ""
    return " @ ".join(part for part in (rank, root.host or "") if part)


def _fix(fix: SuggestedFix, shown: str) -> str:
    version = f"; {shown} {fix.shown}" if fix.shown else ""
    applies = f" [{fix.applies}{version}]" if fix.applies not in ("any", "") else ""
    detail = f"\n{fix.detail}" if fix.detail else ""
    return f"{fix.title}{applies}{detail}" + "".join(f"\n$ {command}" for command in fix.commands)


def _cascade(verdict: Verdict, number: int) -> str:
    cascade = verdict.cascades[number]
    ranks = f" · rank {cascade.ranks}" if cascade.ranks else ""
    return f"{cascade.line}: {cascade.entry or ''}{ranks}  {ANSI.sub('', cascade.text)[:140]}"
