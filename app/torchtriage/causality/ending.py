"""Decides how a run without failures ended: it ended well, it continues, or something is missing.

A log without a failure does not prove that the run was healthy. The log may be cut off, empty, or from another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from torchtriage.causality.thresholds import FEW_WORDS, LAST_WORDS, LINES_BELOW_SERVER, ROWS_FROM_END, TWO_STEPS
from torchtriage.domain.event import EventSource
from torchtriage.domain.line import START, Line, Position
from torchtriage.facts.ending_regexes import EndingRegexes
from torchtriage.facts.log_classifier import is_written_by_person
from torchtriage.facts.progress import bar, moves
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.masking import mask_all
from torchtriage.reading.file_types import FileForm
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

_HAS_WORD = lazy_regex(r"[^\W_]").search  # a letter or a digit, in any language
_MAX_LENGTH = 400  # characters; the rest of a line is not looked at
_NUMBER = lazy_regex(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
# `val loss: 1.23`, `acc = 0.5`, `top1 0.71`, `| mAP | 0.31 |`, `3.2 it/s`
_MEASURED = lazy_regex(
    r"[A-Za-z_@)'\"][\w@.%]{0,20}['\")\]]{0,2}(?:\s{0,24}[:=|]\s{0,8}|\s)[+-]?\d{1,9}\.\d|\d(?: ?%\W|it/s|s/it)"
)
_TRACEBACK = "Traceback (most recent call last):"
_DIGITS = 9  # digits; a number with at least so many is a time in seconds since 1970
_SIGNALS = 128  # a shell reports a process ended by a signal with this number plus the signal's number
_OF_THE_JOB = (FileForm.SLURM_JOB, FileForm.KUBERNETES)  # forms of reports that say how the job ended
JOB_STATUS, JOB_STATE = "exit_code", "state"  # what the sender of a log knows about its job


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. `good` is True if it ended well or continues. `rule` names the rule that decided. `line` is the
    line that shows it, and `last` is the last line of the log that has words; `below` counts the lines with words below
    the last step. `status` (an exit status) and `state` (the scheduler's word) are set if they contradict a good
    end."""

    rule: str
    good: bool
    line: Line | None = None
    last: Line | None = None
    below: int = 0
    status: int | None = None
    state: str | None = None
    question: str | None = None  # the question that somebody sent instead of a log


@dataclass(frozen=True)
class Tail:
    """The last lines of a run's files, and what the sender knows about the job."""

    reading: Reading
    job: Mapping[str, str] = field(default_factory=dict)
    survived: tuple[Finding, ...] = ()

    @cached_property
    def ends(self) -> tuple[tuple[Line, ...], ...]:
        """The last lines with words of each file."""
        return tuple(
            lines for end in self.reading.file_ends if (lines := tuple(line for line, _ in end if _HAS_WORD(line.text)))
        )

    @cached_property
    def last(self) -> Line | None:
        return max((end[-1] for end in self.ends), key=lambda line: line.position, default=None)

    @cached_property
    def closing(self) -> Line | None:
        """The last line that says that the run ended well, if no step follows it."""
        facts, regexes = self.reading.facts, self.reading.matcher.ending_regexes
        for end in reversed(self.ends):
            since = self.progress_of(end)
            for line in reversed(end):
                if line.position < since:
                    break
                if line.position in self._well or regexes.closing.search(line.text[:_MAX_LENGTH]):
                    return line
        if facts.good_ends and (not facts.progress or facts.good_ends[-1] >= facts.progress[-1]):
            trained = len(facts.progress) >= TWO_STEPS
            return self.ends[-1][-1] if trained and self.ends else None
        return None

    @cached_property
    def _well(self) -> frozenset[Position]:
        return frozenset((*self.reading.facts.good_ends, *self.reading.facts.shutdowns))

    def progress_of(self, end: tuple[Line, ...]) -> Position:
        """Returns the position of the last step in a file. If the file has no step, this is the position above its
        first line."""
        last = end[-1].position
        steps = (place for place in reversed(self.reading.facts.progress) if place <= last)
        found = next(steps, START)
        return found if found.file == last.file else START

    @cached_property
    def contradiction(self) -> Line | None:
        """The first of the last lines that contradicts a good end and is below everything in its file that supports
        one. For a traceback that ended nothing, such as that of an ignored exception, this is its last line."""
        regexes = self.reading.matcher.ending_regexes
        over = [finding.last for finding in self.survived if finding.event.source is EventSource.TRACEBACK]
        for end in self.ends:
            got_over = max((place for place in over if place.file == end[-1].position.file), default=START)
            since = max(self._last_good_line(end), got_over)
            last = end[-LAST_WORDS:]
            for at, line in enumerate(last):
                quoted = line.position in self.reading.quoting
                if line.position > since and not quoted and _is_alarming(line, regexes):
                    return _raised_below(last[at:]) if line.text.startswith(_TRACEBACK) else line
        return None

    @cached_property
    def status(self) -> tuple[Line | None, int | None, str | None]:
        """How the job failed: the line that says so, the exit status if it is not 0, and the scheduler's state. The
        sender's word comes first and has no line. Lines of the log count only if they are below everything that
        supports a good end."""
        code, state = self.job.get(JOB_STATUS, ""), self.job.get(JOB_STATE, "")
        number = int(code) if code.lstrip("-").isdecimal() else 0
        failed = state.upper().replace("-", "_") in self.reading.matcher.ending_regexes.failed_states
        if number or failed:
            return None, number or None, state if failed else None
        return next(self._statuses(), (None, None, None))

    def _statuses(self) -> Iterator[tuple[Line, int | None, str | None]]:
        """Yields each status that the last lines report, the last line of each file first."""
        for end in self.ends:
            since = self._last_good_line(end)
            for line in reversed(end):
                if line.position <= since:
                    break
                for name, pattern in self.reading.matcher.ending_regexes.statuses:
                    found = pattern.search(line.text[:_MAX_LENGTH])
                    if found and name == "state":
                        yield line, None, found[1]
                    elif found and int(found[1]):
                        yield line, int(found[1]) + (_SIGNALS if name == "signal" else 0), None

    def _last_good_line(self, end: tuple[Line, ...]) -> Position:
        """Returns the position of the last line of a file that shows a step or says that the run ended well."""
        good = (line.position for line in end if line.position in self._well)
        return max(self.progress_of(end), max(good, default=START))

    @property
    def succeeded(self) -> bool:
        """Whether the sender says that the job exited with status 0."""
        return self.job.get(JOB_STATUS) == "0"

    @cached_property
    def moves(self) -> bool:
        """Whether the newest progress lines show more than one step. A progress bar that is redrawn at the same step
        does not count."""
        facts = self.reading.facts
        return len(facts.progress) >= TWO_STEPS and moves(line.text for line in facts.progress_lines)

    @cached_property
    def continues(self) -> bool:
        """Whether steps continue to the end of a file."""
        ends = [end for end in self.ends if self.ends_at_work(end)]
        if self.moves and any(self.progress_of(end) >= end[0].position for end in ends):
            return True
        others = (end for end in ends if self.progress_of(end) < end[-ROWS_FROM_END:][0].position)
        return self.reading.facts.surely_training and any(map(_counts_up, others))

    def ends_at_work(self, end: tuple[Line, ...]) -> bool:
        """Returns whether the last line of a file shows a run at work: a step, a measured value, a line of the same
        form as one above a step, or a line that is harmless by its level or words. Any other line may be a program's
        last words."""
        last, regexes, since = end[-1], self.reading.matcher.ending_regexes, self.progress_of(end)
        if last.position <= since:
            return True
        text, raw = last.text[:_MAX_LENGTH], last.raw[:_MAX_LENGTH]
        if (
            _MEASURED.search(text)
            or regexes.calm.search(raw)
            or regexes.working.search(text)
            or regexes.closing.search(text)
        ):
            return True
        form = mask_all(text)
        above = (line.text[:_MAX_LENGTH] for line in end[:-1] if line.position < since or since < end[0].position)
        return any(mask_all(one) == form for one in above)

    @cached_property
    def below(self) -> int:
        """How many kept lines are below the last step of the file that ends last."""
        if not self.ends:
            return 0
        since = self.progress_of(self.ends[-1])
        return sum(line.position > since for line in self.ends[-1])

    @cached_property
    def question(self) -> str | None:
        """The question that a person sent instead of a log, or None."""
        paste = self.reading.paste
        texts = [line.text.strip() for line in paste or () if _HAS_WORD(line.text)]
        facts = self.reading.facts
        if not texts or len(texts) > FEW_WORDS or facts.progress or facts.launcher or self.reading.findings:
            return None
        asks = is_written_by_person(paste or (), facts.regexes)
        plain = all(line.raw.strip() == line.text.strip() and line.time is None for line in paste or ())
        return " ".join(texts)[:200] if asks or (plain and len(texts) == 1) else None


def _raised_below(lines: Sequence[Line]) -> Line:
    """Returns the line with the exception. `lines` begin with the head of a traceback."""
    return next((line for line in lines[1:] if line.text[:1].strip()), lines[0])


def _counts_up(end: Sequence[Line]) -> bool:
    """Returns whether a file ends in rows of the same form that count something up next to a measured value, such as
    `[3/90][150/500] D: 0.31 G: 1.20`. Each script prints such rows in its own form."""
    rows = (line.raw if line.time is None else line.text for line in end)
    texts = [row[:_MAX_LENGTH] for row in rows if bar(row) is None]  # A bar counts seconds too.
    forms = [_NUMBER.sub("#", text) for text in texts]
    for form in forms[-ROWS_FROM_END:]:
        last = [_NUMBER.findall(text) for text, its in zip(texts, forms, strict=True) if its == form][-TWO_STEPS - 1 :]
        if len(last) > TWO_STEPS and any("." in number for number in last[-1]):
            return any(map(_increases, zip(*last, strict=True)))
    return False


def _increases(column: Sequence[str]) -> bool:
    if not all(number.isdecimal() and len(number) < _DIGITS for number in column):
        return False
    return all(int(above) < int(below) for above, below in pairwise(column))


def _is_alarming(line: Line, regexes: EndingRegexes) -> bool:
    """Returns whether a line contradicts a good end. The level may be in the prefix that was stripped from the line."""
    text, raw = line.text[:_MAX_LENGTH], line.raw[:_MAX_LENGTH]
    return bool(regexes.alarming.search(text) or regexes.alarming.search(raw)) and not regexes.calm.search(raw)


@dataclass(frozen=True, slots=True)
class EndingRule:
    """Says how a run ended, if it is the first rule that applies. `good` means that the run ended well or continues."""

    name: str
    holds: Callable[[Tail], object]
    reason: str
    reason_zh: str
    good: bool = False


def _ended_badly(tail: Tail) -> bool:
    _, status, state = tail.status
    return status is not None or state is not None


def _last_words(tail: Tail) -> bool:
    return tail.contradiction is not None


def _another_program(tail: Tail) -> bool:
    return tail.reading.facts.of_another_program


def _no_waiting_rank(tail: Tail) -> bool:
    """Returns whether there is no log, only dumps, stacks or reports of a hang."""
    evidence = tail.reading.evidence
    return not tail.reading.head and bool(evidence.dumped or evidence.stacked or evidence.reported)


def _only_reports(tail: Tail) -> bool:
    """Returns whether there is no log, only reports about hosts and GPUs, and no report about the job."""
    alone = tail.reading.reports_alone
    return bool(alone) and alone.isdisjoint(_OF_THE_JOB)


def _empty(tail: Tail) -> bool:
    return not tail.reading.head


def _is_question(tail: Tail) -> bool:
    return tail.question is not None


def _closed(tail: Tail) -> bool:
    return tail.closing is not None or (tail.succeeded and tail.reading.is_training_log)


def _continues(tail: Tail) -> bool:
    return not tail.reading.facts.of_another_program and tail.continues


def _serves(tail: Tail) -> bool:
    serves = tail.reading.facts.servers_up
    ends = (end for end in tail.ends if tail.ends_at_work(end))
    return bool(serves) and any(end[-1].position >= serves[-1].down(LINES_BELOW_SERVER) for end in ends)


def _stopped(tail: Tail) -> bool:
    return tail.moves


def _has_progress(tail: Tail) -> bool:
    return bool(tail.reading.facts.progress)


def _only_startup(tail: Tail) -> bool:
    facts = tail.reading.facts
    return bool(facts.surely_training or facts.launcher or facts.servers_up or facts.hosts)


def _otherwise(_: Tail) -> bool:
    return True


# The order matters: the first rule that applies decides. `good` means that the run ended well or continues.
ENDINGS: tuple[EndingRule, ...] = (
    EndingRule(
        "exit-status",
        _ended_badly,
        "an exit status or the scheduler reports that the job failed",
        "退出码或调度器表明任务失败",
    ),
    EndingRule(
        "nobody-waits",
        _no_waiting_rank,
        "the dumps, stacks and reports show no rank that lags behind",
        "dump、栈和报告中没有落后的 rank",
    ),
    EndingRule(
        "reports-alone",
        _only_reports,
        "there are only tool reports, and they contain no known fault",
        "只有工具的报告，其中没有已知的故障",
    ),
    EndingRule("empty", _empty, "the log is empty", "日志为空"),
    EndingRule("question", _is_question, "the text is a question, not a log", "文本是提问，不是日志"),
    EndingRule(
        "last-words", _last_words, "the last lines point to a problem", "最后的输出提示有问题"
    ),
    EndingRule("goes-on", _continues, "steps continue to the last line", "训练步持续到最后一行", good=True),
    EndingRule("good-end", _closed, "the log reports a successful end", "日志表明运行正常结束", good=True),
    EndingRule("serves", _serves, "a server started and is still running", "服务已启动并持续运行", good=True),
    EndingRule("another-program", _another_program, "the log is from another program", "该日志属于其他程序"),
    EndingRule("stopped", _stopped, "lines follow the last step, but none reports an end", "最后一步之后没有结束标志"),
    EndingRule("stands-still", _has_progress, "only one training step is in the log", "只出现了一个训练步"),
    EndingRule(
        "began",
        _only_startup,
        "a run starts, but the log shows no step and no end",
        "运行已开始，但没有训练步也没有结束",
    ),
    EndingRule("no-run", _otherwise, "the text contains no run", "文本中没有任何运行"),
)  # fmt: skip


def ending(reading: Reading, job: Mapping[str, str], survived: tuple[Finding, ...]) -> Ending:
    """Returns how a run without a failure ended. `job` is what the sender knows about it, `survived` are the failures
    after which the run continued."""
    tail = Tail(reading, job, survived)
    rule = next(rule for rule in ENDINGS if rule.holds(tail))
    line, status, state = tail.status if rule.name == "exit-status" else (None, None, None)
    if rule.name == "last-words" and tail.contradiction is not None:
        line = tail.contradiction
    elif rule.name == "good-end":
        line = tail.closing
    return Ending(rule.name, rule.good, line, tail.last, tail.below, status, state, tail.question)
