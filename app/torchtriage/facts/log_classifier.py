"""Decides whether a log is about a training run, from the facts of its run and, for a short text, from who wrote it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torchtriage.domain.line import Line, Position
from torchtriage.facts import CollectedFacts
from torchtriage.facts.line_facts import LineRegexes
from torchtriage.lazy_regex import lazy_regex

_UNTOLD = 7  # lines with words; a text with at most this many need not mention training,
_HINTED = 40  # and one with at most this many needs one hint;
_PLAIN = 3  # this many are enough for any log
_WORDS = lazy_regex(r"[^\W\d_]{3}")
_MIN_COUNT = 2  # lines that only a person writes


def is_training_log(facts: CollectedFacts, paste: Sequence[Line] | None, claimed: Collection[Position]) -> bool:
    """Returns whether the log is from a training run, or is a pasted text that probably is: it is too short to say so,
    a person asks for help in it, or it is about a pod or container that requests accelerators. `paste` has the lines of
    a short text. `claimed` has the positions of lines in tracebacks and reports."""
    if _mentions_training(facts, paste, claimed):
        return True
    accelerators = facts.regexes.accelerator_jobs.compiled
    return any(accelerators.search(line.text) for line in paste or ())


def _mentions_training(facts: CollectedFacts, paste: Sequence[Line] | None, claimed: Collection[Position]) -> bool:
    sure = facts.surely_training
    if facts.other_program_lines or (sure and facts.training_lines + facts.batch_system_lines >= _PLAIN):
        return sure and not facts.of_another_program
    if paste is None:
        return False
    texts = [line.text for line in paste if line.position not in claimed and _WORDS.search(line.text)]
    return len(texts) <= (_HINTED if sure else _UNTOLD) or _asks_for_help(texts, sure, facts.regexes)


def is_written_by_person(paste: Sequence[Line], regexes: LineRegexes) -> bool:
    """Returns whether a pasted text contains words of a person next to the output of programs."""
    return any(regexes.people_asking.compiled.search(line.text) for line in paste)


def _asks_for_help(texts: Sequence[str], sure: bool, regexes: LineRegexes) -> bool:
    """Returns whether a person wrote the text, and not about another field. `sure` is true if a line mentions
    training."""
    if sum(bool(regexes.people_asking.compiled.search(text)) for text in texts) < _MIN_COUNT:
        return False
    return sure or not any(map(regexes.other_fields.compiled.search, texts))
