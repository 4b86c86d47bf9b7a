"""Checks of cases: each case has an example, is the one selected for it, and answers it with the words in `expect`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

import re2

from torchtriage.answer.answer_text import MAX_STEPS, write_answer
from torchtriage.answer.case_selection import TEXTS, always_holds
from torchtriage.answer.corrected_line import rewritten
from torchtriage.answer.templates import filled, slots, without_optional_parts
from torchtriage.domain.entry import Case, Condition, Entry, Sign, Text
from torchtriage.domain.verdict import Verdict
from torchtriage.knowledge.folders import FORMS
from torchtriage.knowledge.yaml_positions import Path as Place
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.patterns import refused_by_re2

# Facts that contain whole lines of code or whole messages. They are never a single word of a command.
SENTENCES = frozenset({"code", "caller_code", "library_code", "message", "warning"})
# Facts that the engine itself derives about the place of a failure.
_OF_PLACE = ("code", "where", "caller_code", "library_code", "library_frame")
_VERSION_FACT = lazy_regex(r"[a-z][a-z_]*_version")
SAYS_WORDS, STEP_WORDS = 35, 20  # the most words of a sentence, and of a step; code in backticks counts as one word
LEFT = "TODO"  # marks what the author of a new entry or case still has to write
_VERSION = lazy_regex(r"(?<![\w.])[vr]?\d")  # version of a package, or a date
_CODE = lazy_regex(r"`[^`]*`")
_SLOT_NAME = lazy_regex(r"[a-z_]+")
_NO_SLOT = lazy_regex(r"\{[a-z_]*\d\w*\}")
_PLACEHOLDER = lazy_regex(
    r"<[a-z][\w .-]*>|(?<![\w$%{-])(?:HOST|PORT|NODE|JOB|JOBID|REPO|PEER_ADDRESS|ORG/MODEL)(?![\w=])|/?path/to\b|…"
)


class Problem(NamedTuple):
    """A problem of an entry, and its place in the entry's file. A `lesser` problem is only a warning if the file is in
    one of the user's own folders."""

    entry: Entry
    place: Place
    text: str
    lesser: bool = False


def of_cases(entry: Entry, facts: frozenset[str]) -> Iterator[Problem]:
    """Yields the problems in the YAML of an entry's cases. `facts` are the names of all facts."""
    for number, case in enumerate(entry.cases):
        at: Place = ("cases", number)
        if case.id in (other.id for other in entry.cases[:number]):
            yield Problem(entry, (*at, "id"), f"the case id {case.id!r} appears twice")
        for place, problem in (
            *_missing(case),
            *_words(case),
            *_conditions(entry, case, facts),
            *_slots(entry, case, facts),
            *_rewrites(entry, case, facts),
            *_hidden_facts(entry, case),
        ):
            yield Problem(entry, (*at, *place), f"case {case.id}: {problem}")
        if silenced := next((other.id for other in entry.cases[:number] if _always_before(other, case)), None):
            yield Problem(entry, at, f"case {case.id} is never selected: {silenced} before it always applies too")
        for place, text in _texts(case):
            if not text.zh and LEFT not in text.en:
                yield Problem(entry, (*at, *place), f"case {case.id}: no Chinese for {shortened(text.en)!r}", True)


def of_examples(entry: Entry, number: int, verdicts: Mapping[str, Verdict]) -> Iterator[Problem]:
    """Yields the problems in the engine's verdicts on the examples of one case. `verdicts` maps each example to its
    verdict."""
    case = entry.cases[number]
    examples: list[tuple[Place, str | None]] = [(("example",), case.example)]
    examples += [((*place, "example"), example) for place, example in _other_examples(case)]
    for place, example in examples:
        if not example:
            continue
        verdict = verdicts[example]
        problem = _wrong_answerer(entry, case, example, verdict)
        if problem:
            yield Problem(entry, ("cases", number, *place), f"case {case.id}: {problem}")
        elif place == ("example",):
            yield from _of_example(entry, number, verdict)


def _wrong_answerer(entry: Entry, case: Case, example: str, verdict: Verdict) -> str | None:
    """Returns a message that says which case or entry answers an example instead of `case`, and why. Returns None if
    `case` answers it."""
    root, answer = verdict.root_cause, verdict.answer
    if entry.area == FORMS:
        spoken = answer.form if answer else None
        return None if spoken == case.id else f"its example is answered by form {spoken}: {shortened(example)}"
    if root is None or root.entry != entry.id or answer is None:
        winner = root.entry if root and root.entry else verdict.outcome
        return f"the verdict on its example is {winner}: {shortened(example)}"
    if answer.case != case.id:
        speaker = f"case {answer.case}" if answer.case else "no case"
        open_slots = ", ".join(unknown_slots(case, verdict))
        reason = f"no value for {open_slots} in its example, which" if open_slots else "its example"
        return f"{reason} is answered by {speaker}: {shortened(example)}"
    return None


def _of_example(entry: Entry, number: int, verdict: Verdict) -> Iterator[Problem]:
    """Yields the problems in the answer of a case to its own example."""
    case, root, answer = entry.cases[number], verdict.root_cause, verdict.answer
    if root is None or answer is None:
        return
    own = filled(case.says.en, answer.values) or ""
    if (words := words_of(own)) > SAYS_WORDS:
        yield Problem(
            entry,
            ("cases", number, "says"),
            f"case {case.id}: the answer to its example has {words} words, more than {SAYS_WORDS}",
        )
    form = case if entry.area == FORMS else None
    known = None if form else entry
    chinese = write_answer(answer, root, known, verdict.run.versions_inferred | verdict.run.versions, "zh", form)
    own_chinese = filled(case.says.in_("zh"), answer.values) or ""
    yield from _expected(entry, number, (own, answer.says), (own_chinese, chinese.says))
    for place, step in enumerate(case.steps):
        shown = filled(step.do.en, answer.values)
        written = next((one for one in answer.steps if one.do == shown), None)
        if written is not None and step.run and written.run is None and slots(step.run) <= answer.values.keys():
            where: Place = ("cases", number, "do", place, "run")
            text = "the command is not shown for its example, because a value in it is not a plain word"
            yield Problem(entry, where, f"case {case.id}: {text}")
        if written is not None and step.rewrite:
            code = answer.values.get("code", "")
            if rewritten(code, step.rewrite, answer.values) is None:
                text = f"rewrite makes no other line of Python of its example's line: {shortened(code)!r}"
                yield Problem(entry, ("cases", number, "do", place, "rewrite"), f"case {case.id}: {text}")


def words_of(text: str) -> int:
    """Returns the number of words in a text. Code in backticks counts as one word."""
    return len(_CODE.sub("x", text).split())


def shortened(text: str) -> str:
    """Returns a text as one line of at most 120 characters, to be quoted in a message."""
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:117]}…"


def _missing(case: Case) -> Iterator[tuple[Place, str]]:
    if not case.example:
        yield ("example",), "no example"
    yield from ((place, "no example") for place, example in _other_examples(case) if not example)
    if not case.source and (case.signs or case.when):
        yield ("source",), "no source: name the package and its version, or a document and its date"
    elif case.source and LEFT not in case.source and not _VERSION.search(case.source):
        yield ("source",), f"the source has no version or date: {case.source!r}"
    for place, text in (
        *_texts(case),
        (("source",), Text(case.source, "")),
        (("example",), Text(case.example or "", "")),
    ):
        if LEFT in text.en or LEFT in text.zh:
            yield place, f"still to write: {shortened(text.en if LEFT in text.en else text.zh)!r}"


def _other_examples(case: Case) -> Iterator[tuple[Place, str]]:
    key = "signs" if case.finding_signs else "also"
    yield from (((key, number), example) for number, example in enumerate(case.other_examples))


def _shown_together(case: Case) -> int:
    """Returns the largest number of steps that can be shown at once. Two steps, of which one needs a fact to be known
    and the other needs it to be unknown, are never shown together."""
    asked = [[one for one in step.when if one.fact not in TEXTS] for step in case.steps]
    facts = sorted({one.fact for conditions in asked for one in conditions if one.regex is None})
    combinations = (dict(zip(facts, known, strict=True)) for known in product((True, False), repeat=len(facts)))
    return max(sum(all(_may_hold(one, known) for one in conditions) for conditions in asked) for known in combinations)


def _may_hold(condition: Condition, known: Mapping[str, bool]) -> bool:
    wanted = condition.known if condition.regex is None else True
    return known.get(condition.fact, wanted) == wanted


def _words(case: Case) -> Iterator[tuple[Place, str]]:
    if (steps := _shown_together(case)) > MAX_STEPS:
        yield ("do",), f"{steps} steps, more than {MAX_STEPS}"
    for number, step in enumerate(case.steps):
        if (words := words_of(without_optional_parts(step.do.en))) > STEP_WORDS:
            yield ("do", number), f"the step has {words} words, more than {STEP_WORDS}: {shortened(step.do.en)!r}"
        for key, text in (("en", step.do.en), ("zh", step.do.zh), ("run", step.run or "")):
            if found := _PLACEHOLDER.search(text):
                yield (
                    ("do", number, key),
                    f"the placeholder {found[0]!r} must be filled in by the reader; use a slot",
                )


def _conditions(entry: Entry, case: Case, facts: frozenset[str]) -> Iterator[tuple[Place, str]]:
    captured = {name for name, _ in entry.capture}
    asked: list[tuple[Place, Condition, frozenset[str]]] = [(("when",), each, TEXTS) for each in case.when]
    for number, step in enumerate(case.steps):
        for key, conditions in (("when", step.when), ("unless", step.unless)):
            asked += [(("do", number, key), each, TEXTS | groups_of(case).keys()) for each in conditions]
    for place, condition, others in asked:
        at = (*place, condition.fact)
        if not is_fact(condition.fact, facts) and condition.fact not in others | captured:
            yield at, f"no fact has the name {condition.fact!r}, so the condition is never true"
        asks = condition.fact in TEXTS and condition.regex is not None and not named(condition.regex)
        if asks and refused_by_re2(condition.regex or "") is None and always_holds(condition):
            yield at, "the condition is true for any text and fills no slot: remove it"
    for part in (part for sign in case.signs for part in sign.all or (sign,)):
        for name in named(part.regex or ""):
            if not _SLOT_NAME.fullmatch(name):
                yield ("sign",), f"the group {name!r} cannot fill a slot: use only lower-case letters and _"


def _slots(entry: Entry, case: Case, facts: frozenset[str]) -> Iterator[tuple[Place, str]]:
    for place, text in _texts(case):
        for lang, template in (("en", text.en), ("zh", text.zh)):
            for name in sorted(slots(template)):
                if not fills(name, entry, case, facts):
                    yield (*place, lang), f"nothing fills the slot {{{name}}}"
            for name in _NO_SLOT.findall(template):
                yield (*place, lang), f"{name} is not a slot: use only lower-case letters and _"
    for number, step in enumerate(case.steps):
        for name in sorted(slots(step.run or "")):
            at: Place = ("do", number, "run")
            if not fills(name, entry, case, facts):
                yield at, f"nothing fills the slot {{{name}}}"
            elif name in SENTENCES and name not in groups_of(case):
                yield at, f"{{{name}}} is not a single word, so this command is never shown"


def _rewrites(entry: Entry, case: Case, facts: frozenset[str]) -> Iterator[tuple[Place, str]]:
    for number, step in enumerate(case.steps):
        if step.rewrite is None:
            continue
        find = slots(step.rewrite.find)
        if reason := refused_by_re2(filled(step.rewrite.find, dict.fromkeys(find, "x")) or ""):
            yield ("do", number, "rewrite", "find"), f"RE2 rejects {step.rewrite.find!r}: {reason}"
        for name in sorted(find | slots(step.rewrite.replace)):
            if not fills(name, entry, case, facts):
                yield ("do", number, "rewrite"), f"nothing fills the slot {{{name}}}"


def _hidden_facts(entry: Entry, case: Case) -> Iterator[tuple[Place, str]]:
    groups = {*groups_of(case), *(name for name, _ in entry.capture)}
    for name in sorted(groups.intersection(_OF_PLACE)):
        yield ("id",), f"a group named {name!r} hides the fact of that name: give it another name"


def _texts(case: Case) -> Iterator[tuple[Place, Text]]:
    yield ("says",), case.says
    if case.unknown:
        yield ("unknown",), case.unknown
    yield from ((("do", number), step.do) for number, step in enumerate(case.steps))


def _always_before(first: Case, case: Case) -> bool:
    """Returns whether the first case always applies when the second one does."""
    return (
        set(case.signs) <= set(first.signs)
        and (bool(case.signs) or not first.signs)
        # a case without sign and condition is tried last
        and (bool(first.signs) or bool(first.when) == bool(case.when))
        and set(first.when) <= set(case.when)
        # This is last because it parses patterns; the conditions above decide nearly every pair.
        and slots(without_optional_parts(first.says.en)) - groups_of(first).keys()
        <= slots(without_optional_parts(case.says.en)) | groups_of(case).keys()
    )


def known_in(case: Case, verdict: Verdict) -> set[str]:
    """Returns the slots that have a value in the example of a case."""
    values = verdict.answer.values if verdict.answer else {}
    return {*values, *groups_of(case)}


def unknown_slots(case: Case, verdict: Verdict) -> list[str]:
    """Returns the slots of a case's sentence that have no value in its example, each as `{name}`."""
    open_slots = slots(without_optional_parts(case.says.en)) - known_in(case, verdict)
    return [f"{{{name}}}" for name in sorted(open_slots)]


def _expected(entry: Entry, number: int, english: tuple[str, str], chinese: tuple[str, str]) -> Iterator[Problem]:
    """Yields a problem if `expect` differs from the case's answer. `english` and `chinese` are (the case's own
    sentence, the sentence with what the engine appends); `expect` may be either."""
    case = entry.cases[number]
    place: Place = ("cases", number, "expect")
    if case.expect is None or LEFT in case.expect.en:
        if LEFT not in case.says.en:
            yield Problem(
                entry, place, f"case {case.id}: no expect; if this answer is right, add expect: {_quoted(english[0])}"
            )
        return
    if case.expect.en not in english:
        yield Problem(entry, place, f"case {case.id}: expect differs from the answer: {_quoted(english[0])}")
    if case.expect.zh and case.expect.zh not in chinese:
        text = f"case {case.id}: expect differs from the Chinese answer: {_quoted(chinese[0])}"
        yield Problem(entry, (*place, "zh"), text)


def _quoted(text: str) -> str:
    """Returns a text as a YAML scalar that can be pasted into an entry."""
    return "'" + text.replace("'", "''") + "'"


def is_fact(name: str, facts: frozenset[str]) -> bool:
    """Returns whether `name` is the name of a fact. `facts` has all names except those of the form
    `PACKAGE_version`."""
    return name in facts or _VERSION_FACT.fullmatch(name) is not None


def fills(name: str, entry: Entry, case: Case, facts: frozenset[str]) -> bool:
    """Returns whether a fact, a named group or a capture can fill the slot `name` in the sentences of a case."""
    return is_fact(name, facts) or name in groups_of(case) or any(name == captured for captured, _ in entry.capture)


def groups_of(case: Case) -> dict[str, str]:
    """Returns the named groups in the signs and conditions of a case, each with its regex."""
    conditions = (*case.when, *(condition for step in case.steps for condition in step.when))
    return {name: pattern for pattern in _regexes([*case.signs, *conditions]) for name in named(pattern)}


def named(pattern: str) -> tuple[str, ...]:
    """Returns the named groups of a regex. Empty if RE2 rejects the regex."""
    return () if refused_by_re2(pattern) else tuple(re2.compile(pattern).groupindex)


def _regexes(parts: Iterable[Sign | Condition]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Sign) and part.all:
            yield from _regexes(part.all)
        elif part.regex is not None:
            yield part.regex
