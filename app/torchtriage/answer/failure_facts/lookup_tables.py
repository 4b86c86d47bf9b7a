"""Facts from the vocabulary's lookup tables: the torch build for a GPU, a framework's option for a recommended change,
and how to start a command on each host. Input and output are facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex
from torchtriage.linear_regex import found_in, linear_regex

OPTIONS = "framework-options"
HOSTS = "every-host-commands"
FOR_STEPS = (OPTIONS, HOSTS)  # the lists whose facts come from no log line
TABLES = ("looked-up-facts", HOSTS, OPTIONS)  # two lists with rows about facts, then one about the log
_ASKED_FIRST = lazy_regex(r"\^([a-z_]+)=")


def lookup_tables(failure: Failure, known: Mapping[str, Fact]) -> Iterator[Fact]:
    """Yields facts from the rows of the lists `looked-up-facts` and `every-host-commands` whose conditions the known
    facts meet, each with the line of the first fact in the row. Then it yields the facts of the list
    `framework-options` that match the traceback and the log. If several rows give the same fact, the first one
    counts."""
    about_facts, about_hosts, about_log = map(failure.reading.matcher.patterns.vocabulary.patterns, TABLES)
    facts = dict(known)
    text = _text(facts)
    for row in (*about_facts, *about_hosts):
        source = facts.get(_first_fact(row.regex))
        new = [(name, value) for name, value in row.tells if name not in facts] if source is not None else ()
        if source is not None and new and _holds(row, text):
            for name, value in new:
                facts[name] = Fact(name, value, None, source.line, source.file, source.rank, source.attempt)
                yield facts[name]
            text = _text(facts)
    frames = "\n".join(f"{frame.file} {frame.code}" for frame in failure.frames)
    shown = found_in(tuple(dict.fromkeys(row.regex for row in about_log)), f"{frames}\n{failure.log}")
    for row in about_log:
        for name, value in row.tells if row.regex in shown else ():
            if name not in facts:
                facts[name] = Fact(name, value)
                yield facts[name]


@cache
def _first_fact(regex: str) -> str:
    """Returns the first fact that a row's condition uses."""
    asked = _ASKED_FIRST.search(regex)
    return asked[1] if asked else ""


def _holds(row: VocabularyPattern, text: str) -> bool:
    if not linear_regex(row.regex).search(text):
        return False
    return row.unless is None or not linear_regex(row.unless).search(text)


def _text(facts: Mapping[str, Fact]) -> str:
    return "\n".join(f"{name}={facts[name].value}" for name in sorted(facts))
