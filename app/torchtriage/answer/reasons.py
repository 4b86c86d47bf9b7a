"""Explains in sentences why the engine chose this verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torchtriage.causality.all_rules import RULE_LISTS
from torchtriage.causality.consequences import explains
from torchtriage.causality.missing_ranks import awaited
from torchtriage.causality.rank_attribution import RankRule
from torchtriage.causality.root_cause import FAILED, Choice
from torchtriage.domain.entry import Kind, Language
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.json_form import Scalar
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import Reason, RootCause
from torchtriage.reading.redaction.redact import redact
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

_SENTENCES: dict[str, tuple[str, str]] = {
    "sign": ("line {line} shows the message of {entry}", "第 {line} 行出现了 {entry} 的报错信息"),
    "exit": ("line {line} shows how the process ended: {text}", "第 {line} 行说明了进程的结束方式：{text}"),
    "near": (
        "it is similar to the message of {entry} ({similarity} of 100): "
        "the log says “{log}” where the entry has “{expected}”",
        "与 {entry} 的报错信息近似（{similarity}/100）：日志中是“{log}”，条目中是“{expected}”",
    ),
    "tidied": (
        "it matches the message of {entry} after undoing line breaks, quote marks and escapes",
        "去掉换行、引用符号和转义后，就是 {entry} 的报错信息",
    ),
    "catch_all": (
        "only a general entry matches; no specific entry covers this failure",
        "只有通用条目与它相符，没有更具体的条目",
    ),
    "unknown": ("no entry of the knowledge base covers this failure", "知识库中没有条目能解释这个失败"),
    "echo": (
        "this is usually a consequence of another failure, which the log does not show",
        "这通常是其他失败的后果，但日志里没有更早的线索",
    ),
    "ranks": ("the same failure on ranks {ranks}, merged into one", "rank {ranks} 出现同样的失败，已合并为一条"),
    "first": ("it comes before every other failure of the run ({count})", "它先于本次运行的其他失败（{count} 个）"),
    "gave_way": (
        "{entry} also occurred, but only after a worker had failed on its own",
        "日志中也有 {entry}，但在此之前已有 worker 自行失败",
    ),
    "overruled": (
        "torchrun reports rank {named} as the first observed failure, but it is a consequence of rank {rank}'s failure",
        "torchrun 把 rank {named} 报为首个失败，但它只是 rank {rank} 失败的后果",
    ),
    "torn": ("the ranks called different collectives: {sides}", "各 rank 调用了不同的集合通信：{sides}"),
    "few": (
        "{noun} {ranks} called a different collective from the others; check them first",
        "rank {ranks} 调用的集合通信与其他 rank 不同；先查看这些 rank",
    ),
    "behind": (
        "{noun} {ranks} stopped at collective {sequence}, others at {others}; check them first",
        "rank {ranks} 停在第 {sequence} 次集合通信，其他 rank 已到第 {others} 次；先查看这些 rank",
    ),
    "missing": (
        "the others waited for {noun} {ranks}, which never arrived; check them first",
        "其他 rank 在等待 rank {ranks}，而它们一直没有到达；先查看这些 rank",
    ),
    "dumps": (
        "the dumps or stacks of {count} ranks show that the others waited for {noun} {ranks}",
        "{count} 个 rank 的 dump 或栈表明，其他 rank 在等待 rank {ranks}",
    ),
    "ras": ("NCCL's RAS report names {noun} {ranks}", "NCCL 的 RAS 报告指向 rank {ranks}"),
    "dumps_agree": (
        "the flight recorder agrees: the others waited for {noun} {ranks}",
        "flight recorder 与此一致：其他 rank 在等待 rank {ranks}",
    ),
    "dumps_differ": (
        "the flight recorder points to {noun} {ranks} instead: the others waited for them",
        "flight recorder 指向的却是 rank {ranks}：其他 rank 在等待它们",
    ),
    "reported": (
        "{file} (recognized as {form}) shows this cause; "
        "the log alone points to {entry} (line {line}), which is a consequence",
        "{file}（识别为：{form}）说明了这一点；只看日志会得出 {entry}（第 {line} 行），那是它的后果",
    ),
    "report_agrees": (
        "{file} (recognized as {form}) agrees: line {line} shows {entry}",
        "{file}（识别为：{form}）与此一致：第 {line} 行出现 {entry}",
    ),
    "report_differs": (
        "{file} (recognized as {form}) shows {entry} in line {line}, which does not explain this failure",
        "{file}（识别为：{form}）第 {line} 行出现 {entry}，但它解释不了这个失败",
    ),
    "clock_ahead": (
        "the clock of {host} is {seconds} s ahead of that of {reference} ({count} common steps); "
        "failures are ordered with this corrected",
        "{host} 的时钟比 {reference} 快 {seconds} 秒（依据 {count} 个共同的 step），失败的先后已按此校正",
    ),
    "clock_behind": (
        "the clock of {host} is {seconds} s behind that of {reference} ({count} common steps); "
        "failures are ordered with this corrected",
        "{host} 的时钟比 {reference} 慢 {seconds} 秒（依据 {count} 个共同的 step），失败的先后已按此校正",
    ),
    "survived": (
        "the run continued after {count} other alarming messages, so they were excluded",
        "另有 {count} 条信息被排除，因为之后训练仍在继续",
    ),
    "attempts": ("this is the first failure of {count} attempts", "这是 {count} 次尝试中的第一次失败"),
}

_MAX_CLOCKS = 3  # hosts whose clock errors are mentioned
_WHOLE_SECONDS = 10  # seconds: from this length on, tenths are left out

# How the sentence of a rule begins: for the cause itself, for a finding that is no cause, for the rank.
_RULE_FORMS = {
    "rule": ("{}", "{}"),
    "set_aside_by": ("excluded: {}", "已排除：{}"),
    "rank_by": ("rank: {}", "rank 的依据：{}"),
}
_RULES: dict[str, Any] = {rule.name: rule for rules in RULE_LISTS if rules.name != "FALLBACKS" for rule in rules.rules}
_IMPLIED_RULES = frozenset(rule.name for rule in FAILED)  # A verdict with a root cause already says this.

_REASON_OF_SUSPECTS = {"named": "missing", "absent": "missing", "torn": "few", "behind": "behind"}


def reason_sentences(because: Iterable[Reason], lang: Language) -> tuple[str, ...]:
    """Returns the sentences of the reasons from `because_of`. Reasons with names that this version does not know are
    left out."""
    return tuple(sentence for reason in because if (sentence := _sentence(reason, lang)) is not None)


def _sentence(reason: Reason, lang: Language) -> str | None:
    if reason.name in ("rule", "set_aside_by", "rank_by"):
        return _rule_sentence(reason, lang)
    if reason.name not in _SENTENCES:
        return None
    return _SENTENCES[reason.name][lang == "zh"].format(**reason.values, noun=_noun(reason.values))


def _noun(values: Mapping[str, object]) -> str:
    return "rank" if str(values.get("ranks", "")).isdecimal() else "ranks"


def because_of(choice: Choice, reading: Reading, root: RootCause, rank_rule: RankRule | None) -> tuple[Reason, ...]:
    """Returns the reasons for the verdict as names and values, most important first."""
    reasons = [
        *_what_showed_it(choice, root),
        *_dump_reasons(choice, reading, root),
        *_report_reasons(choice, reading),
        *_relation_to_others(choice, reading, root),
        *_missing(reading),
        *_clocks(reading, root),
    ]
    alone = awaited(choice.root, choice.live, reading) if choice.root is not None else None
    if alone is not None and alone == root.rank:
        reasons.append(Reason("missing", {"ranks": str(alone)}))
    if len(choice.roots) > 1:
        reasons.append(Reason("attempts", {"count": len(choice.roots)}))
    if choice.survived:
        reasons.append(Reason("survived", {"count": len(choice.survived)}))
    return (*reasons, *_rules(choice, rank_rule))


def _rules(choice: Choice, rank_rule: RankRule | None) -> Iterator[Reason]:
    """Yields the rules that decided the cause, what was set aside, and the rank."""
    for rule in choice.rules:
        yield Reason("set_aside_by" if rule.sets_aside else "rule", {"rule": rule.name})
    if rank_rule is not None:
        yield Reason("rank_by", {"rule": rank_rule.name})


def _rule_sentence(reason: Reason, lang: Language) -> str | None:
    """Returns the sentence of a rule, or None if this version does not know the rule or it says nothing about this
    run."""
    rule = _RULES.get(str(reason.values.get("rule")))
    if rule is None or rule.name in _IMPLIED_RULES:
        return None
    sentence = rule.reason_zh if lang == "zh" else rule.reason
    return _RULE_FORMS[reason.name][lang == "zh"].format(sentence)


def _what_showed_it(choice: Choice, root: RootCause) -> Iterator[Reason]:
    """Yields what showed the failure."""
    finding = choice.root
    assert finding is not None
    match, line = finding.match, root.evidence[0].line
    if match is None:
        yield Reason("unknown")
    elif match.near:
        near = match.near
        log_words = _part(near.log, finding)
        name = "near" if near.log or near.expected else "tidied"
        similarity = round(near.similarity)
        values: dict[str, Scalar] = {
            "entry": match.entry.id,
            "similarity": similarity,
            "log": log_words,
            "expected": near.expected,
        }
        yield Reason(name, values)
    elif finding.event.where is Where.EXIT:
        yield Reason("exit", {"line": line, "text": finding.event.text})
    elif match.entry.catch_all:
        yield Reason("catch_all")
    else:
        yield Reason("sign", {"line": line, "entry": match.entry.id})
    if match is not None and match.entry.kind is Kind.CONSEQUENCE:
        yield Reason("echo")


def _part(words: str, finding: Finding) -> str:
    """Returns some words of a message if that message has no secret. A part of a message can lack the name that reveals
    a secret."""
    whole = "\n".join([finding.event.text, *(raised.text for raised in finding.event.chain)])
    return words if redact(whole) == whole else "…"


def _relation_to_others(choice: Choice, reading: Reading, root: RootCause) -> Iterator[Reason]:
    """Yields how the failure relates to the other failures of the run."""
    finding = choice.root
    assert finding is not None
    if len(finding.ranks) > 1:
        yield Reason("ranks", {"ranks": str(RankSet.of(finding.ranks))})
    reported = [other.event for other in reading.findings if other.event.source is EventSource.FIRST_FAILURE]
    others = [other for other in choice.live if other is not finding and other.position > finding.position]
    if others:
        yield Reason("first", {"count": len(others)})
    if choice.gave_way and finding.entry not in choice.gave_way:
        yield Reason("gave_way", {"entry": choice.gave_way[0]})
    named = next((event.rank for event in reported if event.attempt == finding.attempt), None)
    if named is not None and root.rank is not None and named != root.rank and named not in finding.ranks:
        yield Reason("overruled", {"named": named, "rank": root.rank})


def _dump_reasons(choice: Choice, reading: Reading, root: RootCause) -> Iterator[Reason]:
    """Yields the ranks that dumps and stack traces name, alone or in addition to the log's own cause."""
    hang = reading.evidence.hang
    if hang is None or not hang.suspects or choice.root is None:
        return
    ranks: dict[str, Scalar] = {"ranks": str(RankSet.of(hang.suspects))}
    if choice.root.event.source is EventSource.EVIDENCE and hang.report is not None:
        yield Reason("ras", ranks)
    elif choice.root.event.source is EventSource.EVIDENCE:
        yield Reason("dumps", ranks | {"count": max(len(reading.evidence.dumped), reading.evidence.stacked)})
    elif root.rank is not None or choice.root.ranks:
        own = choice.root.ranks | ({root.rank} if root.rank is not None else set())
        yield Reason("dumps_agree" if own & set(hang.suspects) else "dumps_differ", ranks)


def _report_reasons(choice: Choice, reading: Reading) -> Iterator[Reason]:
    """Yields what reports of other tools show: instead of the log's own cause, for it or against it."""
    root, own = choice.root, choice.instead_of
    assert root is not None
    if own is not None and own.entry is not None and own.entry != root.entry:
        yield Reason("reported", _report_values(root, reading) | {"entry": own.entry, "line": own.event.line.number})
    mentioned = {root.entry}
    for report in choice.reported:
        if report.entry in mentioned or (report.match is not None and report.match.weak):
            continue
        mentioned.add(report.entry)
        yield Reason("report_agrees" if explains(root, report) else "report_differs", _report_values(report, reading))
    same = next((report for report in choice.reported if report.entry == root.entry), None)
    if same is not None and root not in reading.report_findings:
        yield Reason("report_agrees", _report_values(same, reading))


def _clocks(reading: Reading, root: RootCause) -> Iterator[Reason]:
    """Yields the hosts whose clocks are wrong: the root cause's host first, then those with the largest error."""
    far = sorted(reading.clock_offsets, key=lambda offset: (offset.host != root.host, -abs(offset.seconds)))
    for offset in far[:_MAX_CLOCKS]:
        seconds = abs(offset.seconds)
        values: dict[str, Scalar] = {
            "host": offset.host,
            "seconds": round(seconds) if seconds >= _WHOLE_SECONDS else seconds,
            "reference": offset.reference,
            "count": offset.events,
        }
        yield Reason("clock_ahead" if offset.seconds > 0 else "clock_behind", values)


def _report_values(report: Finding, reading: Reading) -> dict[str, Scalar]:
    line, form = report.event.line, reading.forms.get(report.position.file)
    return {"file": line.file or "", "form": str(form or ""), "line": line.number, "entry": report.entry or ""}


def _missing(reading: Reading) -> Iterator[Reason]:
    """Yields what ranks disagreed on, and the ranks that the others seem to wait for."""
    sides = reading.extractors.collectives.sides()
    if len(sides) > 1:
        descriptions = (f"{what.replace(' of ', ' ')} (rank {RankSet.of(ranks)})" for what, ranks in sides)
        yield Reason("torn", {"sides": ", ".join(descriptions)})
    suspects = reading.extractors.collectives.suspects(reading.facts.world_size)
    if suspects is not None:
        yield Reason(
            _REASON_OF_SUSPECTS[suspects.why],
            {
                "ranks": str(RankSet.of(suspects.ranks)),
                "sequence": suspects.sequence,
                "others": suspects.others,
            },
        )
