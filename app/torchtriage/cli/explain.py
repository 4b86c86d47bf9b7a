"""`torchtriage explain`: prints what a language model says about a log, and checks each claim against the line that it
cites."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from torchtriage.answer.brief.token_count import TOKENS
from torchtriage.cli.brief import TOKEN_LIMIT, brief_of
from torchtriage.cli.progress import add_quiet
from torchtriage.cli.start_engine import start_engine
from torchtriage.errors import SettingError

if TYPE_CHECKING:
    from torchtriage.domain.entry import Language
    from torchtriage.domain.explanation import Claim, Explanation
    from torchtriage.domain.verdict import Verdict

_WORDS = {
    "ours": ("The verdict", "诊断结论"),
    "theirs": (
        "{model} says (generated; the lines were checked, the conclusions were not)",
        "{model} 的说法（由模型生成；核对了行，未核实结论）",
    ),
    "line": ("line {line}", "第 {line} 行"),
    "line_of": ("line {line} of {file}", "{file} 第 {line} 行"),
    "struck": ("STRUCK OUT, because that line does not say this", "已划去：该行没有这样的内容"),
    "no_line": ("STRUCK OUT, because it cites no line", "已划去：没有给出行号"),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="ask a language model about a log, and check what it says",
        description="Send the brief of a log to the language model of TRIAGE_LLM_URL and TRIAGE_LLM_MODEL, and print "
        "its claims below the verdict, each with the line that it cites. A claim that its line does not support is "
        "struck out. Known kinds of secrets are removed first.",
    )
    parser.add_argument("path", metavar="LOG", help="a log, as for `brief`; - reads standard input")
    parser.add_argument(
        "--tokens",
        type=TOKEN_LIMIT,
        default=TOKENS,
        metavar="N",
        help=f"maximum number of tokens of the brief ({TOKENS})",
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Returns 0. Raises SettingError if no model is set, UnreadableLog, or Undelivered."""
    from torchtriage.services.explanation import ask_model
    from torchtriage.settings import Settings

    settings = Settings.from_environment(os.environ)
    if not settings.llm_url:
        raise SettingError("`explain` needs a language model: set TRIAGE_LLM_URL and TRIAGE_LLM_MODEL")
    verdict, brief = brief_of(start_engine(), options.path, options.lang, options.tokens, options.quiet)
    print("\n".join(page(verdict, ask_model(settings, brief, options.lang), options.lang)))
    return 0


def page(verdict: Verdict, explanation: Explanation, lang: Language) -> list[str]:
    """Returns the lines to print: our verdict, then the claims of the model."""
    words = {name: both[lang == "zh"] for name, both in _WORDS.items()}
    root = verdict.root_cause
    ours = verdict.answer.says if verdict.answer and verdict.answer.says else root.title if root else verdict.outcome
    lines = [words["ours"], f"  {ours}", "", words["theirs"].format(model=explanation.model)]
    for number, claim in enumerate(explanation.claims, 1):
        lines += _claim(number, claim, words)
    return lines


def _claim(number: int, claim: Claim, words: dict[str, str]) -> list[str]:
    where = words["line_of" if claim.file else "line"].format(line=claim.line, file=claim.file)
    if claim.stands:
        return [f"  {number}. {claim.says}", f"     {where}: {claim.quote}"]
    why = words["struck"] if claim.line is not None else words["no_line"]
    quoted = [f"     {where}: {claim.quote}"] if claim.line is not None else []
    return [f"  {number}. [{why}] {claim.says}", *quoted]
