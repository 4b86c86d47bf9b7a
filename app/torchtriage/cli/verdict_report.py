"""Prints a verdict as text for people: a first screen of at most 20 lines and, if asked for, everything else."""

from __future__ import annotations

from collections import Counter

from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.labels import LABELS, ranks_named
from torchtriage.answer.shell_prompt import with_prompt
from torchtriage.cli.text_width import columns, cut, rows, wrapped
from torchtriage.domain.entry import Language
from torchtriage.domain.fact import Fact
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.verdict import Evidence, SuggestedFix, Verdict
from torchtriage.reading.file_types import FileForm
from torchtriage.reading.prefixes.strip import ANSI

MAX_ROWS = 19  # rows of the first screen, without the empty one after it
WIDTH = 100  # columns if the output is not a terminal
_MAX_WIDTH = 110  # maximum columns of a sentence; longer lines are hard to read
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN, _OFF = (
    "\x1b[1m",
    "\x1b[2m",
    "\x1b[31m",
    "\x1b[32m",
    "\x1b[33m",
    "\x1b[36m",
    "\x1b[0m",
)
_COLOURS = {"healthy": _GREEN, "inconclusive": _YELLOW}


def _both(label: str) -> tuple[str, str]:
    return LABELS[label].en, LABELS[label].zh


_LABELS: dict[str, tuple[str, str]] = {
    "where": ("Where", "位置"),
    "why": ("Why", "依据"),
    "do": ("Do", "怎么办"),
    "retry": ("Retry", "重试"),
    "sure": _both("confidence"),
}
_LEFT = (12, 9)  # columns for the labels
_RETRY = {
    "yes": ("yes.", "有帮助。"),
    "no": ("no.", "没有帮助。"),
    "once": ("once.", "可以试一次。"),
    "elsewhere": ("yes, on other hosts", "换主机重试"),
}
_PACK = ("pack", "条目包")
_NO_ENTRY = ("no entry of the knowledge base names the cause", "知识库中没有对应条目")
_SHORTENED = ("$ (long command: --all)", "$ （命令较长，见 --all）")
_WORDS: dict[str, tuple[str, str]] = {
    "evidence": ("Evidence", "证据"),
    "why": ("Causes", "可能原因"),
    "do": ("All fixes", "所有办法"),
    "check": ("Confirm it", "如何确认"),
    "shown": ("this log shows", "本日志显示"),
    "prevent": ("Prevention", "如何预防"),
    "followed": _both("followed"),
    "reasons": ("Why this verdict", "判断依据"),
    "others": _both("considered"),
    "earlier": ("Earlier runs in this log", "同一日志中更早的运行"),
    "facts": ("Facts about the run", "日志中的运行信息"),
    "more": ("Read more", "参考"),
    "sources": ("How each file was read", "各文件被识别为"),
    "warnings": ("Warnings", "注意"),
}
# Parts that only --all prints. The last line of the first screen names them, with the number of items.
_COUNTED: dict[str, tuple[str, str]] = {
    "why": ("causes ({})", "可能原因 {} 条"),
    "do": ("fixes ({})", "办法 {} 条"),
    "reasons": ("reasons ({})", "判断依据 {} 条"),
    "earlier": ("earlier runs ({})", "更早的运行 {} 次"),
    "facts": ("facts ({})", "运行信息 {} 条"),
}
_NUMBERED = frozenset({"why", "do"})


def report(verdict: Verdict, lang: Language, colour: bool, width: int = WIDTH, whole: bool = False) -> str:
    """Returns the first screen as text of `width` columns, with ANSI colors if `colour`. With `whole`, all other parts
    follow."""
    page = _Page(verdict, lang == "zh", colour, width)
    for tight in range(1 if whole else _TIGHTEST + 1):
        page.screen(tight, whole)
        if page.rows <= MAX_ROWS:
            break
    if whole:
        page.rest()
    return "\n".join(page.lines) + "\n"


_TIGHTEST = 5  # number of times that a first screen is shortened if it is too long


class _Page:
    def __init__(self, verdict: Verdict, chinese: bool, colour: bool, width: int) -> None:
        self.lines: list[str] = []
        self.rows = 0
        self._verdict, self._chinese, self._colour = verdict, chinese, colour
        self._width = max(width, 40)
        self._left = _LEFT[chinese]
        self._lang: Language = "zh" if chinese else "en"
        self._screen = first_screen(verdict, self._lang)
        self._rest = _rest(verdict, _WORDS["shown"][chinese], self._lang)

    def screen(self, tight: int, whole: bool) -> None:
        """Writes the first screen. Each higher value of `tight` shortens more: the evidence and the retry reason, long
        commands, the last steps, and at last the sentences."""
        self.lines, self.rows = [], 0
        verdict, screen = self._verdict, self._screen
        self._line(cut(verdict.source, self._width), _DIM)
        self._sentence("", screen.what, _BOLD + _COLOURS.get(verdict.outcome, _RED), most=3 if tight >= 5 else None)
        if screen.where:
            self._sentence("where", " · ".join(screen.where), _CYAN, most=2 if tight else None)
        if screen.why:
            self._sentence("why", _telling(screen.why), most=1 if tight >= 2 else 2 if tight else 3)
        self._steps(screen, tight)
        if screen.retry:
            self._sentence("retry", self._retry(screen, tight), _YELLOW)
        if verdict.root_cause is not None:
            self._sentence("sure", self._sure(screen), most=1)
        if screen.unknown:
            label = f"{LABELS['not_in_log'].in_(self._lang)}{'：' if self._chinese else ': '}"
            self._sentence("", label + screen.unknown, most=1 if tight >= 4 else 2 if tight >= 2 else None)
        if whole:
            return
        for warning in verdict.warnings[: 0 if tight else 2]:
            self._line(cut(f"! {warning}", self._width))
        if any(name in _COUNTED for name, _ in self._rest):
            self._line(self._hidden_parts(), _DIM)

    def rest(self) -> None:
        """Writes the parts after the first screen."""
        for name, items in self._rest:
            self._line("")
            self._line(_WORDS[name][self._chinese], _BOLD)
            for number, item in enumerate(items, 1):
                lead = f"{number}. " if name in _NUMBERED else ""
                self._line("  " + lead + item.replace("\n", "\n     "))

    def _steps(self, screen: FirstScreen, tight: int) -> None:
        steps = screen.steps[: 1 if tight >= 5 else 2 if tight >= 4 else None]
        longest = 2 if tight >= 3 else None
        for number, step in enumerate(steps, 1):
            self._sentence(
                "do" if number == 1 else " ", f"{number}. {step.do}", inner=3, most=2 if tight >= 5 else None
            )
            if step.run is None:
                continue
            lead = " " * (self._left + 3)
            first, *others = step.run.split("\n")
            shown = [lead + with_prompt(first), *(f"{lead}  {line}" for line in others)]
            if longest is not None and sum(rows(line, self._width) for line in shown) > longest:
                shown = [lead + _SHORTENED[self._chinese]]
            for line in shown:
                self._line(line)

    def _hidden_parts(self) -> str:
        """Returns the line that says what else --all prints. The parts that readers need most come first."""
        counted = {name: len(items) for name, items in self._rest}
        shown = [words[self._chinese].format(counted[name]) for name, words in _COUNTED.items() if name in counted]
        if self._chinese:
            return cut(f"--all 还显示：{'、'.join(shown)}{'等' if len(counted) > len(shown) else ''}", self._width)
        return cut(f"--all shows {', '.join(shown)}{' and more' if len(counted) > len(shown) else ''}", self._width)

    def _retry(self, screen: FirstScreen, tight: int) -> str:
        advice = _RETRY[screen.retry or "no"][self._chinese]
        if screen.exclusion:
            advice = f"{advice.rstrip('.。')} ({screen.exclusion}){'。' if self._chinese else '.'}"
        elif screen.retry == "elsewhere":
            advice += "。" if self._chinese else "."
        whole = f"{advice}{'' if self._chinese else ' '}{screen.because}".rstrip()
        return advice if tight and columns(whole) > min(self._width, _MAX_WIDTH) - self._left else whole

    def _sure(self, screen: FirstScreen) -> str:
        verdict, root = self._verdict, self._verdict.root_cause
        if root is None or screen.sure is None:
            return _NO_ENTRY[self._chinese]
        case = verdict.answer.case if verdict.answer else None
        name = root.pack or (verdict.answer and verdict.answer.pack)
        pack = f" ({_PACK[self._chinese]} {name})" if name else ""
        return f"{LABELS[screen.sure].in_(self._lang)} · {root.entry}{'/' + case if case else ''}{pack}"

    def _sentence(self, label: str, text: str, style: str = "", inner: int = 0, most: int | None = None) -> None:
        """Writes a sentence after its label, wrapped to at most `most` lines."""
        left = self._left if label else 0
        lines = wrapped(ANSI.sub("", text), min(self._width, _MAX_WIDTH) - left, inner, most)
        name = _LABELS[label][self._chinese] if label.strip() else ""
        lead = f"{name}{' ' * (left - (2 * len(name) if self._chinese else len(name)))}"
        for at, line in enumerate(lines):
            start = (f"{_DIM}{lead}{_OFF}" if self._colour and name else lead) if at == 0 else " " * left
            self._line(line, style, start)

    def _line(self, text: str, style: str = "", lead: str = "") -> None:
        self.rows += rows(ANSI.sub("", lead) + text, self._width)
        self.lines.append(lead + (f"{style}{text}{_OFF}" if self._colour and style else text))


def _rest(verdict: Verdict, shown: str, lang: Language) -> list[tuple[str, list[str]]]:
    """Returns the name and items of each part that is not on the first screen and is not empty."""
    root = verdict.root_cause
    parts: list[tuple[str, list[str]]] = []
    if root is not None:
        evidence = [_telling(line) for line in root.evidence]
        parts += [
            ("evidence", evidence if len(evidence) > 1 else []),
            ("why", list(root.causes)),
            ("do", [_fix(fix, shown) for fix in root.fixes]),
            ("check", [with_prompt(check) for check in root.checks]),
            ("prevent", list(root.prevent)),
            ("followed", [_cascade(verdict, number, lang) for number in range(len(verdict.cascades))]),
            ("reasons", list(root.reasons)),
        ]
    parts += [
        ("others", [f"{other.entry} ({other.score:.2f})" for other in verdict.candidates]),
        ("earlier", [f"{run.line}: {run.outcome} {run.entry or ''}".rstrip() for run in verdict.earlier_runs]),
        ("facts", [_fact(fact) for fact in verdict.facts]),
        ("more", list(root.references) if root else []),
        ("sources", _sources(verdict)),
        ("warnings", [f"! {warning}" for warning in verdict.warnings]),
    ]
    return [(name, items) for name, items in parts if items]


def _telling(line: Evidence) -> str:
    return f"{line.file + ':' if line.file else ''}{line.line}: {ANSI.sub('', line.text).strip()}"


def _fix(fix: SuggestedFix, shown: str) -> str:
    version = f"; {shown} {fix.shown}" if fix.shown else ""
    applies = f" [{fix.applies}{version}]" if fix.applies not in ("any", "") else ""
    detail = f"\n{fix.detail}" if fix.detail else ""
    return f"{fix.title}{applies}{detail}" + "".join(f"\n{with_prompt(command)}" for command in fix.commands)


def _fact(fact: Fact) -> str:
    value = cut(" ".join(ANSI.sub("", fact.text).split()), 200)
    at = "" if fact.line is None else f"  ({fact.file + ':' if fact.file else ''}{fact.line})"
    return f"{fact.name}: {value}{at}"


def _sources(verdict: Verdict) -> list[str]:
    """Returns how many files were read as which kind, and which files were left out. Empty if all are logs."""
    forms = Counter(source.taken_for for source in verdict.run.sources)
    if forms.keys() <= {FileForm.LOG}:
        return []
    left = [f"{source.file}: {source.note}" for source in verdict.run.sources if source.note]
    return [", ".join(f"{count} {form}" for form, count in forms.items()), *left]


def _cascade(verdict: Verdict, number: int, lang: Language) -> str:
    cascade = verdict.cascades[number]
    ranks = f" · {ranks_named(cascade.ranks, LABELS['several_ranks'].in_(lang))}" if cascade.ranks else ""
    return f"{cascade.line}: {cascade.entry or ''}{ranks}  {ANSI.sub('', cascade.text)[:140]}"
