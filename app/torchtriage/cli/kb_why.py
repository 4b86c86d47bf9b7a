"""`torchtriage kb why`: explains, sign by sign, why an entry did or did not match a log, and which case was
selected."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.cli.text_width import cut
from torchtriage.errors import NotFound

if TYPE_CHECKING:
    from torchtriage.answer.explain_match import CaseResult, SignResult, Why
    from torchtriage.domain.entry import KnowledgeBase, Language
    from torchtriage.matching.sign_alignment import SignToken

_MAX_PATTERN = 100  # columns of a pattern or value; --json prints all of it
_MAX_SIGNS = 5  # number of signs that are printed, those that matched furthest first; --json prints all
_MARKS = {"matched": "{}", "found": "{}", "different": "[{}]", "missing": "[{}]"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "why",
        help="explain why an entry did or did not match a log",
        description="Explain why an entry did or did not match a log: which of its cases and signs matched, and where "
        "the closest other signs stopped matching.",
    )
    parser.add_argument("entry", metavar="ENTRY", help="id of an entry, such as cuda.oom")
    parser.add_argument("log", metavar="LOG", type=Path, help="the log")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    parser.add_argument("--json", action="store_true", help="print JSON with all signs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Raises NotFound for an unknown entry and UnreadableLog for a log that cannot be read."""
    from torchtriage.cli.start_engine import start_engine
    from torchtriage.reading.sources import open_path

    engine = start_engine()
    if options.entry not in engine.knowledge.entries:
        raise NotFound(f"no entry {options.entry}{_nearest(options.entry, engine.knowledge)}")
    why = engine.why(open_path(options.log), options.entry)
    print(json.dumps(why.as_dict(options.lang), ensure_ascii=False) if options.json else page(why, options.lang))
    return 0


def page(why: Why, lang: Language) -> str:
    """Returns the explanation as text: a sentence, the selected case, the signs that matched furthest, then the other
    cases. Brackets mark the parts that did not match."""
    lines = [f"{why.entry}: {why.sentence(lang)}"]
    case_word = "情形" if lang == "zh" else "case"
    selected = [case for case in why.cases if case.state == "speaks"]
    lines += [f"  {case_word} {case.case} {case.sentence(lang)}" for case in selected]
    for sign in why.signs[:_MAX_SIGNS]:
        lines += ["", f"{sign.where}: {cut(sign.sign, _MAX_PATTERN)}", f"  {sign.sentence(lang)}"]
        if sign.line is not None:
            lines += [f"  {_position(sign)}: {sign.text}", f"  {''.join(map(_token, sign.tokens))}"]
    rest = len(why.signs) - _MAX_SIGNS
    if rest > 0:
        lines += [
            "",
            f"… {rest} 个其他特征（--json 显示全部）" if lang == "zh" else f"… {rest} more signs (--json has all)",
        ]
    others = [case for case in why.cases if case.state != "speaks"]
    if others:
        lines += ["", "其他情形：" if lang == "zh" else "Other cases:"]
        lines += [f"  {case_word} {case.case} {_shortened(case).sentence(lang)}" for case in others]
    return "\n".join(lines)


def _shortened(case: CaseResult) -> CaseResult:
    """Returns a result whose patterns and values have at most 100 columns."""
    return replace(case, value=cut(case.value, _MAX_PATTERN), other=cut(case.other, _MAX_PATTERN))


def _token(token: SignToken) -> str:
    shown = _MARKS[token.state].format(token.sign)
    if token.state == "found" and token.instead:
        return f"+{token.instead!r} {shown}"
    return f"{shown}<- {token.instead!r}" if token.instead else shown


def _position(sign: SignResult) -> str:
    return f"{sign.file}:{sign.line}" if sign.file else f"{sign.line}"


def _nearest(name: str, knowledge: KnowledgeBase) -> str:
    """Returns the ids that are most similar to a wrong one, as the end of an error message."""
    from rapidfuzz import process

    near = [found for found, _, _ in process.extract(name, list(knowledge.entries), limit=3, score_cutoff=50)]
    return f"; similar: {', '.join(near)}" if near else ""
