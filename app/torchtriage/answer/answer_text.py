"""The text of an answer: the sentences and steps of the selected case; without one, what is certain."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchtriage.answer.commands import WHOLE, is_plain, run_line
from torchtriage.answer.likeliest_cause import likeliest, shows
from torchtriage.answer.templates import filled, is_open, short, slots
from torchtriage.answer.version_ranges import shown as version_shown
from torchtriage.domain.entry import Case, Condition, Entry, Language, Role, Step
from torchtriage.domain.fact import Fact
from torchtriage.domain.verdict import Answer, AnswerStep, RootCause
from torchtriage.lazy_regex import lazy_regex

MOST_STEPS = 3
_RAISED = (
    "Raised at {where}[[ in DataLoader worker {worker}]][[: `{code}`]].",
    "出错位置：{where}[[（DataLoader worker {worker}）]][[，代码 `{code}`]]。",
)
_CALLED = (
    "Raised at {where}, called from {caller}: `{caller_code}`.",
    "出错位置：{where}，由 {caller} 的 `{caller_code}` 调用。",
)
_MET = ("Met at {where}[[: `{code}`]].", "发生在 {where}[[，代码 `{code}`]]。")
_BELOW = (
    "Raised in {library_frame}[[ ({library_function})]][[ in DataLoader worker {worker}]][[: `{library_code}`]], called"
    " from {where}[[: `{code}`]].",
    "出错位置：{library_frame}[[（{library_function}）]][[（DataLoader worker {worker}）]][[，代码 `{library_code}`]]，"
    "由 {where} 调用[[，代码 `{code}`]]。",
)
_FROM = ("Called from {where}[[: `{code}`]].", "由 {where} 调用[[，代码 `{code}`]]。")
_CODE = ("The line: `{code}`.", "该行代码：`{code}`。")
_FAILED = ("{exception}[[: {message}]].", "{exception}[[：{message}]]。")
# Of a traceback whose last lines the log does not hold: what is said, where it breaks off, what would show more.
_CUT = (
    "The log ends inside this traceback, before the line that names the exception.",
    "日志在这段 traceback 中间结束，没有写出异常的那一行。",
)
_LAST_SHOWN = (
    (
        "The last frame shown is {library_frame}[[ ({library_function})]][[: `{library_code}`]], called from {where}[[:"
        " `{code}`]].",
        "显示到的最后一帧是 {library_frame}[[（{library_function}）]][[，代码 `{library_code}`]]，由 {where} 调用"
        "[[，代码 `{code}`]]。",
    ),
    (
        "The last frame shown is {library_frame}[[ ({library_function})]][[: `{library_code}`]].",
        "显示到的最后一帧是 {library_frame}[[（{library_function}）]][[，代码 `{library_code}`]]。",
    ),
    ("The last frame shown is {where}[[: `{code}`]].", "显示到的最后一帧是 {where}[[，代码 `{code}`]]。"),
)
_CUT_UNKNOWN = ("Which exception it was this log does not show.", "是什么异常，日志没有显示。")
_CUT_STEP = (
    "Read or submit the output below line {last_line}: its next lines name the exception.",
    "查看或提交第 {last_line} 行之后的输出：异常就在接下来的几行。",
)
_NO_EXCEPTION = frozenset({"", "exception"})  # the type of what such a traceback raised
_ADVISED = ("Do as the message says: {advice}", "按消息所说处理：{advice}", "{advice_command}")
_INSIDE = (
    "Raised inside {library_frame}[[ ({library_function})]][[: `{library_code}`]].",
    "在 {library_frame}[[（{library_function}）]] 内部抛出[[，代码 `{library_code}`]]。",
)
# What the interpreter raises by itself, so that the line there says more than the call.
_OF_INTERPRETER = (LookupError, AttributeError, NameError, ArithmeticError, TypeError)
# A line that only raises, or hands on to compiled code, says nothing of its own.
_HANDS_ON = lazy_regex(r"^(?:raise|assert)\b|^return [\w.]+\([^\[]*\)$|\btorch\._C\b|\($")
_BY = (
    "Raised by {raised_by}[[, called from {where}]][[: `{code}`]].",
    "由 {raised_by} 抛出[[，调用处 {where}]][[，代码 `{code}`]]。",
)
_VALUES = ("In the message, {message_values}.", "消息中 {message_values}。")
_REPORTED = ("The script then raised `{reported_as}`.", "脚本随后抛出 `{reported_as}`。")
_PRINTED = (
    "The log printed {printed_name} = {printed_value} (line {printed_line})[[ and {other_printed_name} ="
    " {other_printed_value} (line {other_printed_line})]].",
    "日志此前打印 {printed_name} = {printed_value}（第 {printed_line} 行）[[，{other_printed_name} ="
    " {other_printed_value}（第 {other_printed_line} 行）]]。",
)
_FORWARD = (
    "The forward call was at {forward_where}[[: `{forward_code}`]].",
    "对应的前向调用在 {forward_where}[[，代码 `{forward_code}`]]。",
)
_SHAPES = (
    "The log printed {printed_shapes} (line {printed_shapes_line}).",
    "日志此前打印 {printed_shapes}（第 {printed_shapes_line} 行）。",
)
_MESSAGES_BY_RANK = ("By rank: {by_rank}.", "各 rank 的值：{by_rank}。")
_PRINTED_BY_RANK = (
    "Printed before[[, {printed_by_rank_words}]]: {printed_by_rank} (line {printed_by_rank_line}).",
    "此前打印[[（{printed_by_rank_words}）]]：{printed_by_rank}（第 {printed_by_rank_line} 行）。",
)
_PASSED = (
    "`{passed_name}` came in from {caller}: `{caller_code}`.",
    "`{passed_name}` 由 {caller} 传入：`{caller_code}`。",
)
_STEPS_BY_RANK = ("Last steps: {steps_by_rank}.", "最后的步数：{steps_by_rank}。")
# What is said behind a sentence that names none of the slots, the slot that it needs first.
_BESIDE = (
    ("forward_where", _FORWARD),
    ("by_rank", _MESSAGES_BY_RANK),
    ("printed_by_rank", _PRINTED_BY_RANK),
    ("steps_by_rank", _STEPS_BY_RANK),
    ("printed_shapes", _SHAPES),
    ("printed_value", _PRINTED),
    ("passed_name", _PASSED),
)
_MOST_BESIDE = 2
_FEW_ABOVE = 3  # lines: with no more above a failure, what led to it was not submitted
_AT_STEP = (
    "The run was at step {step}[[ of {total_steps}]][[, after {run_time}]].",
    "当时进行到第 {step} 步[[（共 {total_steps} 步）]][[，已运行 {run_time}]]。",
)
_AT_LOOP = (
    "{progress_of} was at {progress}[[ after {loop_elapsed}]].",
    "{progress_of} 进行到 {progress}[[，已用 {loop_elapsed}]]。",
)
_AFTER_TRAINING = (
    "Training itself had ended before[[, at step {step}]][[; its newest checkpoint is {checkpoint}]].",
    "此前训练本身已经结束[[（第 {step} 步）]][[，最近的 checkpoint 是 {checkpoint}]]。",
)
_IN_EVALUATION = (
    "It failed in evaluation, after step {step}[[ of {total_steps}]][[, {run_time} into the run]].",
    "失败发生在评估阶段，此前训练到第 {step} 步[[（共 {total_steps} 步）]][[，已运行 {run_time}]]。",
)
_EVALUATION_OF_EPOCH = (
    "It failed in evaluation, at epoch {epoch}[[ of {total_epochs}]].",
    "失败发生在评估阶段，第 {epoch} 个 epoch[[（共 {total_epochs} 个）]]。",
)
_IN_EPOCH = (
    "The run was at epoch {epoch}[[ of {total_epochs}]].",
    "当时进行到第 {epoch} 个 epoch[[（共 {total_epochs} 个）]]。",
)
_AT_EPOCH = ("The run was at {progress} of epoch {epoch}.", "当时进行到第 {epoch} 个 epoch 的 {progress}。")
_UNKNOWN = (
    "No entry knows this message, and this log does not show what led to it.",
    "知识库中没有这条报错，日志也没有显示起因。",
)
_UNKNOWN_OF_CHECK = (
    "Which of the values that were passed breaks this rule the log does not show.",
    "是传入的哪个值违反了这条规则，日志没有显示。",
)
# The one step where no entry knows the failure: what has to be known, the words, the code; the first that fits.
_TO_SHOW_IT = (
    ("advice", *_ADVISED),
    (
        "raise_code",
        "Read the condition above {where}; the call was `{caller_code}` at {caller}.",
        "查看 {where} 上方的条件；调用为 {caller} 处的 `{caller_code}`。",
        None,
    ),
    (
        "raised_by",
        "Print what `{code}` passes just above {where}, and compare it with what the message asks for.",
        "在 {where} 上方打印 `{code}` 传入的值，与报错的要求对照。",
        "print({code_names}, flush=True)",
    ),
    (
        "code_names",
        "Print what the line uses just above {where}, and run until it fails again.",
        "在 {where} 上方打印该行用到的值，再运行到出错为止。",
        "print({code_names}, flush=True)",
    ),
    (
        "library_package",
        "See which {library_package} is installed, and search its issues for the message and `{library_function}`.",
        "查看安装的 {library_package} 版本，并在其 issue 中搜索该消息和 `{library_function}`。",
        "pip show {library_package}",
    ),
    (
        "where",
        "Start at {where}: print the values that the line uses, with rank and step.",
        "从 {where} 开始：打印该行用到的值以及 rank 和 step。",
        None,
    ),
    (
        "library",
        "Find your own call that led to {library_frame}, and search {library}'s issues for the message.",
        "找到自己的代码中走到 {library_frame} 的调用，并在 {library} 的 issue 中搜索该消息。",
        None,
    ),
    (
        "first_line",
        "Read or submit the output above line {first_line}; what led to the failure is not among these lines.",
        "查看或提交第 {first_line} 行之前的输出：这几行没有显示起因。",
        None,
    ),
    (
        "log",
        "Read the lines above line {line} of {log}: what the program did last.",
        "查看 {log} 第 {line} 行上方：程序最后在做什么。",
        None,
    ),
    (
        "line",
        "Read the lines above line {line} of the log: what the program did last.",
        "查看日志第 {line} 行上方：程序最后在做什么。",
        None,
    ),
)
# How far a failure reaches: what all ranks show is no fault of one host, GPU or part of the data.
_ALIKE = ("Ranks {ranks} failed in the same way.", "rank {ranks} 的失败相同。")
_ALL_ALIKE = ("All {rank_count} failed in the same way.", "全部 rank 以同样的方式失败。")
_RANKS = frozenset({"ranks", "rank_count", "same_second", "failed_ranks", "by_rank"})  # slots that say the same
_JOINED = lazy_regex(r"^(?:(?:Or|Then|Otherwise|Also),? |(?:或者|或|然后|同时|否则)[，,]?)")
_OF_ENVIRONMENT = lazy_regex(r"((?:[A-Z][A-Z_]*=[\w.]* )*)((?:pip|python)3? [\s\S]*)")
_PLACES = frozenset({"where", "file", "line_number", "library_frame"})  # slots that say where it was raised
_OF_NO_PROGRAM = frozenset({"platform", "hardware"})  # owners of failures that any line of a program can meet
_OF_OTHERS = frozenset({Role.PEER_LOSS, Role.TIMEOUT, Role.TEARDOWN})  # what a rank only reports
_TWO = "2 ranks"  # of which nobody says "all"
_ENDING = "teardown"  # the phase in which training has ended and nothing else was begun
_EVALUATION = "evaluate"  # a phase
_BEFORE_STEPS = frozenset({"launch", "rendezvous", "init"})  # phases in which a step is an earlier run's
_DIGITS_OF_TRAINING = 3  # of a number of steps; a bar of two steps that is full is none of a training
_STEPS = frozenset({"step", "progress", "total_steps", "checkpoint_step"})  # and when


def said(
    answer: Answer,
    root: RootCause,
    entry: Entry | None,
    versions: dict[str, str],
    lang: Language,
    form: Case | None = None,
) -> Answer:
    """-> the answer in one language, as today's knowledge says it; as it was stored where the entry, its case or the
    form is gone. `versions`: what the log says about them, by package. `form`: the message form that the answer
    names."""
    values = answer.values
    case = next((case for case in entry.cases if case.id == answer.case), None) if entry else None
    if (answer.case is not None and case is None) or (answer.form is not None and form is None):
        return answer
    case = form or case
    if case is not None and (own := filled(case.says.in_(lang), values)):
        own_fault = entry is None or _is_own_fault(entry)
        raised = _RAISED if own_fault else _MET
        named = slots(case.says.en if form else _templates(case))  # a form's steps name the place without telling it
        says = _with_place_and_step(own, named, values, lang, raised, inside=own_fault, known=form is None)
        failed = own_fault and (entry is None or Role.CANCELLED not in entry.roles)
        if failed and not slots(_templates(case)) & values.keys() & _RANKS:
            says = _joined((says, _alike(values, lang)), lang)
        unknown = filled(case.unknown.in_(lang), values) if case.unknown else None
        steps = _steps(case.steps, values, {**values, **_texts(root)}, lang)
    else:
        says, unknown, steps = _general(root, entry, values, lang)
    if not steps and entry is not None:
        steps = (*_advised(values, lang), *_of_fixes(entry, root.words, values, versions, lang))
    return replace(answer, says=says, unknown=unknown, steps=steps)


def _is_own_fault(entry: Entry) -> bool:
    """-> whether the program itself failed: not its platform, and no rank that only waited for another one."""
    return entry.owner not in _OF_NO_PROGRAM and not entry.roles & _OF_OTHERS


def said_shortly(case_id: str | None, values: Mapping[str, str], entry: Entry | None, lang: Language) -> str | None:
    """-> the first sentence of an answer: that of its case, or the exception where no case speaks; None where neither
    tells more than the entry's title."""
    case = next((case for case in entry.cases if case.id == case_id), None) if entry else None
    if case is not None:
        return filled(case.says.in_(lang), values)
    return filled(_FAILED[lang == "zh"], values)


def facts_said(
    answer: Answer, entry: Entry | None, facts: tuple[Fact, ...], form: Case | None = None
) -> tuple[Fact, ...]:
    """-> the facts that the sentences of an answer's case, or of its message form, are filled with."""
    case = form or (next((case for case in entry.cases if case.id == answer.case), None) if entry else None)
    named = slots(_templates(case)) if case else frozenset({"exception", "message"})
    return tuple(fact for fact in facts if fact.name in named | {"where", "code"})


def _templates(case: Case) -> str:
    steps = (f"{step.do.en} {step.run or ''}" for step in case.steps)
    return " ".join((case.says.en, case.unknown.en if case.unknown else "", *steps))


def _with_place_and_step(
    says: str,
    named: frozenset[str],
    values: Mapping[str, str],
    lang: Language,
    raised: tuple[str, str] = _RAISED,
    inside: bool = True,
    known: bool = True,
) -> str:
    """-> the sentence, and where and at which step it happened, unless it names the slots for that itself. `known`:
    a case tells what went wrong."""
    parts, named = [_ended(says, lang)], named & values.keys()  # a slot that stayed empty says nothing
    if by := filled(_BY[lang == "zh"], values):
        parts += [by, filled(_VALUES[lang == "zh"], values) or ""]
    elif not named & _PLACES and not _is_placed(says, values):
        place = _place(values, lang, raised, known)
        parts.append(place or (inside and filled(_INSIDE[lang == "zh"], values)) or "")
    elif "library_frame" in named and "where" not in named:
        parts.append(filled(_FROM[lang == "zh"], values) or "")
    elif short(values.get("code", "")) not in says:
        parts.append(filled(_CODE[lang == "zh"], values) or "")
    if "reported_as" not in named:
        parts.append(filled(_REPORTED[lang == "zh"], values) or "")
    evaluates = values.get("phase") == _EVALUATION
    if "training_ended" in values and values.get("phase") == _ENDING:
        parts.append(filled(_AFTER_TRAINING[lang == "zh"], values) or "")
    elif not named & _STEPS and _is_at_step(values):
        at = filled((_IN_EVALUATION if evaluates else _AT_STEP)[lang == "zh"], values)
        parts.append(at or filled(_AT_EPOCH[lang == "zh"], values) or "")
    elif not named & _STEPS and "step" not in values and values.get("phase") not in _BEFORE_STEPS:
        parts.append(filled((_EVALUATION_OF_EPOCH if evaluates else _IN_EPOCH)[lang == "zh"], values) or "")
    if not named & (_STEPS | {"progress_of"}) and "step" not in values and _is_in_loop(values):
        parts.append(filled(_AT_LOOP[lang == "zh"], values) or "")
    parts += _beside(" ".join(parts), named, values, lang)
    return _joined(parts, lang)


def _joined(sentences: Iterable[str | None], lang: Language) -> str:
    return ("" if lang == "zh" else " ").join(filter(None, sentences))


def _alike(values: Mapping[str, str], lang: Language) -> str | None:
    """-> which ranks failed in the same way, where several did."""
    every = values.get("world_size") == values.get("rank_count") != _TWO
    return filled((_ALL_ALIKE if every else _ALIKE)[lang == "zh"], values) if "ranks" in values else None


def _beside(says: str, named: frozenset[str], values: Mapping[str, str], lang: Language) -> list[str]:
    """-> what the log printed of the same thing before, and other ranks of theirs, unless that was said."""
    told: list[str] = []
    for slot, template in _BESIDE:
        known = slot in named or (slot == "printed_shapes" and "printed_by_rank" in values)
        if slot == "printed_value":
            known = known or (values.get(slot, "") in says and values.get("printed_name", "") in says)
        if not known and (sentence := filled(template[lang == "zh"], values)):
            told.append(sentence)
    return told[:_MOST_BESIDE]


def _is_at_step(values: Mapping[str, str]) -> bool:
    """-> whether the run was at a step of its training, and not at its start or in a short loop that was done."""
    step, total = values.get("step", "0"), values.get("total_steps", "0")
    done = step == total and len(total) < _DIGITS_OF_TRAINING
    return not done and values.get("phase") not in _BEFORE_STEPS


def _is_in_loop(values: Mapping[str, str]) -> bool:
    """-> whether a loop with a name, as of preparing data, had begun and was not done."""
    done, _, total = values.get("progress", "").partition("/")
    return "progress_of" in values and done.strip("0") != "" and done != total


def _is_placed(says: str, values: Mapping[str, str]) -> bool:
    """-> whether a sentence names the user's line by itself, as where a compiler quotes it."""
    _, found, behind = says.partition(values.get("where", "\n"))
    return bool(found) and not behind[:1].isdigit()


def _place(
    values: Mapping[str, str], lang: Language, raised: tuple[str, str] = _RAISED, known: bool = True
) -> str | None:
    """-> where it was raised, and the code there; the caller's where that only raises. The library's line is told where
    the interpreter stopped at it, and where no case tells what went wrong."""
    if raised is _RAISED and "library" in values:
        telling = not _HANDS_ON.search(values.get("library_code", "")) and (not known or _is_of_interpreter(values))
        told = values if telling else {k: v for k, v in values.items() if k != "library_code"}
        if below := filled(_BELOW[lang == "zh"], told):
            return below
    template = raised if "code" in values else _CALLED
    return filled(template[lang == "zh"], values) or filled(raised[lang == "zh"], values)


def _is_of_interpreter(values: Mapping[str, str]) -> bool:
    """-> whether the interpreter itself raises such an exception, as of a missing key."""
    kind = getattr(builtins, values.get("exception", ""), None)
    return isinstance(kind, type) and issubclass(kind, _OF_INTERPRETER)


def _ended(says: str, lang: Language) -> str:
    """-> a sentence with its full stop, which a log's own words may lack."""
    return says if says.endswith((".", "!", "?", "。", "！", "？")) else f"{says}{'。' if lang == 'zh' else '.'}"


def _general(
    root: RootCause, entry: Entry | None, values: Mapping[str, str], lang: Language
) -> tuple[str, str | None, tuple[AnswerStep, ...]]:
    """-> what is said where no case holds: what was raised, where, and what the entry knows for certain."""
    chinese = lang == "zh"
    if entry is None and root.exception is not None and root.exception.type in _NO_EXCEPTION:
        return _cut(root, values, lang)
    parts: list[str] = []
    if entry is not None:
        told = values.get("message") or (root.evidence[0].text if root.evidence else "")
        title = f"{root.title.rstrip('。.')}{'：' if chinese else ': '}{short(told)}" if told else root.title
        parts.append(_ended(title, lang))
        meant = (cause for cause in entry.causes if cause.shown_by and shows(root.words, cause.shown_by))
        cause = next(meant, entry.causes[0] if len(entry.causes) == 1 else None)
        parts += [cause.in_(lang)] if cause else []
    elif failed := filled(_FAILED[chinese], values):
        parts.append(failed)
    place = (
        None
        if "raised_by" in values
        else _place(values, lang, known=entry is not None) or filled(_INSIDE[chinese], values)
    )
    if entry is None and not parts and root.evidence:
        parts.append(short(root.evidence[0].text))
    says = _joined((*parts, place, _alike(values, lang) if entry is None or _is_own_fault(entry) else None), lang)
    says = _with_place_and_step(says, _PLACES, values, lang)
    if entry is not None:
        return says, None, ()
    unknown = _UNKNOWN_OF_CHECK if "own_check" in values else _UNKNOWN
    return says, unknown[chinese], _to_show_it(root, values, chinese)


def _cut(root: RootCause, values: Mapping[str, str], lang: Language) -> tuple[str, str | None, tuple[AnswerStep, ...]]:
    """-> what is said of a traceback that the log breaks off: no exception, but how far its frames go."""
    chinese = lang == "zh"
    shown = (filled(templates[chinese], values) for templates in _LAST_SHOWN)
    says = _with_place_and_step(
        _joined((_CUT[chinese], next(filter(None, shown), None), _alike(values, lang)), lang), _PLACES, values, lang
    )
    last = {"last_line": str(root.evidence[-1].line)} if root.evidence else {}
    do = filled(_CUT_STEP[chinese], last)
    return says, _CUT_UNKNOWN[chinese], (AnswerStep(do, None),) if do else ()


def _advised(values: Mapping[str, str], lang: Language) -> tuple[AnswerStep, ...]:
    """-> what the message itself says to do, as a step."""
    en, zh, run = _ADVISED
    do = filled(zh if lang == "zh" else en, values)
    return (AnswerStep(do, run_line(run, values)),) if do else ()


def _to_show_it(root: RootCause, values: Mapping[str, str], chinese: bool) -> tuple[AnswerStep, ...]:
    first = root.evidence[0] if root.evidence else None
    at: dict[str, str] = {}
    if first is not None:
        at = {"line": str(first.line), **({"log": first.file} if first.file else {})}
        at |= {"first_line": at["line"]} if first.line <= _FEW_ABOVE and first.file is None else {}
    known = {**values, **at}
    told = ((filled(zh if chinese else en, known), run) for needs, en, zh, run in _TO_SHOW_IT if needs in known)
    do, run = next(((do, run) for do, run in told if do), (None, None))
    return (
        (AnswerStep(do, run_line(run, known) if run in WHOLE else filled(run, known) if run else None),) if do else ()
    )


def _texts(root: RootCause) -> dict[str, str]:
    """-> the texts that a step's condition may ask of, as far as the verdict keeps them: `words` and `frames`."""
    frames = root.exception.frames if root.exception else ()
    shown = (f'File "{frame.file}", in {frame.function}\n  {frame.code}' for frame in frames)
    return {"words": root.words, "frames": "\n".join(shown)}


def _steps(
    steps: tuple[Step, ...], values: Mapping[str, str], asked: Mapping[str, str], lang: Language
) -> tuple[AnswerStep, ...]:
    told: list[AnswerStep] = []
    for step in steps:
        do = filled(step.do.in_(lang), values)
        if do is not None and all(_meets(condition, asked) for condition in step.when):
            begun = do if told else _begun(do)
            told.append(AnswerStep(begun, _run(step.run, values) if step.run else None))
    return tuple(told[:MOST_STEPS])


def _begun(step: str) -> str:
    """-> a step as the first one: without the word that joins it to one that is not shown."""
    rest = _JOINED.sub("", step, count=1)
    return rest[:1].upper() + rest[1:]


def _run(template: str, values: Mapping[str, str]) -> str | None:
    """-> the command; pip and Python are those of the environment that the job ran in, where its frames tell that."""
    command, environment = run_line(template, values), values.get("environment", "")
    own = _OF_ENVIRONMENT.match(command) if command is not None else None
    if own is None or not environment.startswith("/") or not is_plain(environment):
        return command
    return f"{own[1]}{environment}/bin/{own[2]}"


def _meets(condition: Condition, values: Mapping[str, str]) -> bool:
    value = values.get(condition.fact)
    if condition.regex is None:
        return (value is not None) == condition.known
    if condition.fact == "log":
        return condition.kept_as in values
    return value is not None and shows(value, condition.regex)


def _of_fixes(
    entry: Entry, words: str, values: Mapping[str, str], versions: dict[str, str], lang: Language
) -> tuple[AnswerStep, ...]:
    """-> the entry's fixes as steps, those first that the failure's words mean; none for another version than the log
    shows, or for other words."""
    told: list[AnswerStep] = []
    for fix in likeliest(entry.fixes, words):
        _, fits = version_shown(fix.applies, versions)
        if fits is False or (fix.shown_by is not None and not shows(words, fix.shown_by)):
            continue
        do = filled(fix.title.in_(lang), values)
        if do is not None:
            runs = (_run(command, values) for command in fix.commands)
            usable = (run for run in runs if run is not None and not is_open(run) and "\n" not in run)
            told.append(AnswerStep(do, next(usable, None)))
    return tuple(told[: MOST_STEPS - 1])
