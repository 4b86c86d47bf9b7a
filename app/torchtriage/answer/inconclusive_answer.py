"""Writes what is said about a run that shows neither a failure nor a successful end: what its log shows last, what is
missing, and where that usually is. The values of the sentences are stored, so that the answer can later be written in
another language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from signal import Signals

from torchtriage.answer.commands import run_line
from torchtriage.answer.referenced_log import referenced_log
from torchtriage.answer.templates import filled
from torchtriage.causality.ending import Ending
from torchtriage.domain.entry import Language
from torchtriage.domain.verdict import Answer, AnswerStep, Evidence, RunFacts
from torchtriage.lazy_regex import lazy_regex

MISSING = "missing"  # the value that selects the sentence
_Words = tuple[str, str]
_SAYS: dict[str, _Words] = {
    "exit-status": (
        "The log shows no failure[[; exit {exit_code} is {signal}]][[; the scheduler says {state}]]"
        "[[; it ended with exit code {plain_code}]].[[ The last step in it is {step}.]]",
        "日志中没有失败的迹象[[；退出码 {exit_code} 表示 {signal}]][[；调度器状态为 {state}]]"
        "[[；退出码为 {plain_code}]]。[[日志中最后一步是第 {step} 步。]]",
    ),
    "nobody-waits": (
        "These dumps, stacks or reports show no rank that is behind the others, and there is no log.",
        "从这些 dump、栈或报告看不出有 rank 落后于其他 rank，也没有日志。",
    ),
    "reports-alone": (
        "Only reports of tools were given, and no log. They contain no known fault.",
        "只提供了工具的报告，没有日志；报告中没有已知的故障。",
    ),
    "empty": ("The log is empty: the run wrote nothing to it.", "日志为空：运行没有向其中写入任何内容。"),
    "last-words": (
        "The last words point to a problem, and no good end follows: `{text}`[[ (line {line})]]."
        "[[ The last step is {step}.]]",
        "日志最后的输出提示有问题，之后没有正常结束的标志：`{text}`[[（第 {line} 行）]]。[[最后一步是第 {step} 步。]]",
    ),
    "question": (
        "This text is not the log of a run: it shows no step, failure or end.",
        "这段文本不是运行日志：没有训练步，没有失败，也没有结束标志。",
    ),
    "another-program": (
        "This looks like another program's log. It shows neither a failure of a training run nor its end.",
        "这像是其他程序的日志，既没有训练任务的失败，也没有训练结束的标志。",
    ),
    "stopped": (
        "The last step is {step}; {below} other lines follow, and none shows a good end. The last is `{text}`.",
        "最后一步是第 {step} 步，之后还有 {below} 行输出，但没有正常结束的标志；最后一行是 `{text}`。",
    ),
    "stands-still": (
        "The newest lines show a single step[[, {step}]], and no failure or end.[[ The last line is `{text}`.]]",
        "最近的输出只停留在一个训练步[[（第 {step} 步）]]，没有失败，也没有结束标志。[[最后一行是 `{text}`。]]",
    ),
    "began": (
        "The log shows the start of a run, but no step, failure or end. Its last line is `{text}`.",
        "日志只有运行的开头，没有训练步、失败或结束标志；最后一行是 `{text}`。",
    ),
    "no-run": (
        "The text shows no training step, no failure and no end of a run.[[ Its last line is `{text}`.]]",
        "文本中没有训练步、失败或结束标志。[[最后一行是 `{text}`。]]",
    ),
}
# The sentences that quote a line, for a place that shows the line next to them.
_SAYS_BESIDE: dict[str, _Words] = {
    "last-words": (
        "The last words point to a problem, and no good end follows.[[ The last step is {step}.]]",
        "日志最后的输出提示有问题，之后没有正常结束的标志。[[最后一步是第 {step} 步。]]",
    ),
    "stopped": (
        "The last step is {step}; {below} other lines follow, and none shows a good end.",
        "最后一步是第 {step} 步，之后还有 {below} 行输出，但没有正常结束的标志。",
    ),
    "stands-still": (
        "The newest lines show a single step[[, {step}]], and no failure or end.",
        "最近的输出只停留在一个训练步[[（第 {step} 步）]]，没有失败，也没有结束标志。",
    ),
    "began": (
        "The log shows the start of a run, but no step, failure or end.",
        "日志只有运行的开头，没有训练步、失败或结束标志。",
    ),
    "no-run": (
        "The text shows no training step, no failure and no end of a run.",
        "文本中没有训练步、失败或结束标志。",
    ),
}
# The title, if it says more than that the end is not known.
_TITLES: dict[str, _Words] = {
    "empty": ("The log is empty", "日志为空"),
    "reports-alone": ("No known fault in these reports", "报告中没有已知的故障"),
    "question": ("Not the log of a run", "不是运行日志"),
    "another-program": ("Another program's log", "其他程序的日志"),
}
# Used if a sentence above lacks a value.
_PLAIN: _Words = ("The log shows neither a failure nor a good end.", "日志中既没有失败，也没有正常结束的标志。")
_UNKNOWN: dict[str, _Words] = {
    "exit-status": ("This log does not show why it ended.", "这份日志没有说明它为什么结束。"),
    "nobody-waits": ("They do not show why the run stopped or ended.", "其中没有说明运行为什么停住或结束。"),
    "reports-alone": ("They do not show why the run failed.", "其中没有说明运行为什么失败。"),
    "empty": ("It does not show whether the run started.", "无法据此判断运行是否已经启动。"),
    "question": ("Nothing is known about the run without its log.", "没有运行日志，就无法了解运行的情况。"),
    "another-program": ("This log does not show how the training run went.", "这份日志没有说明训练任务的情况。"),
}
_HOW: _Words = (
    "This log does not show whether the run failed or ended well.",
    "这份日志没有说明运行是失败还是正常结束。",
)
_STREAM: _Words = (
    "Read the other stream of the same run; tracebacks usually go to standard error.",
    "查看同一次运行的另一个输出流：traceback 通常在标准错误里。",
)
_RANKS: _Words = (
    "Read the logs of the other ranks; the one that failed may not be this one.",
    "查看其他 rank 的日志：失败的可能不是这个 rank。",
)
_SCHEDULER: _Words = (
    "Check the scheduler and the host's kernel log for how the process ended.",
    "查看调度器和主机内核日志，确认进程如何结束。",
)
_KERNEL: _Words = ("Look for the OOM killer in the kernel log of its host.", "在其主机的内核日志中查找 OOM killer。")
_SENDER: _Words = (
    "Find out what sent the signal: a time limit, a preemption, a cancelled job or a drained node.",
    "查明信号由谁发出：时间限制、抢占、取消任务或节点下线。",
)
_CORE: _Words = ("Look for the core dump and its stack on the host.", "在主机上查找 core dump 及其调用栈。")
_WHOLE: _Words = (
    "Submit the run's complete output: standard output and standard error of all ranks.",
    "请提交完整的运行输出：所有 rank 的标准输出和标准错误。",
)
_NAMED_LOG: _Words = ("Read the log file that this line names, from its end.", "从末尾开始查看该行提到的日志文件。")
_SEARCH: _Words = ("Search the knowledge base for the symptom.", "在知识库中按症状搜索。")
_LATER: _Words = (
    "Check whether the run is still going; startup can be silent for minutes.",
    "先确认运行是否仍在继续：启动阶段可能几分钟没有输出。",
)
_SACCT = "sacct -j {job} --format=JobID,State,ExitCode,MaxRSS,Elapsed,NodeList"
_DMESG = "dmesg -T | grep -iE 'out of memory|oom-kill|killed process'"
_KILLED, _ASKED, _CRASHED = {"SIGKILL"}, {"SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"}, {"SIGSEGV", "SIGABRT"}
_MAX_LENGTH = 120  # characters of a quoted line
_SIGNALS = range(129, 129 + 64)
_ASKABLE = lazy_regex(r"[\w ,.?!:;()/+-]{3,200}")  # characters that a shell does not interpret between quotes


def values_of(ending: Ending, run: RunFacts, known: Mapping[str, str], shown: Callable[[str], str]) -> dict[str, str]:
    """Returns the values of the sentences, so that they can later be written in another language."""
    line = ending.line or ending.last
    values: dict[str, object] = {MISSING: ending.rule, "step": run.step, "below": ending.below, "state": ending.state,
                               "question": shown(ending.question) if ending.question else None,
                               "job": known.get("job")}  # fmt: skip
    if line is not None:
        raw = " ".join(shown(line.text).split())
        text = raw if len(raw) <= _MAX_LENGTH else f"{raw[: _MAX_LENGTH - 3]}..."
        values |= {"line": line.number, "text": text.replace("`", "'"), "raw": shown(line.raw)[:400], "file": line.file}
        values["named_log"] = referenced_log(raw)
    if (status := ending.status) is not None:
        signal = _signal(status)
        values |= {"exit_code": status, "signal": signal} if signal else {"plain_code": status}
    return {name: str(value) for name, value in values.items() if value is not None and value != ""}


def said(values: Mapping[str, str], lang: Language) -> Answer:
    """Returns the answer in one language."""
    chinese, missing = lang == "zh", values.get(MISSING, "")
    says = filled(_SAYS.get(missing, _PLAIN)[chinese], values) or _PLAIN[chinese]
    unknown = _UNKNOWN.get(missing, _HOW)[chinese]
    steps = tuple(AnswerStep(words[chinese], run) for words, run in _steps(missing, values))
    return Answer(None, says, steps, unknown, values=dict(values))


def says_beside(answer: Answer, lang: Language) -> str:
    """Returns what the answer says, without the line that it quotes, for a place that shows the line next to it."""
    words = _SAYS_BESIDE.get(answer.values.get(MISSING, "")) if last_line(answer) else None
    return (words and filled(words[lang == "zh"], answer.values)) or answer.says


def title_of(values: Mapping[str, str], lang: Language) -> str | None:
    """Returns the title of the answer, or None if only the general title applies: the log shows neither a failure nor a
    successful end."""
    words = _TITLES.get(values.get(MISSING, ""))
    return words[lang == "zh"] if words else None


def in_language(answer: Answer, lang: Language) -> Answer:
    """Returns a stored answer with today's sentences in this language, or the stored answer if its values are
    missing."""
    return replace(said(answer.values, lang), facts=answer.facts) if MISSING in answer.values else answer


def question_of(answer: Answer) -> str | None:
    """Returns the question that somebody sent instead of a log, for the symptom search."""
    return answer.values.get("question") if answer.values.get(MISSING) == "question" else None


def last_line(answer: Answer) -> Evidence | None:
    """Returns the log line that the answer quotes."""
    values = answer.values
    if "line" not in values or values.get(MISSING) == "question":
        return None
    return Evidence(int(values["line"]), values.get("raw", values.get("text", "")), values.get("file"))


def _steps(missing: str, values: Mapping[str, str]) -> list[tuple[_Words, str | None]]:
    """Returns at most three steps, the most likely place first."""
    job = run_line(_SACCT, values) if "job" in values else None
    if missing == "question":
        asked = values.get("question", "")
        search = f"torchtriage kb search '{asked}'" if _ASKABLE.fullmatch(asked) else None
        return [(_SEARCH, search), (_WHOLE, None)] if " " in asked.strip() or not asked.isascii() else [(_WHOLE, None)]
    if missing == "empty":
        return [(_STREAM, None), (_SCHEDULER, job), (_WHOLE, None)]
    if missing in ("another-program", "no-run", "reports-alone"):
        return [(_WHOLE, None)]
    if missing != "exit-status":
        first: list[tuple[_Words, str | None]] = []
        if missing in ("began", "stands-still"):
            first = [(_LATER, None)]
        elif "named_log" in values and missing == "last-words":
            first = [(_NAMED_LOG, run_line("tail -n 50 {named_log}", values))]
        return [*first, (_STREAM, None), (_RANKS, None), (_SCHEDULER, job)][:3]
    signal = values.get("signal", "")
    if signal in _KILLED:
        return [(_KERNEL, _DMESG), (_SCHEDULER, job), (_RANKS, None)]
    if signal in _ASKED:
        return [(_SENDER, job), (_RANKS, None)]
    return [*([(_CORE, "coredumpctl list python")] if signal in _CRASHED else []), (_STREAM, None), (_RANKS, None),
            *([] if signal in _CRASHED else [(_SCHEDULER, job)])]  # fmt: skip


def _signal(status: int) -> str | None:
    """Returns the name of the signal that an exit status reports."""
    number = -status if status < 0 else status - 128 if status in _SIGNALS else 0
    try:
        return Signals(number).name if number else None
    except ValueError:
        return None
