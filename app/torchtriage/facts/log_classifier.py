"""Whether a log is one of this field: what it says about its run and, of a short text, who wrote it in; yes or no out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torchtriage.domain.line import Line, Position
from torchtriage.facts import Environment
from torchtriage.facts.line_facts import LineSigns
from torchtriage.lazy_regex import lazy_regex

_UNTOLD = 7  # lines with words; of so few, none need say that they are of training,
_HINTED = 40  # and of so few one is enough;
_PLAIN = 3  # so many are enough for any log
_WORDS = lazy_regex(r"[^\W\d_]{3}")
_FEWEST = 2  # lines that only a person writes


def is_of_training(environment: Environment, paste: Sequence[Line] | None, claimed: Collection[Position]) -> bool:
    """-> whether the log is one of a training run, or a paste that may well be: so short that it need not say so, what
    somebody wrote who asks for help, or what is said about a pod or container that asks for accelerators. `paste` holds
    the lines of a short text, `claimed` the positions of those that belong to tracebacks and reports."""
    if _speaks_of_training(environment, paste, claimed):
        return True
    accelerators = environment.signs.accelerator_jobs.regex
    return any(accelerators.search(line.text) for line in paste or ())


def _speaks_of_training(environment: Environment, paste: Sequence[Line] | None, claimed: Collection[Position]) -> bool:
    sure = environment.surely_of_field
    if environment.foreign or (sure and environment.of_field + environment.around >= _PLAIN):
        return sure and not environment.of_another_program
    if paste is None:
        return False
    told = [line.text for line in paste if line.position not in claimed and _WORDS.search(line.text)]
    return len(told) <= (_HINTED if sure else _UNTOLD) or _asks_for_help(told, sure, environment.signs)


def is_by_a_person(paste: Sequence[Line], signs: LineSigns) -> bool:
    """-> whether somebody wrote in a paste, beside what programs printed."""
    return any(signs.people_asking.regex.search(line.text) for line in paste)


def _asks_for_help(texts: Sequence[str], sure: bool, signs: LineSigns) -> bool:
    """-> whether a person wrote the text, and not about another field. `sure`: a line speaks of this one."""
    if sum(bool(signs.people_asking.regex.search(text)) for text in texts) < _FEWEST:
        return False
    return sure or not any(map(signs.other_fields.regex.search, texts))
