"""Writes the text of an answer: the sentences and steps of the selected case, or only what is certain if no case
applies."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchtriage.answer import standard_sentences
from torchtriage.answer.cause_ranking import most_likely_first, shows
from torchtriage.answer.commands import is_plain, on_hosts, run_line
from torchtriage.answer.corrected_line import rewritten, with_options
from torchtriage.answer.referenced_log import referenced_log
from torchtriage.answer.settings_in_force import is_in_force
from torchtriage.answer.standard_sentences import GeneralStep
from torchtriage.answer.templates import filled, is_open, short, slots
from torchtriage.answer.version_ranges import shown as version_shown
from torchtriage.domain.entry import Case, Condition, Entry, Language, Role, Step, Text
from torchtriage.domain.fact import Fact
from torchtriage.domain.verdict import Answer, AnswerStep, RootCause
from torchtriage.lazy_regex import lazy_regex

MAX_STEPS = 3
_NO_EXCEPTION = frozenset({"", "exception"})  # the exception type of a traceback that shows no type
# Exceptions that the interpreter itself raises: the code of the line says more than the call.
_OF_INTERPRETER = (LookupError, AttributeError, NameError, ArithmeticError, TypeError)
# A line that only raises an exception, or calls compiled code, has no information of its own.
_UNINFORMATIVE_LINE = lazy_regex(r"^(?:raise|assert)\b|^return [\w.]+\([^\[]*\)$|\btorch\._C\b|\($")
# Sentences to add if the case's sentence does not use the slots. Each is listed with the slot that it needs first.
_RELATED_VALUES = (
    ("forward_where", standard_sentences.FORWARD_CALL),
    ("by_rank", standard_sentences.MESSAGES_BY_RANK),
    ("printed_by_rank", standard_sentences.PRINTED_BY_RANK),
    ("steps_by_rank", standard_sentences.LAST_STEPS_BY_RANK),
    ("printed_shapes", standard_sentences.PRINTED_SHAPES),
    ("printed_value", standard_sentences.PRINTED_BEFORE),
    ("passed_name", standard_sentences.PASSED_IN),
    ("telling_line", standard_sentences.PRINTED_ABOVE),
)
_MAX_EXTRA_SENTENCES = 2
_FEW_ABOVE = 3  # lines: if the log has no more above the failure, what led to the failure was not submitted
# Slots that give the same information.
_RANKS = frozenset({"ranks", "rank_count", "same_second", "failed_ranks", "by_rank"})
_JOINED = lazy_regex(r"^(?:(?:Or|Then|Otherwise|Also),? |(?:或者|或|然后|同时|否则)[，,]?)")
_CODE_FIRST = lazy_regex(r"\w*[_.(=\d]")
# pip or Python at the start of a command, after variables that are set for it
_OF_ENVIRONMENT = lazy_regex(r"(^|; |&& |\|\| )((?:[A-Z][A-Z_]*=[\w.]* )*)((?:pip|python)3? )")
# Slots for the place where the exception was raised.
_PLACES = frozenset({"where", "file", "line_number", "library_frame"})
_OF_NO_PROGRAM = frozenset({"platform", "hardware"})  # owners of failures that can happen at any line of a program
_REPORTING_ROLES = frozenset(
    {Role.PEER_LOSS, Role.TIMEOUT, Role.TEARDOWN}
)  # roles of failures that a rank only reports
_TWO = "2 ranks"  # for two ranks, nobody says "all"
_TEARDOWN = "teardown"  # the phase after training, if no other phase has begun
_EVALUATION = "evaluate"  # the name of a phase
_BEFORE_STEPS = frozenset({"launch", "rendezvous", "init"})  # phases in which a step belongs to an earlier run
_DIGITS_OF_TRAINING = 3  # digits in a number of steps: a full bar with only a few steps is no training loop
_STEPS = frozenset({"step", "progress", "total_steps", "checkpoint_step"})  # slots for the progress of the run


def write_answer(
    answer: Answer,
    root: RootCause,
    entry: Entry | None,
    versions: dict[str, str],
    lang: Language,
    form: Case | None = None,
) -> Answer:
    """Returns the answer in one language, with the text of the current knowledge base. The stored answer is returned if
    the entry, its case or the message form no longer exists. `versions` are the versions in the log, by package. `form`
    is the message form that the answer names."""
    values = answer.values
    case = next((case for case in entry.cases if case.id == answer.case), None) if entry else None
    if (answer.case is not None and case is None) or (answer.form is not None and form is None):
        return answer
    case = form or case
    if case is not None and (own := filled(case.says.in_(lang), values)):
        own_fault = entry is None or _is_own_fault(entry)
        raised = standard_sentences.RAISED_AT if own_fault else standard_sentences.MET_AT
        shown = _shown_steps(case.steps, values, {**values, **_texts(root)}, lang)
        named = slots(_templates(case, tuple(shown)))
        if form:
            named = slots(case.says.en)  # a form's steps use the place but do not mention it
        says = _with_place_and_step(own, named, values, lang, raised, inside=own_fault, known=form is None)
        failed = own_fault and (entry is None or Role.CANCELLED not in entry.roles)
        if failed and not slots(_templates(case, tuple(shown))) & values.keys() & _RANKS:
            says = _joined((says, _same_on_ranks(values, lang)), lang)
        unknown = filled(case.unknown.in_(lang), values) if case.unknown else None
        steps = tuple(shown.values())
    else:
        says, unknown, steps = _general_text(root, entry, values, lang)
    if not steps and entry is not None:
        steps = (*_advice_step(values, lang), *_fix_steps(entry, root.words, values, versions, lang))
    return replace(answer, says=says, unknown=unknown, steps=steps)


def _is_own_fault(entry: Entry) -> bool:
    """Returns whether the program itself failed, and not its platform or a rank that only waited for another rank."""
    return entry.owner not in _OF_NO_PROGRAM and not entry.roles & _REPORTING_ROLES


def first_sentence(case_id: str | None, values: Mapping[str, str], entry: Entry | None, lang: Language) -> str | None:
    """Returns the first sentence of an answer: that of its case, or the exception if no case applies. The result is
    None if neither says more than the entry's title."""
    case = next((case for case in entry.cases if case.id == case_id), None) if entry else None
    if case is not None:
        return filled(case.says.in_(lang), values)
    return _fill(standard_sentences.EXCEPTION, values, lang)


def facts_used(
    answer: Answer, entry: Entry | None, facts: tuple[Fact, ...], form: Case | None = None
) -> tuple[Fact, ...]:
    """Returns the facts that are filled into the sentences of an answer's case or message form."""
    case = form or (next((case for case in entry.cases if case.id == answer.case), None) if entry else None)
    named = slots(_templates(case, case.steps)) if case else frozenset({"exception", "message"})
    return tuple(fact for fact in facts if fact.name in named | {"where", "code"})


def _templates(case: Case, steps: tuple[Step, ...]) -> str:
    shown = (f"{step.do.en} {step.run or ''}" for step in steps)
    return " ".join((case.says.en, case.unknown.en if case.unknown else "", *shown))


def _with_place_and_step(
    says: str,
    named: frozenset[str],
    values: Mapping[str, str],
    lang: Language,
    raised: Text = standard_sentences.RAISED_AT,
    inside: bool = True,
    known: bool = True,
) -> str:
    """Returns the sentence, followed by the place and the step of the failure unless the sentence already uses those
    slots. `known` means that a case explains the failure."""
    named &= values.keys()  # an empty slot shows nothing
    parts = [_with_full_stop(says, lang), *_raise_location(says, named, values, lang, raised, inside, known)]
    if "reported_as" not in named:
        parts.append(_fill(standard_sentences.REPORTED_AS, values, lang))
    parts += _progress_reached(named, values, lang)
    parts += _related_values(_joined(parts, lang), named, values, lang)
    return _joined(parts, lang)


def _raise_location(
    says: str,
    named: frozenset[str],
    values: Mapping[str, str],
    lang: Language,
    raised: Text,
    inside: bool,
    known: bool,
) -> list[str | None]:
    if by := _fill(standard_sentences.RAISED_BY, values, lang):
        return [by, _fill(standard_sentences.MESSAGE_VALUES, values, lang)]
    if not named & _PLACES and not _names_user_line(says, values):
        place = _place(values, lang, raised, known)
        within = standard_sentences.RAISED_AT_LIBRARY_LINE if known else standard_sentences.RAISED_INSIDE_LIBRARY
        return [place or (_fill(within, values, lang) if inside else None)]
    if "library_frame" in named and "where" not in named:
        return [_fill(standard_sentences.CALLED_FROM, values, lang)]
    if short(values.get("code", "")) not in says:
        return [_fill(standard_sentences.THE_LINE, values, lang)]
    return []


def _progress_reached(named: frozenset[str], values: Mapping[str, str], lang: Language) -> list[str | None]:
    """Returns the step, epoch or loop position that the run had reached."""
    evaluates = values.get("phase") == _EVALUATION
    says_step = bool(named & _STEPS)
    parts: list[str | None] = []
    if "training_ended" in values and values.get("phase") == _TEARDOWN:
        parts.append(_fill(standard_sentences.AFTER_TRAINING, values, lang))
    elif not says_step and _is_at_step(values):
        at = _fill(standard_sentences.IN_EVALUATION if evaluates else standard_sentences.AT_STEP, values, lang)
        parts.append(at or _fill(standard_sentences.AT_PROGRESS_OF_EPOCH, values, lang))
    elif not says_step and "step" not in values and values.get("phase") not in _BEFORE_STEPS:
        parts.append(
            _fill(standard_sentences.IN_EVALUATION_OF_EPOCH if evaluates else standard_sentences.IN_EPOCH, values, lang)
        )
    if not says_step and "progress_of" not in named and "step" not in values and _is_in_loop(values):
        parts.append(_fill(standard_sentences.AT_LOOP, values, lang))
    return parts


def _fill(text: Text, values: Mapping[str, str], lang: Language) -> str | None:
    return filled(text.in_(lang), values)


def _joined(sentences: Iterable[str | None], lang: Language) -> str:
    return ("" if lang == "zh" else " ").join(filter(None, sentences))


def _same_on_ranks(values: Mapping[str, str], lang: Language) -> str | None:
    """Returns which ranks failed in the same way, if there are several."""
    if "exited_ranks" in values:
        return _fill(standard_sentences.RANKS_EXITED_ALIKE, values, lang)
    every = values.get("world_size") == values.get("rank_count") != _TWO
    return (
        _fill(standard_sentences.ALL_ALIKE if every else standard_sentences.RANKS_ALIKE, values, lang)
        if "ranks" in values
        else None
    )


def _related_values(says: str, named: frozenset[str], values: Mapping[str, str], lang: Language) -> list[str]:
    """Returns related values that the log printed before and that other ranks printed, unless the sentence contains
    them."""
    chosen: list[str] = []
    for slot, template in _RELATED_VALUES:
        known = slot in named or (slot == "printed_shapes" and "printed_by_rank" in values)
        if slot == "printed_value":
            known = known or (values.get(slot, "") in says and values.get("printed_name", "") in says)
        if not known and (sentence := _fill(template, values, lang)):
            chosen.append(sentence)
    return chosen[:_MAX_EXTRA_SENTENCES]


def _is_at_step(values: Mapping[str, str]) -> bool:
    """Returns whether the run was at a training step, and not at its start or in a short loop that had finished."""
    step, total = values.get("step", "0"), values.get("total_steps", "0")
    done = step == total and len(total) < _DIGITS_OF_TRAINING
    return not done and values.get("phase") not in _BEFORE_STEPS


def _is_in_loop(values: Mapping[str, str]) -> bool:
    """Returns whether a named loop, such as data preparation, had begun and was not finished."""
    done, _, total = values.get("progress", "").partition("/")
    return "progress_of" in values and done.strip("0") != "" and done != total


def _names_user_line(says: str, values: Mapping[str, str]) -> bool:
    """Returns whether a sentence already names the user's line, as a compiler's message does."""
    _, found, behind = says.partition(values.get("where", "\n"))
    return bool(found) and not behind[:1].isdigit()


def _place(
    values: Mapping[str, str], lang: Language, raised: Text = standard_sentences.RAISED_AT, known: bool = True
) -> str | None:
    """Returns the place where the exception was raised and its code, or the caller's line if that line only raises. It
    names the library's line if the interpreter stopped there, or if no case explains the failure."""
    if raised is standard_sentences.RAISED_AT and "library" in values and (not known or _raised_by_interpreter(values)):
        telling = not _UNINFORMATIVE_LINE.search(values.get("library_code", ""))
        known_values = values if telling else {k: v for k, v in values.items() if k != "library_code"}
        if below := _fill(standard_sentences.RAISED_IN_LIBRARY, known_values, lang):
            return below
    template = raised if "code" in values else standard_sentences.RAISED_AT_CALLED_FROM
    return _fill(template, values, lang) or _fill(raised, values, lang)


def _raised_by_interpreter(values: Mapping[str, str]) -> bool:
    """Returns whether the interpreter itself raises this exception, as for a missing key."""
    kind = getattr(builtins, values.get("exception", ""), None)
    return isinstance(kind, type) and issubclass(kind, _OF_INTERPRETER)


def _with_full_stop(says: str, lang: Language) -> str:
    """Returns a sentence with a full stop, which text from a log may lack."""
    return says if says.endswith((".", "!", "?", "。", "！", "？")) else f"{says}{'。' if lang == 'zh' else '.'}"


def _general_text(
    root: RootCause, entry: Entry | None, values: Mapping[str, str], lang: Language
) -> tuple[str, str | None, tuple[AnswerStep, ...]]:
    """Returns the text for a failure without a matching case: what was raised, where, and what the entry knows for
    certain."""
    chinese = lang == "zh"
    if entry is None and root.exception is not None and root.exception.type in _NO_EXCEPTION:
        return _cut_traceback_text(root, values, lang)
    parts: list[str] = []
    if entry is not None:
        message = values.get("message") or (root.evidence[0].text if root.evidence else "")
        title = f"{root.title.rstrip('。.')}{'：' if chinese else ': '}{short(message)}" if message else root.title
        parts.append(_with_full_stop(title, lang))
        meant = (cause for cause in entry.causes if cause.shown_by and shows(root.words, cause.shown_by))
        cause = next(meant, entry.causes[0] if len(entry.causes) == 1 else None)
        parts += [cause.in_(lang)] if cause else []
    elif failed := _fill(standard_sentences.EXCEPTION, values, lang):
        parts.append(failed)
    place = (
        None
        if "raised_by" in values
        else _place(values, lang, known=entry is not None)
        or _fill(standard_sentences.RAISED_INSIDE_LIBRARY, values, lang)
    )
    if entry is None and not parts and root.evidence:
        parts.append(short(root.evidence[0].text))
    says = _joined(
        (*parts, place, _same_on_ranks(values, lang) if entry is None or _is_own_fault(entry) else None), lang
    )
    says = _with_place_and_step(says, _PLACES, values, lang)
    if entry is not None:
        return says, None, ()
    unknown = standard_sentences.VALUE_NOT_SHOWN if "own_check" in values else standard_sentences.CAUSE_NOT_SHOWN
    return says, unknown.in_(lang), _first_step(root, values, lang)


def _cut_traceback_text(
    root: RootCause, values: Mapping[str, str], lang: Language
) -> tuple[str, str | None, tuple[AnswerStep, ...]]:
    """Returns the text for a traceback that the log cuts off: without the exception, but with the frames that are
    there."""
    shown = (_fill(text, values, lang) for text in standard_sentences.LAST_FRAME_SHOWN)
    says = _with_place_and_step(
        _joined(
            (standard_sentences.TRACEBACK_CUT.in_(lang), next(filter(None, shown), None), _same_on_ranks(values, lang)),
            lang,
        ),
        _PLACES,
        values,
        lang,
    )
    last = {"last_line": str(root.evidence[-1].line)} if root.evidence else {}
    do = _fill(standard_sentences.READ_BELOW, last, lang)
    return says, standard_sentences.EXCEPTION_NOT_SHOWN.in_(lang), (AnswerStep(do, None),) if do else ()


def _advice_step(values: Mapping[str, str], lang: Language) -> tuple[AnswerStep, ...]:
    """Returns the advice in the message itself, as a step."""
    do = _fill(standard_sentences.AS_ADVISED.do, values, lang)
    return (_general_step(standard_sentences.AS_ADVISED, do, values),) if do else ()


def _first_step(root: RootCause, values: Mapping[str, str], lang: Language) -> tuple[AnswerStep, ...]:
    """Returns the one step that would show more, if no entry knows the failure."""
    known = {**values, **_where_to_read(root)}
    for step in standard_sentences.FIRST_STEPS:
        if step.needs in known and (do := _fill(step.do, known, lang)):
            return (_general_step(step, do, known),)
    return ()


def _general_step(step: GeneralStep, do: str, values: Mapping[str, str]) -> AnswerStep:
    return AnswerStep(do, run_line(step.run, values) if step.run else None)


def _where_to_read(root: RootCause) -> dict[str, str]:
    """Returns the line and the file of the first evidence, and the log file that it names. `first_line` is included if
    almost nothing is above it in the log."""
    if not root.evidence:
        return {}
    first = root.evidence[0]
    at = {"line": str(first.line)}
    if (path := referenced_log(first.text)) is not None:
        at["named_log"] = path
    if first.file:
        return at | {"log": first.file}
    return at | ({"first_line": at["line"]} if first.line <= _FEW_ABOVE else {})


def _texts(root: RootCause) -> dict[str, str]:
    """Returns the texts that a step's condition can check, as far as the verdict keeps them: `words` and `frames`."""
    frames = root.exception.frames if root.exception else ()
    shown = (f'File "{frame.file}", in {frame.function}\n  {frame.code}' for frame in frames)
    return {"words": root.words, "frames": "\n".join(shown)}


def _shown_steps(
    steps: tuple[Step, ...], values: Mapping[str, str], asked: Mapping[str, str], lang: Language
) -> dict[Step, AnswerStep]:
    """Returns the steps of a case that apply to this run, each as it is shown."""
    shown: dict[Step, AnswerStep] = {}
    for step in steps:
        do = filled(step.do.in_(lang), values)
        if do is None or not _applies(step, asked) or len(shown) == MAX_STEPS:
            continue
        command = _command(step, values)
        if command is None or not is_in_force(command, values):
            shown[step] = AnswerStep(do if shown else _without_connective(do), command)
    return shown


def _command(step: Step, values: Mapping[str, str]) -> str | None:
    """Returns what to run or to write: the user's line of code as the step corrects it, or else the step's command."""
    code = values.get("code", "")
    corrected = rewritten(code, step.rewrite, values) if step.rewrite else None
    run = _run(step.run, values) if step.run and corrected is None else None
    if run is None:
        return corrected
    return with_options(code, run) or on_hosts(run, values.get(step.runs_on or ""), values)


def _without_connective(step: str) -> str:
    """Returns a step as the first one, without the word that connects it to a step that is not shown. It begins with a
    capital letter, unless it begins with code."""
    rest = _JOINED.sub("", step, count=1)
    return rest if _CODE_FIRST.match(rest) else rest[:1].upper() + rest[1:]


def _run(template: str, values: Mapping[str, str]) -> str | None:
    """Returns the command. pip and Python are those of the job's environment, if the frames show it."""
    command, environment = run_line(template, values), values.get("environment", "")
    if command is None or not environment.startswith("/") or not is_plain(environment):
        return command
    return _OF_ENVIRONMENT.sub(rf"\1\2{environment}/bin/\3", command)


def _applies(step: Step, values: Mapping[str, str]) -> bool:
    unless = any(_condition_holds(condition, values) for condition in step.unless)
    return not unless and all(_condition_holds(condition, values) for condition in step.when)


def _condition_holds(condition: Condition, values: Mapping[str, str]) -> bool:
    value = values.get(condition.fact)
    if condition.regex is None:
        return (value is not None) == condition.known
    if condition.fact == "log":
        return condition.kept_as in values
    return value is not None and shows(value, condition.regex)


def _fix_steps(
    entry: Entry, words: str, values: Mapping[str, str], versions: dict[str, str], lang: Language
) -> tuple[AnswerStep, ...]:
    """Returns the entry's fixes as steps. Fixes that match the failure's words come first. Fixes for other versions or
    other words are left out."""
    steps: list[AnswerStep] = []
    for fix in most_likely_first(entry.fixes, words):
        _, fits = version_shown(fix.applies, versions)
        if fits is False or (fix.shown_by is not None and not shows(words, fix.shown_by)):
            continue
        do = filled(fix.title.in_(lang), values)
        if do is not None:
            runs = (_run(command, values) for command in fix.commands)
            usable = (run for run in runs if run is not None and not is_open(run) and "\n" not in run)
            steps.append(AnswerStep(do, next(usable, None)))
    return tuple(steps[: MAX_STEPS - 1])
