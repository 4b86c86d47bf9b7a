"""Selects the case of the root cause's entry: the first case whose sign matches this failure and whose conditions are
met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from torchtriage.answer.failure_facts.computed_values import computed_values
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.registry import failure_facts
from torchtriage.answer.templates import filled, slots, without_optional_parts
from torchtriage.answer.verdict import first_occurrence, line_of, same_entry_findings
from torchtriage.domain.entry import Case, Condition, Sign
from torchtriage.domain.event import Raised, Where
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.linear_regex import linear_regex
from torchtriage.matching.matcher import frames_text
from torchtriage.runs.findings import Finding

TEXTS = frozenset({"words", "frames", "log"})  # texts that only conditions can check
_OF_MESSAGE = frozenset({"words", "message"})
_OF_PLACE = frozenset({"library_frame", "library_function"})
_MEANINGLESS = "zq zq zq zq 7"
PRONOUNS = "pronouns"  # the vocabulary's list: words that name nothing by themselves
_MESSAGES = frozenset({"words", "log"})
_MAX_SEARCHED_FINDINGS = 64  # findings whose lines are searched for the best one to show
_MAX_SAME_ENTRY = 8  # findings of the same entry whose signs are checked


@dataclass(frozen=True)
class SelectedCase:
    """A case that applies, with the values that its sign and conditions captured from the failure's texts, the failure
    as seen from the exception that matches the sign, and the line of that match."""

    case: Case
    facts: tuple[Fact, ...]
    failure: Failure
    line: Line | None = None
    of_log: tuple[str, ...] = ()  # names of step conditions that the whole log meets, as they are stored


class RejectedCase(NamedTuple):
    """A case that does not apply. `state` is the reason: `sign` (the failure does not match it), `condition` (`detail`
    is the fact that the condition checks, and `value` its value) or `slot` (`detail` names the slots without a
    value)."""

    case: Case
    state: str
    detail: str = ""
    value: str | None = None


class _Hit(NamedTuple):
    """The text that matches a case's sign (for an `all` sign, its first part), and the lines that the text was made
    from."""

    sign: Sign
    text: str
    lines: tuple[Line, ...]
    finding: Finding

    @property
    def line(self) -> Line | None:
        """The line at which the sign's match begins, or None for a sign that matches frames."""
        return None if self.sign.where == "frame" else line_of(self.sign, self.text, self.lines)


def is_general(case: Case) -> bool:
    """Returns whether a case only repeats any message of its family. Its only signs are last-resort signs, which show
    just who rejected the call. It quotes the message, and any text meets its conditions."""
    asked = [linear_regex(each.regex) for each in case.when if each.fact in _OF_MESSAGE and each.regex is not None]
    quotes = {"message", *(name for regex in asked for name in regex.groupindex)} & slots(case.says.en)
    return (
        all(sign.broad for sign in case.signs) and bool(quotes) and all(regex.search(_MEANINGLESS) for regex in asked)
    )


def explains_message(case: Case) -> bool:
    """Returns whether a case explains the meaning of its message: it is not general, and no step only repeats the
    advice in the message itself."""
    return not is_general(case) and not _passes_on_advice(case)


def _passes_on_advice(case: Case) -> bool:
    return any("advice" in slots(step.do.en) for step in case.steps)


def explains_place(case: Case) -> bool:
    """Returns whether a case is about one part of a library, which its conditions name. A check inside that part is not
    about the caller's input, so the wording of its message is no advice."""
    asked = (each for each in case.when if each.fact in _OF_PLACE and not always_holds(each))
    return any(asked) and not _passes_on_advice(case)


def select_case(failure: Failure, facts: Iterable[Fact]) -> SelectedCase | None:
    """Returns the first case of the entry that applies, or None."""
    tried = _try_all(failure, facts)
    return next((each for each in tried if isinstance(each, SelectedCase)), None)


def select_form(forms: Iterable[Case], failure: Failure, facts: Iterable[Fact]) -> SelectedCase | None:
    """Returns the first message form that applies, with the values that its conditions captured and computed values.
    The result is None if the message, or the failed check without a message, has none of these wordings. A form whose
    `name` is a pronoun does not apply."""
    values = Values(failure, failure.root.captured | {fact.name: fact.text for fact in facts})
    pronouns = frozenset(failure.reading.matcher.patterns.vocabulary.words(PRONOUNS))
    for form in forms:
        held = _holds(form, None, values, failure)
        if isinstance(held, SelectedCase) and not any(
            fact.name == "name" and fact.text.lower() in pronouns for fact in held.facts
        ):
            return held
    return None


def try_cases(failure: Failure, facts: Iterable[Fact]) -> Iterator[SelectedCase | RejectedCase]:
    """Yields all cases of the entry in the order in which they are tried. Cases whose signs match nothing come last."""
    tried = list(_try_all(failure, facts))
    yield from tried
    known = [each.case for each in tried]
    match = failure.finding.match
    yield from (RejectedCase(case, "sign") for case in (match.entry.cases if match else ()) if case not in known)


def _try_all(failure: Failure, facts: Iterable[Fact]) -> Iterator[SelectedCase | RejectedCase]:
    match = failure.finding.match
    if match is None or not match.entry.cases:
        return
    cases = match.entry.cases
    same = same_entry_findings(failure.finding, failure.choice)
    own_rank = (same[0].event.rank, None)  # the output of a rank's compiler or loader has no rank
    own, others = _hits([one for one in same if one.event.rank in own_rank], failure), _hits(same, failure)
    values = Values(failure, failure.root.captured | {fact.name: fact.text for fact in facts})
    branches = [place for place, case in enumerate(cases) if not case.signs and case.when]
    last = [place for place, case in enumerate(cases) if not case.signs and not case.when]
    shown = own.keys() | others.keys()
    by_words = [place for place, case in enumerate(cases) if case.signs and place not in shown and _checks_words(case)]
    for places in (sorted({*own, *branches}), sorted(others.keys() - own.keys()), by_words, last):
        for place in places:
            hit = own.get(place) or others.get(place)
            yield _holds(cases[place], hit, _values_at(hit, values), failure)


def _values_at(hit: _Hit | None, values: Values) -> Values:
    """Returns the values that conditions check. If the sign matches another exception than the chosen one (a parent
    repeats what its child raised), code, message and frames come from that exception."""
    failure = values.failure
    if hit is None or hit.finding is failure.finding or not any(raised.frames for raised in hit.finding.event.chain):
        return values
    at = replace(failure, finding=hit.finding)
    return Values(at, failure.root.captured | {fact.name: fact.text for fact in failure_facts(at)})


def _checks_words(case: Case) -> bool:
    """Returns whether the conditions alone can identify the failure, because its lines may be cut or wrapped. A
    condition on the whole log or the frames, or one that any text meets, is not enough."""
    return any(condition.fact == "words" and not always_holds(condition) for condition in case.when)


def always_holds(condition: Condition) -> bool:
    """Returns whether any text meets a condition, so that it only fills slots."""
    return condition.regex is None or bool(linear_regex(condition.regex).search(_MEANINGLESS))


def _hits(findings: list[Finding], failure: Failure) -> dict[int, _Hit]:
    """Returns the matches of the cases whose signs the findings show, by the case's index in the entry."""
    patterns, match = failure.reading.matcher.patterns, failure.finding.match
    found: dict[int, _Hit] = {}
    for finding in findings[:_MAX_SAME_ENTRY]:
        for index, _, raised in finding.found.hits:
            pattern = patterns.all[index]
            first = not pattern.group or index == pattern.group[0]
            if pattern.case is None or not first or match is None or pattern.entry is not match.entry:
                continue
            if pattern.entry.cases[pattern.case].signs:  # else the sign only finds the entry
                found.setdefault(pattern.case, _hit(finding, raised, pattern.sign))
    return found


def _hit(finding: Finding, raised: Raised | None, sign: Sign) -> _Hit:
    if raised is None:
        return _Hit(sign, finding.event.text, finding.event.lines, finding)
    return _Hit(sign, frames_text(raised) if sign.where == "frame" else raised.text, raised.lines, finding)


def _holds(case: Case, hit: _Hit | None, values: Values, chosen: Failure) -> SelectedCase | RejectedCase:
    groups: dict[str, Fact] = {}
    failure = values.failure
    if hit is not None and hit.sign.regex is not None:
        groups = _groups(hit.sign.regex, hit, failure)
    for condition in case.when:
        taken = values.meets(condition)
        if taken is None:
            return RejectedCase(case, "condition", condition.fact, values.get(condition.fact))
        groups = {**{name: failure.fact(name, value) for name, value in taken.items()}, **groups}
    known = values.known | {name: fact.text for name, fact in groups.items()}
    groups |= {name: failure.fact(name, value) for name, value in computed_values(known).items()}
    known |= {name: fact.text for name, fact in groups.items()}
    if filled(case.says.en, known) is None:
        return RejectedCase(case, "slot", ", ".join(sorted(slots(without_optional_parts(case.says.en)) - known.keys())))
    held: list[str] = []
    for condition in (one for step in case.steps for one in step.when if one.regex is not None):
        taken = values.meets(condition)
        held += [condition.kept_as] if taken is not None and condition.fact == "log" else []
        groups = {**{name: failure.fact(name, value) for name, value in (taken or {}).items()}, **groups}
    for condition in (one for step in case.steps for one in step.unless if one.fact == "log"):
        held += [condition.kept_as] if values.meets(condition) is not None else []
    line = _line_to_show(case, chosen) or (hit.line if hit else None)
    own = line in (None, *chosen.finding.event.lines) and not case.telling
    first = first_occurrence(chosen.finding, chosen.choice) if own else None
    return SelectedCase(case, tuple(groups.values()), failure, first or line, tuple(held))


def _line_to_show(case: Case, failure: Failure) -> Line | None:
    """Returns the line to show first: the line that matches the case's `telling`, or else the line that meets a
    condition on messages. All lines that report a failure are searched. The result is None if the sign's own line is as
    good."""
    asked = [case.telling] if case.telling else []
    if not asked and not case.signs and failure.finding.event.where is not Where.EXIT:
        asked = [condition.regex for condition in case.when if condition.fact in _MESSAGES and condition.regex]
    findings = (
        (*same_entry_findings(failure.finding, failure.choice), *failure.choice.live)[:_MAX_SEARCHED_FINDINGS]
        if asked
        else ()
    )
    lines = [line for finding in findings for line in _lines(finding)]
    shown = (line for pattern in asked for line in lines if linear_regex(pattern).search(line.text))
    return next(shown, None)


def _lines(finding: Finding) -> Iterator[Line]:
    for raised in finding.event.chain:
        yield from raised.lines
    yield from finding.event.lines


def _groups(pattern: str, hit: _Hit, failure: Failure) -> dict[str, Fact]:
    """Returns the values that a sign's named groups capture from the text, with the line of each."""
    if "(?P<" not in pattern:
        return {}
    # Secrets are removed before the groups are read, because a value is recognized by the name before it.
    found = linear_regex(pattern).search(failure.shown(hit.text))
    facts = {}
    for name, value in (found.groupdict() if found else {}).items():
        if value:
            line = next((line for line in hit.lines if value in line.text), hit.lines[0] if hit.lines else None)
            facts[name] = failure.fact(name, value, line=line)
    return facts


class Values(Mapping[str, str]):
    """The values that conditions check: facts by name, and the failure's texts. `words` are its messages, `frames` is
    its traceback, and `log` is all that was found in the run, with the whole log if that is short."""

    def __init__(self, failure: Failure, known: Mapping[str, str]) -> None:
        self.known = dict(known)
        self.failure = failure
        self._texts: dict[str, str] = {}

    def meets(self, condition: Condition) -> dict[str, str] | None:
        """Returns the values of the condition's named groups, or None if the condition is not met."""
        value = self.get(condition.fact)
        if condition.regex is None:
            return {} if (value is not None) == condition.known else None
        found = linear_regex(condition.regex).search(value) if value is not None else None
        return {name: group for name, group in found.groupdict().items() if group} if found else None

    def get(self, name: str, default: Any = None) -> Any:
        # Like `Mapping.get`, but without the cost of an exception for an unknown name, which is the most frequent case.
        return self[name] if name in self.known or name in TEXTS else default

    def __getitem__(self, name: str) -> str:
        if name not in TEXTS:
            return self.known[name]
        if name not in self._texts:
            texts = {"words": self._words, "frames": self._frames, "log": self._log}
            self._texts[name] = self.failure.shown(texts[name]())
        return self._texts[name]

    def __iter__(self) -> Any:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def _words(self) -> str:
        event = self.failure.finding.event
        return "\n".join([self.failure.root.words, event.text, *(raised.text for raised in event.chain)])

    def _frames(self) -> str:
        own = "\n".join(frames_text(raised) for raised in self.failure.finding.event.chain)
        return own or (frames_text(self.failure.raised) if self.failure.raised else "")

    def _log(self) -> str:
        return self.failure.log
