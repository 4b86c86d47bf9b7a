"""Explains why an entry matched a log or not: for each sign, its best alignment with the log and the result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import re2

from torchtriage.answer.case_selection import TEXTS, RejectedCase, try_cases
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.registry import failure_facts
from torchtriage.answer.rank_timeline import timeline
from torchtriage.answer.templates import short
from torchtriage.answer.verdict import root_cause
from torchtriage.answer.verdict_run import run_facts
from torchtriage.causality.consequences import causes, explained_by
from torchtriage.causality.fallbacks import completed
from torchtriage.causality.root_cause import Choice, choose, with_attempts
from torchtriage.domain.entry import Entry, Language, Sign
from torchtriage.domain.event import Where
from torchtriage.lazy_regex import lazy_regex
from torchtriage.linear_regex import linear_regex
from torchtriage.matching.matcher import Matcher, frames_text
from torchtriage.matching.patterns import Patterns
from torchtriage.matching.sign_alignment import Alignment, SignToken, align
from torchtriage.reading.blocks import blocks
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import strip_prefixes
from torchtriage.reading.redaction.encoded_secrets import redact_encoded
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.reading.sources import Run
from torchtriage.runs.findings import Finding, failing_findings, with_matches
from torchtriage.runs.read_runs import read_runs
from torchtriage.runs.run_reading import Reading

MAX_LINES = 20_000  # lines with a word of the entry that are searched
_MAX_LENGTH = 4000  # characters of a line
_WORD = lazy_regex(r"[A-Za-z_]{4,}")
_ESCAPES = lazy_regex(r"\\[A-Za-z]|\(\?[a-zA-Z]+\)|\[[^\]]*\]")
_SENTENCES: dict[str, tuple[str, str]] = {
    "root": ("it is the root cause", "它就是根因"),
    "explained": ("it matched, but it is a consequence of {other}", "已匹配，但它是 {other} 的后果"),
    "weaker": (
        "it matched, but {other} has a higher priority or failed earlier",
        "已匹配，但 {other} 优先级更高或失败更早",
    ),
    "beaten": ("it matched, but {other} matches the same line more specifically", "已匹配，但同一行 {other} 更具体"),
    "survived": ("it matched, but the run continued after it", "已匹配，但之后运行仍在继续"),
    "attempt": (
        "it matched in attempt {other}, but the root cause is in another attempt",
        "在第 {other} 次尝试中匹配，而根因在另一次尝试",
    ),
    "set_aside": (
        "it matched, but was excluded: the launcher caused it, or it belongs to an earlier run in the log",
        "已匹配但被排除：启动器的清理动作，或日志中更早的运行",
    ),
    "general": (
        "it matched, but any program can print this message, and nothing shows that this is a training log",
        "已匹配，但任何程序都可能打印这条信息，而日志没有表明这是一次训练",
    ),
    "none": ("no sign matched", "没有匹配的特征"),
    "no_signs": ("the entry has no signs, so it is found only by search", "该条目没有日志特征，只能通过搜索找到"),
    "matched": ("matches", "匹配"),
    "part": ("matches in part ({share:.0%})", "部分匹配（{share:.0%}）"),
    "nothing": ("the log has no similar text", "日志中没有类似内容"),
    "place": (
        "matches, but in “{found_in}”, while the sign searches only “{where}”",
        "文本匹配，但出现在“{found_in}”中，而该特征只查“{where}”",
    ),
    "unless": (
        "matches, but the text also matches `unless`: {unless}",
        "匹配，但同一文本含有 unless 排除的内容：{unless}",
    ),
    "speaks": ("is selected", "生效"),
    "later": ("also applies, but {other} comes first", "也成立，但 {other} 在它之前"),
    "sign": ("does not apply: the failure does not match its sign", "不生效：故障中没有它的特征"),
    "condition": (
        "does not apply: {detail} is {value}, but it requires {other}",
        "不生效：{detail} 是 {value}，而它要求 {other}",
    ),
    "text": ("does not apply: {value} is not found in {detail}", "不生效：{detail} 中没有 {value}"),
    "known": ("does not apply: {detail} is known: {value}", "不生效：{detail} 已知：{value}"),
    "unknown": ("does not apply: {detail} is unknown", "不生效：{detail} 未知"),
    "slot": ("does not apply: its sentence needs {detail}, which is unknown", "不生效：句子需要 {detail}，而它未知"),
    "group": ("matches, but another member of its `all:` group is missing", "匹配，但同一 all: 组的其他成员缺失"),
}


@dataclass(frozen=True, slots=True)
class SignResult:
    """The result of one sign. `state` is matched, part, nothing, place, unless or group. `line` counts from 1 in
    `file`."""

    sign: str
    where: str
    state: str
    share: float
    tokens: tuple[SignToken, ...] = ()
    line: int | None = None
    file: str | None = None
    text: str = ""
    found_in: str = ""
    unless: str = ""
    group: int | None = None

    def sentence(self, lang: Language) -> str:
        """Returns the result as a sentence. It never calls a partial match a full one."""
        values = {name: getattr(self, name) for name in self.__slots__} | {"share": min(self.share, 0.99)}
        return _SENTENCES[self.state][lang == "zh"].format(**values)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case if its entry is the root cause. `state` is one of: speaks; later (`other` comes first);
    sign; slot (`detail` names the slots without a value). For a condition on the fact `detail` it is condition (its
    `value` differs from `other`, which is required), text (it does not match the regex `value`), known or unknown."""

    case: str
    state: str
    detail: str = ""
    value: str = ""
    other: str = ""

    def sentence(self, lang: Language) -> str:
        """Returns the result as a sentence."""
        return _SENTENCES[self.state][lang == "zh"].format(**{name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class Why:
    """The result of an entry for a log. `state` is one of root, explained, weaker, beaten, survived, attempt,
    set_aside, general, none and no_signs. `other` is the entry or the attempt that the state refers to. `cases` are
    those of the root cause, in the order in which they were tried."""

    entry: str
    state: str
    other: str | None
    root_cause: str | None
    signs: tuple[SignResult, ...]
    cases: tuple[CaseResult, ...] = ()

    def sentence(self, lang: Language) -> str:
        return _SENTENCES[self.state][lang == "zh"].format(other=self.other or "")

    def as_dict(self, lang: Language) -> dict[str, Any]:
        signs = [asdict(sign) | {"reason": sign.sentence(lang)} for sign in self.signs]
        cases = [asdict(case) | {"reason": case.sentence(lang)} for case in self.cases]
        return asdict(self) | {"reason": self.sentence(lang), "signs": signs, "cases": cases}


@dataclass(frozen=True, slots=True)
class _Text:
    kind: str
    text: str
    line: int
    file: str | None


def why(patterns: Patterns, matcher: Matcher, run: Run, entry: Entry) -> Why:
    """Returns why `entry` matched `run` or not. It reads the files of `run` twice. Raises UnreadableLog."""
    readings = completed(read_runs(run, patterns, matcher))
    findings = [each for reading in readings for each in failing_findings(with_matches(reading.findings, matcher))]
    texts = [text for finding in findings for text in _texts(finding)]
    shown = any(match.entry.id == entry.id for finding in findings for match in finding.matches)
    findings = [each for reading in readings for each in reading.failures()]  # as triage does
    last = with_attempts(readings[-1].matched())
    choice = choose(last)
    plain = [sign for sign in entry.signs for sign in (sign.all or (sign,))]
    texts += _lines(run, plain)
    results: list[SignResult] = []
    for number, sign in enumerate(entry.signs):
        parts = [_result(part, texts, number if sign.all else None) for part in sign.all or (sign,)]
        torn = any(part.state != "matched" for part in parts)
        results += [_as_group_part(part) if torn and part.state == "matched" else part for part in parts]
    state, other = _entry_state(entry, choice, findings)
    state = "general" if state == "none" and shown else state
    root = choice.root.entry if choice.root else None
    results.sort(key=lambda result: (result.state != "matched", -result.share))
    cases = tuple(_cases(choice, last)) if state == "root" else ()
    return without_secrets(Why(entry.id, state if entry.signs else "no_signs", other, root, tuple(results), cases))


def _cases(choice: Choice, reading: Reading) -> Iterator[CaseResult]:
    """Yields the results of the cases of the root cause's entry."""
    if choice.root is None:
        return
    root, _ = root_cause(choice, reading, {}, redact_encoded)
    marks = timeline(choice, reading, root)
    failure = Failure(choice.root, root, choice, reading, run_facts(reading, choice), marks, redact_encoded)
    speaker = ""
    for tried in try_cases(failure, failure_facts(failure)):
        if isinstance(tried, RejectedCase):
            yield _rejected(tried)
        elif speaker:
            yield CaseResult(tried.case.id, "later", other=speaker)
        else:
            speaker = tried.case.id
            yield CaseResult(speaker, "speaks")


def _rejected(tried: RejectedCase) -> CaseResult:
    case, fact = tried.case, tried.detail
    asked = next((each for each in case.when if each.fact == fact), None) if tried.state == "condition" else None
    if asked is None:
        return CaseResult(case.id, tried.state, fact)
    if tried.value is None:
        return CaseResult(case.id, "unknown", fact)
    if asked.regex is None:
        return CaseResult(case.id, "known", fact, short(tried.value))
    if fact in TEXTS:
        return CaseResult(case.id, "text", fact, asked.regex)
    return CaseResult(case.id, "condition", fact, short(tried.value), asked.regex)


def _entry_state(entry: Entry, choice: Choice, findings: list[Finding]) -> tuple[str, str | None]:
    """Returns the state of the entry's matches, and the entry or attempt that decided it."""
    own = [finding for finding in findings if any(match.entry.id == entry.id for match in finding.matches)]
    if choice.root is not None and choice.root.entry == entry.id:
        return "root", None
    if not own:
        return "none", None
    live = [finding for finding in choice.live if any(match.entry.id == entry.id for match in finding.matches)]
    if not live:
        survived = any(match.entry.id == entry.id for finding in choice.survived for match in finding.matches)
        return ("survived" if survived else "set_aside"), None
    known, root = causes(choice.live), choice.root
    first = [finding for finding in live if finding.entry == entry.id]
    if not first:
        return "beaten", live[0].entry
    if root is not None and all(finding.attempt != root.attempt for finding in first):
        return "attempt", str(first[0].attempt)
    cause = explained_by(first[0], known)
    return ("explained", cause.entry) if cause else ("weaker", root.entry if root else None)


def _result(sign: Sign, texts: list[_Text], group: int | None) -> SignResult:
    """Returns the sign's result for the text that it matches best."""
    best: tuple[tuple[bool, bool, float], _Text, Alignment] | None = None
    for text in texts:
        laid = align(sign, text.text)
        rank = (laid.whole and _searches_in(sign, text.kind), laid.whole, laid.share)
        if best is None or rank > best[0]:
            best = rank, text, laid
    shown = sign.text or sign.regex or ""
    if best is None or not best[2].share:
        return SignResult(shown, sign.where, "nothing", 0.0, group=group)
    (matched, whole, _), text, laid = best
    redacted = redact_encoded(text.text)
    if redacted != text.text:
        laid = align(
            sign, redacted
        )  # its tokens are parts of the text, and a part can lack the name that reveals a secret
    excluded = matched and sign.unless is not None and bool(linear_regex(sign.unless).search(text.text))
    state = "unless" if excluded else "matched" if matched else "place" if whole else "part"
    return SignResult(shown, sign.where, state, laid.share, laid.tokens, text.line, text.file,
                      redacted[:500], text.kind, sign.unless or "", group)  # fmt: skip


def _as_group_part(result: SignResult) -> SignResult:
    values = {name: getattr(result, name) for name in result.__slots__}
    return SignResult(**values | {"state": "group"})


def _searches_in(sign: Sign, kind: str) -> bool:
    return sign.where == kind or (sign.where == "any" and kind in ("line", "exception"))


def _texts(finding: Finding) -> Iterator[_Text]:
    """Yields the texts of an event in which signs are searched."""
    event = finding.event
    if event.where is not Where.EXCEPTION:
        yield _Text(str(event.where), event.text, event.line.number, event.line.file)
    for raised in event.chain:
        line = raised.lines[0] if raised.lines else event.line
        yield _Text("exception", raised.text, line.number, line.file)
        if frames := frames_text(raised):
            yield _Text("frame", frames, line.number, line.file)


def _lines(run: Run, signs: list[Sign]) -> list[_Text]:
    """Returns the log lines that contain a word of one of the signs. Of equal texts, only the first line is
    returned."""
    words = {word for sign in signs for word in _WORD.findall(_ESCAPES.sub(" ", sign.text or sign.regex or ""))}
    found: dict[str, _Text] = {}
    if not words:
        return []
    sign = re2.compile("(?i)" + "|".join(re.escape(word) for word in sorted(words)))
    for file in run.files():
        number = 1
        for block in blocks(file.chunks(), file.name):
            place = counted = 0
            while len(found) < MAX_LINES and (hit := sign.search(block, place)):
                start, end = block.rfind(b"\n", 0, hit.start()) + 1, block.find(b"\n", hit.start())
                place = len(block) if end < 0 else end + 1
                number, counted = number + block.count(b"\n", counted, start), start
                text = strip_prefixes(
                    block[start : start + min(place - start, _MAX_LENGTH)].decode("utf-8", "replace").rstrip(), Labels()
                )
                found.setdefault(text.text, _Text("line", text.text, number, file.name if run.several else None))
            number += block.count(b"\n", counted)
    return list(found.values())
