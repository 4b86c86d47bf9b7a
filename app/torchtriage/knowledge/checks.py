"""The house rules of the knowledge base: every entry is proved by its own examples, by the engine itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import re2

from torchtriage.answer.commands import PATH, is_plain
from torchtriage.answer.likeliest_cause import shows
from torchtriage.domain.entry import Advice, Cause, Entry, Fix, Kind, KnowledgeBase, Sign, Text
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.yaml_positions import Path as Place
from torchtriage.knowledge.yaml_positions import line_of
from torchtriage.matching.patterns import Patterns, refused_by_re2, regex_of
from torchtriage.reading.scan import PatternError
from torchtriage.reading.scan import problem as refused_by_hyperscan
from torchtriage.reading.sources import from_bytes

HEALTHY = BUILT_IN / "healthy.log"
LEFT = "TODO"  # what a new entry still has to say
_TITLE_WORDS = 10  # the most that an English title has
_LONGEST_SIGN = 200  # characters; a longer one is several signs, which are easier to read and to prove
_PROOFS, _NEAR_MISSES = 2, 1  # the fewest examples of a cause or consequence
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_GROUP = re.compile(r"(?<!\\)\((?!\?[^P])(?:\?P<\w+>)?")  # the first that captures
_ATOM = re.compile(r"\\(?:[pP]\{\w+\}|x\{?[0-9A-Fa-f]+\}?|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.S)
_SYNTAX = frozenset("(){}|*+?^$")
_OF_SHELLS = [char for char in (*map(chr, range(128)), "é", "中", "\u2028") if not is_plain(f"a{char}")]
_EVERYWHERE = frozenset({"any", "line", "exception"})
_Problem = tuple[Entry, Place, str]


def problems(knowledge: KnowledgeBase, folders: Sequence[Path] = (BUILT_IN,)) -> list[str]:
    """-> one sentence a problem, each beginning with file:line; empty where the base is sound.

    `folders` are those that `knowledge` was loaded from.
    """
    entries = list(knowledge.entries.values())
    refused = [problem for entry in entries for problem in _refused_by_re2(entry)]
    found = [problem for entry in entries for problem in _of_one(entry, knowledge.entries)]
    found += [*refused, *_claimed_twice(entries)]
    if not refused:  # no engine can be built otherwise
        found += _proved(knowledge, entries)
    return [_told(problem, folders) for problem in found]


def refused(knowledge: KnowledgeBase, folders: Sequence[Path], cache: Path) -> list[str]:
    """-> one sentence a pattern that can't be compiled, each beginning with file:line; what can is kept in `cache`."""
    entries = list(knowledge.entries.values())
    found = [problem for entry in entries for problem in _refused_by_re2(entry)]
    if not found:
        try:
            Patterns(knowledge, cache)
        except PatternError:
            found = [problem for entry in entries for problem in _refused_by_hyperscan(entry)]
    return [_told(problem, folders) for problem in found]


def _proved(knowledge: KnowledgeBase, entries: Sequence[Entry]) -> list[_Problem]:
    """-> what the engine itself says of the entries: their patterns, their examples, and a healthy log."""
    try:
        engine = Engine(knowledge)
    except PatternError:
        return [problem for entry in entries for problem in _refused_by_hyperscan(entry)]
    return [problem for entry in entries for problem in _examples(entry, engine)] + [*_on_healthy(knowledge)]


def _of_one(entry: Entry, entries: dict[str, Entry]) -> Iterator[_Problem]:
    for number, name in enumerate(entry.explains):
        if not any(fnmatchcase(other, name) for other in entries):
            yield entry, ("explains", number), f"explains {name!r}, which no entry has"
    if (words := len(entry.title.en.split())) > _TITLE_WORDS:
        yield entry, ("title", "en"), f"the title has {words} words, more than {_TITLE_WORDS}: {entry.title.en!r}"
    yield from _languages(entry)
    yield from _free_captures(entry)
    yield from _sign_form(entry)
    if entry.kind is not Kind.ADVICE:
        if len(entry.match_examples) < _PROOFS:
            yield entry, ("examples", "match"), f"fewer than {_PROOFS} examples that match"
        if len(entry.no_match_examples) < _NEAR_MISSES:
            yield entry, ("examples",), "no near miss in examples.no_match"


def _sign_form(entry: Entry) -> Iterator[_Problem]:
    for place, part in _signs(entry):
        if (size := len(part.regex or part.text or "")) > _LONGEST_SIGN:
            yield entry, place, f"a sign of {size} characters, more than {_LONGEST_SIGN}: split it"
    for number, sign in enumerate(entry.signs):
        if sign in entry.signs[:number]:
            yield entry, ("signs", number), "has this sign twice"


def _languages(entry: Entry) -> Iterator[_Problem]:
    for place, text in _texts(entry):
        if not _CHINESE.search(text.zh):
            yield entry, (*place, "zh"), f"no Chinese in {_short(text.zh)!r}"
        if _CHINESE.search(text.en):
            yield entry, (*place, "en"), f"Chinese in {_short(text.en)!r}"
        for lang, words in (("en", text.en), ("zh", text.zh)):
            if LEFT in words:
                yield entry, (*place, lang), f"left to do: {_short(words)!r}"
    if any(LEFT in question for _, question in entry.asks):
        yield entry, ("asks",), "left to do: asks"


def _refused_by_re2(entry: Entry) -> Iterator[_Problem]:
    for place, pattern in _patterns(entry):
        if reason := refused_by_re2(pattern):
            yield entry, place, f"RE2 refuses {pattern!r}: {reason}"


def _patterns(entry: Entry) -> Iterator[tuple[Place, str]]:
    for place, sign in _signs(entry):
        yield (*place, "regex" if sign.regex is not None else "text"), regex_of(sign)
        if sign.unless:
            yield (*place, "unless"), sign.unless
    for name, pattern in entry.capture:
        yield ("capture", name), pattern
    yield from _shown_by(entry)


def _shown_by(entry: Entry) -> Iterator[tuple[Place, str]]:
    parts: list[tuple[str, int, Cause | Fix | Advice]] = [("causes", *cause) for cause in enumerate(entry.causes)]
    parts += [("fixes", *fix) for fix in enumerate(entry.fixes)]
    parts += [("action_when", *action) for action in enumerate(entry.other_actions)]
    yield from (((name, number, "when_message_has"), part.shown_by) for name, number, part in parts if part.shown_by)


def _signs(entry: Entry) -> Iterator[tuple[Place, Sign]]:
    for number, sign in enumerate(entry.signs):
        if sign.all:
            yield from ((("signs", number, "all", at), part) for at, part in enumerate(sign.all))
        else:
            yield ("signs", number), sign


def _texts(entry: Entry) -> Iterator[tuple[Place, Text]]:
    yield ("title",), entry.title
    yield from ((("causes", number), cause) for number, cause in enumerate(entry.causes))
    yield from ((("prevent", number), text) for number, text in enumerate(entry.prevent))
    for number, fix in enumerate(entry.fixes):
        yield ("fixes", number, "title"), fix.title
        if fix.detail and re.search(r"[a-z] [a-z]+ [a-z]+ ", fix.detail.en):  # a detail can be code and nothing else
            yield ("fixes", number, "detail"), fix.detail


def _claimed_twice(entries: Iterable[Entry]) -> Iterator[_Problem]:
    claimed: dict[str, str] = {}
    for entry in entries:
        for number, example in enumerate(entry.match_examples):
            if (other := claimed.setdefault(example.strip(), entry.id)) != entry.id:
                yield entry, ("examples", "match", number), f"claims an example of {other}: {_short(example)}"


def _free_captures(entry: Entry) -> Iterator[_Problem]:
    """Yields what a command is filled with that can be more than a word of it; paths are quoted."""
    commands = "\n".join((*entry.checks, *(command for fix in entry.fixes for command in fix.commands)))
    for name, pattern in entry.capture:
        if name != PATH and f"{{{name}}}" in commands and (part := _free(pattern)):
            yield entry, ("capture", name), f"captures too freely for a command: {part!r} in {pattern!r}"


def _free(pattern: str) -> str | None:
    """-> the first part inside of a pattern's group that takes a character which means something to a shell."""
    opens = None if refused_by_re2(pattern) else _GROUP.search(pattern)
    depth = 0
    for atom in _ATOM.finditer(pattern, opens.end() if opens else len(pattern)):
        part = atom[0]
        depth += (part == "(") - (part == ")")
        if depth < 0:
            return None
        if part not in _SYNTAX and any(re2.fullmatch(part, char) for char in _OF_SHELLS):
            return part
    return None


def _refused_by_hyperscan(entry: Entry) -> Iterator[_Problem]:
    """One pattern at a time takes seconds, so this is asked only once it is known that one is refused."""
    for place, sign in _signs(entry):
        if reason := refused_by_hyperscan(regex_of(sign)):
            yield entry, place, f"Hyperscan refuses {regex_of(sign)!r}: {reason}"


def _examples(entry: Entry, engine: Engine) -> Iterator[_Problem]:
    said = []
    for number, example in enumerate(entry.match_examples):
        verdict = engine.triage(from_bytes(example.encode()))
        root = verdict.root_cause
        if root is None or root.entry != entry.id:
            winner = root.entry if root else verdict.outcome
            yield entry, ("examples", "match", number), f"its example is won by {winner}: {_short(example)}"
        if root:
            said.append(root.words)
    for place, pattern in _shown_by(entry):
        if not any(shows(words, pattern) for words in said):
            yield entry, place, f"no example of this entry shows {pattern!r}"
    for number, example in enumerate(entry.no_match_examples):
        verdict = engine.triage(from_bytes(example.encode()))
        if verdict.root_cause and verdict.root_cause.entry == entry.id:
            yield entry, ("examples", "no_match", number), f"it matches its counter-example: {_short(example)}"


def _on_healthy(knowledge: KnowledgeBase) -> Iterator[_Problem]:
    """Weak signs and parts of `all:` may show in a healthy run: neither says alone that it failed."""
    patterns = Patterns(knowledge)
    for line in HEALTHY.read_text(encoding="utf-8").splitlines():
        for index in patterns.found(line, _EVERYWHERE):
            pattern = patterns.all[index]
            if not pattern.sign.weak and not pattern.group:
                place = next(place for place, sign in _signs(pattern.entry) if sign is pattern.sign)
                yield pattern.entry, place, f"{regex_of(pattern.sign)!r} fires on a healthy line: {_short(line)}"


def _told(problem: _Problem, folders: Sequence[Path]) -> str:
    entry, place, text = problem
    files = (folder / entry.file for folder in reversed(folders))
    file = next((file for file in files if file.is_file()), None)
    return f"{entry.file}:{line_of(file.read_bytes(), place) if file else 1}: {text}"


def _short(example: str) -> str:
    text = " ".join(example.split())
    return text if len(text) <= 120 else f"{text[:117]}…"
