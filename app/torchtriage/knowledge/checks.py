"""Checks the knowledge base: its YAML, and what the engine says about the examples of every entry and about a healthy
log."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

import re2

from torchtriage.answer.cause_ranking import shows
from torchtriage.answer.commands import PATHS, is_plain
from torchtriage.answer.failure_facts.fact_names import known_slots
from torchtriage.domain.entry import Advice, Case, Cause, Condition, Entry, Fix, Kind, KnowledgeBase, Sign, Text
from torchtriage.domain.event import Event
from torchtriage.domain.verdict import Answer, Verdict
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.case_checks import LEFT, Problem, of_cases, of_examples, shortened
from torchtriage.knowledge.folders import FORMS
from torchtriage.knowledge.yaml_positions import Path as Place
from torchtriage.knowledge.yaml_positions import line_of
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.matcher import EventPatterns, Matcher
from torchtriage.matching.patterns import Patterns, refused_by_re2, regex_of
from torchtriage.reading.scan import PatternError
from torchtriage.reading.scan import problem as refused_by_hyperscan
from torchtriage.reading.sources import from_bytes

HEALTHY = BUILT_IN / "healthy.log"
_TITLE_WORDS = 10  # the most words of an English title
_MAX_SIGN_LENGTH = 200  # characters; a longer sign should be split into several, which are easier to read and to test
_PROOFS, _NEAR_MISSES = 2, 1  # the fewest examples and near misses of a cause or consequence
_CHINESE = lazy_regex(r"[\u4e00-\u9fff]")
_GROUP = lazy_regex(r"(?<!\\)\((?!\?[^P])(?:\?P<\w+>)?")  # finds the first group that captures
_ATOM = lazy_regex(r"\\(?:[pP]\{\w+\}|x\{?[0-9A-Fa-f]+\}?|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.S)
_SYNTAX = frozenset("(){}|*+?^$")
_OF_SHELLS = [char for char in (*map(chr, range(128)), "é", "中", "\u2028") if not is_plain(f"a{char}")]
_EVERYWHERE = frozenset({"any", "line", "exception"})


@dataclass(frozen=True)
class Report:
    """The result of `check`. `problems` and `warnings` are one sentence each and begin with file:line. `answers` maps
    (entry, case) to the answer of the case to its example. `entries`, `cases` and `forms` (message forms) are counts.

    `in_cases` and `without_case` count the signs that belong to a case and those that do not. `unproved` lists the
    signs that no example of their entry matches.
    """

    problems: list[str]
    warnings: list[str]
    entries: int
    cases: int
    forms: int
    in_cases: int
    without_case: int
    unproved: list[str]
    answers: dict[tuple[str, str], Answer]


def check(
    knowledge: KnowledgeBase,
    folders: Sequence[Path] = (BUILT_IN,),
    cache: Path | None = None,
    only: Collection[str] = (),
) -> Report:
    """Checks all entries, or those in `only`.

    `folders` are the folders that `knowledge` was loaded from. Compiled patterns are stored in `cache`.
    """
    entries = [entry for entry in (*knowledge.forms, *knowledge.entries.values()) if not only or entry.id in only]
    found, proof = _found(knowledge, entries, cache)
    texts = sorted({_problem_text(problem, folders) for problem in found}, key=_sorted_by)
    signs = [(entry, place) for entry in entries for place, _ in _signs(entry)]
    return Report(
        problems=[text for text, lesser in texts if not lesser],
        warnings=[text for text, lesser in texts if lesser],
        entries=sum(entry.area != FORMS for entry in entries),
        cases=sum(len(entry.cases) for entry in entries if entry.area != FORMS),
        forms=sum(len(entry.cases) for entry in entries if entry.area == FORMS),
        in_cases=sum(place[0] == "cases" for _, place in signs),
        without_case=sum(place[0] == "signs" for _, place in signs),
        unproved=[
            text for text, _ in sorted((_problem_text(problem, folders) for problem in proof.unproved), key=_sorted_by)
        ],
        answers={key: verdict.answer for key, verdict in proof.spoken.items() if verdict.answer},
    )


def problems_of(
    knowledge: KnowledgeBase, entry: Entry, cache: Path | None
) -> tuple[list[Problem], dict[tuple[str, str], Verdict]]:
    """Returns the problems of one entry with their places, and the verdicts on the examples of its cases, by (entry,
    case)."""
    found, proof = _found(knowledge, [entry], cache)
    return found, proof.spoken


def problems_of_added(
    knowledge: KnowledgeBase, added: Entry, cache: Path | None, whole: bool = True
) -> tuple[list[Problem], dict[tuple[str, str], Verdict]]:
    """Returns the problems of cases that were added to an entry, with their places in the file that adds them, and the
    verdicts on their examples. If `whole` is true, also checks whether other cases of the entry now lose their examples
    to the added ones. The time for that grows with the number of cases."""
    entry = knowledge.entries[added.id]
    ids = [case.id for case in added.cases]
    at = {place: ids.index(case.id) for place, case in enumerate(entry.cases) if case.id in ids}
    own: list[Problem] = []
    if whole:
        found, proof = _found(knowledge, [entry], cache)
    else:
        alone = replace(added, capture=entry.capture)
        refused = list(_refused_by_re2(alone))
        own = [*refused, *_sign_form(alone), *of_cases(alone, frozenset(known_slots(knowledge.vocabulary)))]
        found, proof = ([], _Proof()) if refused else _proved(knowledge, [entry], cache, frozenset(at))
    for problem in found:
        match problem.place:
            case ("cases", int(place), *inner) if place in at:
                own.append(problem._replace(entry=added, place=("cases", at[place], *inner)))
            case ("cases", int(), *_) if not problem.lesser:
                text = f"another case would lose its example: {problem.text.removeprefix('case ')}"
                own.append(Problem(added, ("cases", 0, "sign"), text))
    return [*own, *_own_signs_in_near_misses(added)], proof.spoken


def _own_signs_in_near_misses(added: Entry) -> Iterator[Problem]:
    """Yields the near misses of added cases in which a sign of these cases is found. The verdict alone is not enough:
    the entry's other signs may match a near miss."""
    signs = [regex for sign in added.signs if not refused_by_re2(regex := regex_of(sign))]
    for number, text in enumerate(added.no_match_examples):
        if any(re2.compile(f"(?m){regex}").search(text) for regex in signs):
            yield Problem(added, ("examples", "no_match", number), "the sign matches it")


def problem_texts(problems: Iterable[Problem], folders: Sequence[Path]) -> list[str]:
    """Returns the problems that are not just warnings, as sentences that begin with file:line."""
    texts = sorted({_problem_text(problem, folders) for problem in problems}, key=_sorted_by)
    return [text for text, lesser in texts if not lesser]


def _found(knowledge: KnowledgeBase, entries: Sequence[Entry], cache: Path | None) -> tuple[list[Problem], _Proof]:
    refused = [problem for entry in entries for problem in _refused_by_re2(entry)]
    found = [problem for entry in entries for problem in _of_one(entry, knowledge.entries)]
    facts = frozenset(known_slots(knowledge.vocabulary))
    found += [*refused, *(problem for entry in entries for problem in of_cases(entry, facts)), *_claimed_twice(entries)]
    if refused:  # the engine cannot be built
        return found, _Proof()
    problems, proof = _proved(knowledge, entries, cache)
    return [*found, *problems], proof


def _proved(
    knowledge: KnowledgeBase, entries: Sequence[Entry], cache: Path | None, only: Collection[int] | None = None
) -> tuple[list[Problem], _Proof]:
    """Returns the problems that the engine finds in the examples of entries. If `only` is given, reads only the
    examples of the cases at these positions."""
    try:
        proof = _Proof.of(knowledge, entries, cache, only)
    except PatternError:
        return [problem for entry in entries for problem in _refused_by_hyperscan(entry)], _Proof()
    return proof.problems, proof


def problems(knowledge: KnowledgeBase, folders: Sequence[Path] = (BUILT_IN,)) -> list[str]:
    """Returns one sentence per problem, beginning with file:line. Empty if the knowledge base has none."""
    return check(knowledge, folders).problems


def refused(knowledge: KnowledgeBase, folders: Sequence[Path], cache: Path) -> list[str]:
    """Returns one sentence, beginning with file:line, for each pattern that cannot be compiled. The compiled patterns
    are stored in `cache`.

    RE2 tests only entries of other folders; the built-in entries were tested before the release.
    """
    entries = list(knowledge.entries.values())
    own = [entry for entry in entries if _file(entry, folders) != BUILT_IN / entry.file]
    found = [problem for entry in own for problem in _refused_by_re2(entry)]
    if not found:
        try:
            Patterns(knowledge, cache)
        except PatternError:
            found = [problem for entry in entries for problem in _refused_by_hyperscan(entry)]
    return [_problem_text(problem, folders)[0] for problem in found]


class _Seen(Matcher):
    """A matcher that records which patterns matched."""

    def __init__(self, patterns: Patterns) -> None:
        super().__init__(patterns)
        self.seen: set[int] = set()

    def patterns_of(self, event: Event) -> EventPatterns:
        found = super().patterns_of(event)
        self.seen.update(index for index, _, _ in found.hits)
        return found


class _Proof:
    """Tests entries with the engine itself: reads each of their examples once, and a healthy log."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.unproved: list[Problem] = []
        self.spoken: dict[tuple[str, str], Verdict] = {}

    @classmethod
    def of(
        cls,
        knowledge: KnowledgeBase,
        entries: Sequence[Entry],
        cache: Path | None,
        only: Collection[int] | None = None,
    ) -> _Proof:
        """If `only` is given, reads only the examples of the cases at these positions. Raises PatternError."""
        patterns = Patterns(knowledge, cache)
        matcher = _Seen(patterns)
        engine = Engine(knowledge, cache, matcher=matcher)
        proof = cls()
        for entry in entries:
            if only is not None:
                read = partial(_read, engine)
                proof.problems += [problem for place in only for problem in proof._of_case(entry, place, read)]
                continue
            matcher.seen.clear()
            proof.problems += proof._examples(entry, engine)
            own = [index for index, pattern in enumerate(patterns.all) if pattern.entry is entry]
            proof.unproved += [
                Problem(entry, place, regex_of(sign))
                for index, (place, sign) in zip(own, _signs(entry), strict=True)
                if index not in matcher.seen
            ]
            proof.problems += _near_misses(entry, engine)
        proof.problems += [problem for problem in _on_healthy(patterns) if problem.entry in entries]
        return proof

    def _examples(self, entry: Entry, engine: Engine) -> Iterator[Problem]:
        # an example of a case is often an example of the entry too
        read = lru_cache(maxsize=None)(partial(_read, engine))
        texts: list[str] = []
        for number, example in enumerate(entry.match_examples):
            root = read(example).root_cause
            if root is None or root.entry != entry.id:
                winner = root.entry if root else "nothing"
                place: Place = ("examples", "match", number)
                yield Problem(entry, place, f"the verdict on its example is {winner}: {shortened(example)}")
            texts += [root.words] if root else []
        for number, case in enumerate(entry.cases):
            yield from self._of_case(entry, number, read)
            verdicts = [read(example) for example in (case.example, *case.other_examples) if example]
            texts += [verdict.root_cause.words for verdict in verdicts if verdict.root_cause]
        for place, pattern in _shown_by(entry):
            if not any(shows(words, pattern) for words in texts):
                yield Problem(entry, place, f"no example of this entry shows {pattern!r}")

    def _of_case(self, entry: Entry, number: int, read: Callable[[str], Verdict]) -> Iterator[Problem]:
        case = entry.cases[number]
        verdicts = {example: read(example) for example in (case.example, *case.other_examples) if example}
        yield from of_examples(entry, number, verdicts)
        if case.example and verdicts[case.example].answer:
            self.spoken[entry.id, case.id] = verdicts[case.example]


def _read(engine: Engine, example: str) -> Verdict:
    return engine.triage(from_bytes(example.encode()))


def _of_one(entry: Entry, entries: dict[str, Entry]) -> Iterator[Problem]:
    for number, name in enumerate(entry.explains):
        if not any(fnmatchcase(other, name) for other in entries):
            yield Problem(entry, ("explains", number), f"explains {name!r}, but no entry has this id")
    if (words := len(entry.title.en.split())) > _TITLE_WORDS:
        text = f"the title has {words} words, more than {_TITLE_WORDS}: {entry.title.en!r}"
        yield Problem(entry, ("title", "en"), text)
    yield from _languages(entry)
    yield from _free_captures(entry)
    yield from _sign_form(entry)
    if entry.kind is not Kind.ADVICE:
        proofs = {example.strip() for example in (*entry.match_examples, *_examples_of_cases(entry))}
        if None in entry.case_of_signs and len(proofs) < _PROOFS:  # a sign in a case has its own example
            yield Problem(entry, ("examples", "match"), f"fewer than {_PROOFS} matching examples")
        if len(entry.no_match_examples) < _NEAR_MISSES:
            text = "no near miss in examples.no_match: add a similar message that means something else"
            yield Problem(entry, ("examples",), text, True)


def _sign_form(entry: Entry) -> Iterator[Problem]:
    for place, part in _signs(entry):
        if (size := len(part.regex or part.text or "")) > _MAX_SIGN_LENGTH:
            yield Problem(entry, place, f"the sign has {size} characters, more than {_MAX_SIGN_LENGTH}: split it")
    own = [sign for sign, case in zip(entry.signs, entry.case_of_signs, strict=True) if case is None]
    of_cases = [sign for case in entry.cases for sign in case.all_signs]
    for number, sign in enumerate(own):
        if sign in own[:number] or sign in of_cases:
            yield Problem(entry, ("signs", number), "this sign appears twice")


def _languages(entry: Entry) -> Iterator[Problem]:
    for place, text in _texts(entry):
        if not _CHINESE.search(text.zh) and LEFT not in text.en:
            yield Problem(entry, (*place, "zh"), f"no Chinese in {shortened(text.zh or text.en)!r}", True)
        if _CHINESE.search(text.en):
            yield Problem(entry, (*place, "en"), f"Chinese in {shortened(text.en)!r}")
        for lang, words in (("en", text.en), ("zh", text.zh)):
            if LEFT in words:
                yield Problem(entry, (*place, lang), f"still to write: {shortened(words)!r}")
    if any(LEFT in question for _, question in entry.asks):
        yield Problem(entry, ("asks",), "still to write: asks")


def _refused_by_re2(entry: Entry) -> Iterator[Problem]:
    for place, pattern in _patterns(entry):
        if reason := refused_by_re2(pattern):
            yield Problem(entry, place, f"RE2 rejects {pattern!r}: {reason}")


def _patterns(entry: Entry) -> Iterator[tuple[Place, str]]:
    for place, sign in _signs(entry):
        yield (*place, "regex" if sign.regex is not None else "text"), sign.regex or regex_of(sign)
        if sign.unless:
            yield (*place, "unless"), sign.unless
    for name, pattern in entry.capture:
        yield ("capture", name), pattern
    for number, case in enumerate(entry.cases):
        asked: list[tuple[Place, Condition]] = [(("when",), condition) for condition in case.when]
        for at, step in enumerate(case.steps):
            asked += [(("do", at, "when"), condition) for condition in step.when]
            asked += [(("do", at, "unless"), condition) for condition in step.unless]
        for where, condition in asked:
            if condition.regex is not None:
                yield ("cases", number, *where, condition.fact), condition.regex
    yield from _shown_by(entry)


def _shown_by(entry: Entry) -> Iterator[tuple[Place, str]]:
    parts: list[tuple[str, int, Cause | Fix | Advice]] = [("causes", *cause) for cause in enumerate(entry.causes)]
    parts += [("fixes", *fix) for fix in enumerate(entry.fixes)]
    parts += [("action_when", *action) for action in enumerate(entry.other_actions)]
    yield from (((name, number, "when_message_has"), part.shown_by) for name, number, part in parts if part.shown_by)


def _examples_of_cases(entry: Entry) -> list[str]:
    return [example for case in entry.cases for example in (case.example, *case.other_examples) if example]


def _signs(entry: Entry) -> Iterator[tuple[Place, Sign]]:
    """Yields the signs of an entry with their places, in the order of `Patterns.all`. Signs with `all` are split into
    their parts."""
    for number, (sign, case) in enumerate(zip(entry.signs, entry.case_of_signs, strict=True)):
        place: Place = ("signs", number)
        if case is not None:
            nth = number - entry.case_of_signs.index(case)
            place = ("cases", case, *_sign_place(entry.cases[case], nth))
        if sign.all:
            yield from (((*place, "all", at), part) for at, part in enumerate(sign.all))
        elif case is not None:
            yield (*place, "sign" if sign.regex is not None else "text"), sign
        else:
            yield place, sign


def _sign_place(case: Case, nth: int) -> Place:
    if case.finding_signs:
        return ("signs", nth)
    return ("also", nth - 1) if nth else ()


def _texts(entry: Entry) -> Iterator[tuple[Place, Text]]:
    yield ("title",), entry.title
    yield from ((("causes", number), cause) for number, cause in enumerate(entry.causes))
    yield from ((("prevent", number), text) for number, text in enumerate(entry.prevent))
    for number, fix in enumerate(entry.fixes):
        yield ("fixes", number, "title"), fix.title
        # otherwise the detail is code only and needs no translation
        if fix.detail and re.search(r"[a-z] [a-z]+ [a-z]+ ", fix.detail.en):
            yield ("fixes", number, "detail"), fix.detail


def _claimed_twice(entries: Iterable[Entry]) -> Iterator[Problem]:
    claimed: dict[str, str] = {}
    for entry in entries:
        examples: list[tuple[Place, str]] = [
            *((("examples", "match", number), example) for number, example in enumerate(entry.match_examples)),
            *(
                (("cases", number, "example"), example or "")
                for number, case in enumerate(entry.cases)
                for example in (case.example, *case.other_examples)
            ),
        ]
        for place, example in examples:
            if example and (other := claimed.setdefault(example.strip(), entry.id)) != entry.id:
                yield Problem(entry, place, f"has the same example as {other}: {shortened(example)}")


def _free_captures(entry: Entry) -> Iterator[Problem]:
    """Yields the captures that fill a slot of a command and can contain more than one word. Paths are quoted, so they
    may."""
    commands = "\n".join((*entry.checks, *(command for fix in entry.fixes for command in fix.commands)))
    for name, pattern in entry.capture:
        if name not in PATHS and f"{{{name}}}" in commands and (part := _free(pattern)):
            yield Problem(entry, ("capture", name), f"the capture for a command is too broad: {part!r} in {pattern!r}")


def _free(pattern: str) -> str | None:
    """Returns the first part inside a pattern's group that can match a character with a meaning in a shell, or None."""
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


def _refused_by_hyperscan(entry: Entry) -> Iterator[Problem]:
    """Compiles each sign alone, which takes seconds. So it is called only if Hyperscan rejected all signs together."""
    for place, sign in _signs(entry):
        if reason := refused_by_hyperscan(regex_of(sign)):
            yield Problem(entry, place, f"Hyperscan rejects {regex_of(sign)!r}: {reason}")


def _near_misses(entry: Entry, engine: Engine) -> Iterator[Problem]:
    for number, example in enumerate(entry.no_match_examples):
        root = _read(engine, example).root_cause
        if root and root.entry == entry.id:
            place: Place = ("examples", "no_match", number)
            yield Problem(entry, place, f"it matches its near miss: {shortened(example)}")


def _on_healthy(patterns: Patterns) -> Iterator[Problem]:
    """Yields the signs that match a line of a healthy log. Signs with `severity: warning` and the parts of `all` may:
    they do not prove a failure alone."""
    for line in HEALTHY.read_text(encoding="utf-8").splitlines():
        for index in patterns.found(line, _EVERYWHERE):
            pattern = patterns.all[index]
            if not pattern.sign.weak and not pattern.group:
                place = next(place for place, sign in _signs(pattern.entry) if sign is pattern.sign)
                text = f"{regex_of(pattern.sign)!r} matches a line of a healthy log: {shortened(line)}"
                yield Problem(pattern.entry, place, text)


def _problem_text(problem: Problem, folders: Sequence[Path]) -> tuple[str, bool]:
    """Returns a problem as a sentence that begins with file:line, and whether it is only a warning."""
    entry, place, text, lesser = problem
    file = _file(entry, folders)
    line = line_of(file.read_bytes(), place) if file else 1
    return f"{entry.file}:{line}: {text}", lesser and (file is None or BUILT_IN not in file.parents)


def _file(entry: Entry, folders: Sequence[Path]) -> Path | None:
    """Returns the file of an entry in the last folder that has it, or None."""
    return next((folder / entry.file for folder in reversed(folders) if (folder / entry.file).is_file()), None)


def _sorted_by(problem: tuple[str, bool]) -> tuple[str, int, str]:
    file, line, text = problem[0].split(":", 2)
    return file, int(line), text
