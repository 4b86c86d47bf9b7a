"""Converts a draft that was typed in the web page to YAML, and lists the problems that `kb check` would find in it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import re2
import yaml
from pydantic import ValidationError

from torchtriage.answer.answer_text import write_answer
from torchtriage.answer.templates import filled
from torchtriage.domain.draft import Draft, DraftCheck, DraftStep, FieldProblem
from torchtriage.domain.entry import Entry, KnowledgeBase, Text
from torchtriage.domain.verdict import Verdict
from torchtriage.knowledge.added_cases import file_of, is_case_id, split_id, with_cases
from torchtriage.knowledge.case_checks import LEFT, Problem, known_in, unknown_slots
from torchtriage.knowledge.checks import problems_of, problems_of_added
from torchtriage.knowledge.new_entry import block_text, case_name, is_entry_id, single_quoted
from torchtriage.knowledge.schema import AddedCases, EntryForm
from torchtriage.knowledge.yaml_positions import Loader
from torchtriage.linear_regex import linear_regex
from torchtriage.matching.patterns import regex_of

_ADVICE = {"no": "fix-first", "yes": "retry", "once": "retry"}
_ONE_FIELD = {"id": "entry", "area": "entry", "kind": "kind", "owner": "owner", "examples": "near_miss"}
_OF_CASE = {"sign": "sign", "search_in": "search_in", "example": "example", "retry": "retry", "source": "source"}
_MISSING = "this is missing"
_NOT_SHOWN = "the example has no value for {name}; add the line that shows it, or remove the slot"
_TAKEN = "an entry with this id exists already"
_NO_CHINESE = "no Chinese yet; readers get the English"


def yaml_of(draft: Draft, expect: Text | None = None) -> str:
    """Returns the YAML of the entry, or of the case that is added to an entry. Missing texts become TODO. `expect` is
    the case's answer to its example."""
    name, adds = split_id(draft.entry)
    area = name.partition(".")[0]
    lines = [f"id: {name or LEFT}", f"kind: {draft.kind}", "title:", *_text(draft.title_en, draft.title_zh, 2)]
    lines += [f"area: {area or LEFT}", f"owner: {draft.owner}"]
    lines = [*([f"adds_to: {name}"] if adds else lines), "cases:"]
    lines += [f"  - id: {_case(draft)}", f"    sign: {_scalar(draft.sign)}", f"    search_in: {draft.search_in}"]
    lines += ["    says:", *_text(draft.says_en, draft.says_zh, 6)]
    steps = _steps(draft)
    lines += ["    do:"] if steps else []
    for _, step in steps:
        first, *others = _text(step.en, step.zh, 8)
        lines += [f"      - {first.strip()}", *others]
        lines += [f"        run: {single_quoted(step.run)}"] if step.run else []
    lines += [f"    retry: {draft.retry}", f"    source: {_scalar(draft.source)}"]
    lines += block_text("example", draft.example or LEFT)
    if expect is not None:
        lines += ["    expect:", f"      en: {single_quoted(expect.en)}"]
        lines += [f"      zh: {single_quoted(expect.zh)}"] if expect.zh else []
    lines += [] if adds else [f"action: {{advice: {_ADVICE[draft.retry]}, retry: {draft.retry}}}"]
    lines += ["examples:"]
    lines += [f"  no_match: [{single_quoted(draft.near_miss) if draft.near_miss else ''}]"]
    return "\n".join(lines) + "\n"


def entry_of(draft: Draft, expect: Text | None = None) -> Entry:
    """Returns the entry, or the addition to one, that a complete draft describes. Raises ValidationError if the draft
    is invalid."""
    data = yaml.load(yaml_of(draft, expect), Loader=Loader)
    if split_id(draft.entry)[1]:
        return AddedCases.model_validate(data).build(file_of(draft.entry))
    return EntryForm.model_validate(data).build(file_of(draft.entry), ())


def rough_entry_of(draft: Draft) -> Entry:
    """Returns the entry of a draft whose texts need not be written yet; only the signs and conditions are real. Raises
    ValidationError if it has no sign."""
    texts = {name: getattr(draft, name) or LEFT for name in ("title_en", "says_en", "source", "example")}
    steps = draft.steps if _steps(draft) else (DraftStep(LEFT),)
    entry = draft.entry if _is_id(draft.entry) else "new.draft"
    return entry_of(replace(draft, entry=entry, steps=steps, **texts))  # type: ignore[arg-type]


def signs_of(entry: Entry) -> tuple[str, ...]:
    """Returns the regexes of a drafted entry's signs. The example must match each of them."""
    return tuple(regex_of(sign) for sign in entry.signs)


def with_entry(knowledge: KnowledgeBase, entry: Entry) -> KnowledgeBase:
    """Returns the knowledge base with `entry` added, or in place of the entry with its id. An addition is merged into
    that entry unless it is already there. The digest covers only the signs, so that the patterns compiled for them can
    be used again when texts change."""
    if entry.addition:
        known = knowledge.entries[entry.id]
        if {case.id for case in entry.cases} <= {case.id for case in known.cases}:
            return knowledge
        entry = with_cases(known, entry)
    signs = "\0".join(repr(sign) for sign in entry.signs)
    digest = hashlib.sha256("\0".join([knowledge.digest, entry.id, signs]).encode()).hexdigest()
    return replace(knowledge, entries={**knowledge.entries, entry.id: entry}, digest=f"sha256:{digest}")


def check_draft(
    draft: Draft, knowledge: KnowledgeBase, cache: Path | None, taken: Collection[str] = (), whole: bool = True
) -> DraftCheck:
    """Returns the problems that `kb check` would find in the draft, each at its field of the form, and the draft's
    answer to its example. `taken` are the ids that it may not use. If `whole` is false, the other cases of the entry
    are not tested with an added case."""
    problems = list(_own_problems(draft, knowledge, taken))
    if not draft.sign:
        return DraftCheck(tuple(problems))  # nothing more can be tested yet
    if "entry" in _fields(problems):
        draft = replace(draft, entry="new.draft")  # a valid id, so that everything else is checked
    if not _steps(draft):
        draft = replace(draft, steps=(DraftStep(LEFT),))
    try:
        entry = entry_of(draft)
    except ValidationError as error:
        field_problems = (
            FieldProblem(_field(draft, found["loc"]), found["msg"]) for found in error.errors(include_url=False)
        )
        return DraftCheck(
            (*problems, *(problem for problem in field_problems if problem.field not in _fields(problems)))
        )
    together = with_entry(knowledge, entry)
    prove = partial(problems_of_added, whole=whole) if entry.addition else problems_of
    found, spoken = prove(together, entry, cache)
    verdict = spoken.get((entry.id, _case(draft)))
    missing = unknown_slots(entry.cases[0], verdict) if verdict and _is_its(entry, verdict) else []
    problems += [FieldProblem("says_en", _NOT_SHOWN.format(name=name)) for name in missing]
    problems += _at_fields(draft, found, _fields(problems), bool(missing) and _sign_is_shown(draft))
    checked = _said(entry, verdict) if verdict else DraftCheck()
    known = known_in(entry.cases[0], verdict) if verdict and _is_its(entry, verdict) else ()
    return replace(checked, problems=tuple(problems), known=tuple(sorted(known)))


def _at_fields(
    draft: Draft, found: Iterable[Problem], reported_fields: set[str], silent: bool
) -> Iterator[FieldProblem]:
    """Yields the problems at the fields of the form, except fields in `reported_fields`, which already have one. If
    `silent` is true, the case was not selected for its example because of a slot, and that problem is reworded."""
    for problem in found:
        field = _field(draft, problem.place)
        if "expect" in problem.place or (silent and field == "example"):
            continue  # the person who reads the sentence in the page accepts it
        if problem.lesser and field.endswith(("_en", "_zh")):
            continue  # the missing Chinese text, which is already reported
        if problem.lesser and field == "near_miss":
            yield FieldProblem(field, "no near miss yet", True)
        elif field not in reported_fields or LEFT not in problem.text:
            yield FieldProblem(field, problem.text.removeprefix(f"case {_case(draft)}: "), problem.lesser)
        reported_fields = {*reported_fields, field}


def _sign_is_shown(draft: Draft) -> bool:
    """Returns whether the example matches the sign. Then only a slot without a value keeps the case from being
    selected."""
    try:
        return linear_regex(draft.sign).search(draft.example) is not None
    except re2.error:
        return False


def _is_its(entry: Entry, verdict: Verdict) -> bool:
    """Returns whether the root cause of a verdict is this entry."""
    return verdict.root_cause is not None and verdict.root_cause.entry == entry.id


def _said(entry: Entry, verdict: Verdict) -> DraftCheck:
    """Returns the answer of the entry's case in a verdict, in both languages. Empty if the case was not selected."""
    case, answer, root = entry.cases[0], verdict.answer, verdict.root_cause
    if answer is None or root is None or answer.case != case.id or case.says.en == LEFT:
        return DraftCheck()
    chinese = write_answer(answer, root, entry, verdict.run.versions_inferred | verdict.run.versions, "zh")
    own = filled(case.says.zh, answer.values) if case.says.zh else None
    says = Text(filled(case.says.en, answer.values) or answer.says, own or "")
    # a step is missing in one language if its slots have values only in the other
    both = zip_longest(answer.steps, chinese.steps)
    steps = (Text(one.do if one else "", other.do if other else "") for one, other in both)
    return DraftCheck((), says, tuple(step for step in steps if step.en != LEFT))


def _own_problems(draft: Draft, knowledge: KnowledgeBase, taken: Collection[str]) -> Iterator[FieldProblem]:
    """Yields the problems that must be found before the entry's YAML can be written."""
    entry, adds = split_id(draft.entry)
    if not draft.entry:
        yield FieldProblem("entry", _MISSING)
    elif not _is_id(draft.entry):
        yield FieldProblem("entry", "use area.name in lower-case letters, digits and hyphens")
    elif adds and entry not in knowledge.entries:
        yield FieldProblem("entry", f"no entry has the id {entry}")
    elif draft.entry in taken:
        yield FieldProblem("entry", "a case with this id exists already" if adds else _TAKEN)
    needed = ("title_en", "sign", "says_en", "source", "example")[1 if adds else 0 :]
    missing = [name for name in needed if not getattr(draft, name)]
    yield from (FieldProblem(name, _MISSING) for name in missing)
    for number, step in enumerate(draft.steps, 1):
        if not step.en and (step.zh or step.run):
            yield FieldProblem(f"step{number}_en", _MISSING)
    yield from (FieldProblem(f"{name}_zh", _NO_CHINESE, True) for name, en, zh in _pairs(draft) if en and not zh)
    if not _steps(draft):
        yield FieldProblem("step1_en", "at least one step is needed")


def _pairs(draft: Draft) -> list[tuple[str, str, str]]:
    """Returns the texts that exist in both languages, each as (field of the form, English, Chinese)."""
    steps = [(f"step{number}", step.en, step.zh) for number, step in enumerate(draft.steps, 1)]
    return [("title", draft.title_en, draft.title_zh), ("says", draft.says_en, draft.says_zh), *steps]


def _fields(problems: list[FieldProblem]) -> set[str]:
    return {problem.field for problem in problems}


def _field(draft: Draft, place: tuple[Any, ...]) -> str:
    """Returns the field of the form for a place in the entry's YAML."""
    match place:
        case ("title", *inner):
            return f"title_{_lang(inner)}"
        case ("cases", 0, "says", *inner):
            return f"says_{_lang(inner)}"
        case ("cases", 0, "do", int(number), *inner):
            steps = _steps(draft)
            typed = steps[number][0] if number < len(steps) else 1
            return f"step{typed}_{'run' if inner[:1] == ['run'] else _lang(inner)}"
        case ("cases", 0, "do", *_) | ():
            return "step1_en"
        case ("cases", 0, str(key), *_) if key in _OF_CASE:
            return _OF_CASE[key]
        case (str(key), *_) if key in _ONE_FIELD:
            return _ONE_FIELD[key]
    return "sign"


def _lang(inner: list[Any]) -> str:
    return "zh" if inner[:1] == ["zh"] else "en"


def _steps(draft: Draft) -> list[tuple[int, DraftStep]]:
    """Returns the steps that are not empty, with their numbers in the form."""
    return [(number, step) for number, step in enumerate(draft.steps, 1) if step != DraftStep()]


def _is_id(name: str) -> bool:
    entry, case = split_id(name)
    return is_entry_id(entry) and ("/" not in name or is_case_id(case))


def _case(draft: Draft) -> str:
    if case := split_id(draft.entry)[1]:
        return case
    return case_name((draft.example.strip().splitlines() or [""])[-1])


def _text(en: str, zh: str, margin: int) -> list[str]:
    lines = [f"{' ' * margin}en: {_scalar(en)}"]
    return [*lines, f"{' ' * margin}zh: {single_quoted(zh)}"] if zh else lines


def _scalar(text: str) -> str:
    return single_quoted(text) if text else LEFT
