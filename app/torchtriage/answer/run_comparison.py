"""Compares two runs. Input: the lines of their logs, their verdicts and jobs. Output: settings, versions, hosts and
times that differ, and lines of a new form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

from torchtriage.domain.line import Line
from torchtriage.domain.run_comparison import Change, ChangeKind, NewLine, RunComparison
from torchtriage.domain.verdict import Verdict
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts import progress
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.masking import mask_all
from torchtriage.reading.prefixes.times import seconds_between

OWN_SETTINGS = "own-settings"  # the vocabulary's list: names whose values differ in every run
MAX_NEW_LINES = 20
_MAX_CHANGES = 40  # settings that are listed
_MAX_HOSTS = 4  # hosts that are named
_MAX_LENGTH = 80  # characters of a value
_MAX_LINE_LENGTH, _MAX_COMMAND_LENGTH = 400, 8000
_SECONDS = "seconds_per_step"  # the fact's name
_SLOWER = 1.25  # times differ from this ratio on
_NAME = r"[A-Za-z][\w.-]{1,40}"
_WORD = r"\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|\[[^\[\]\n]{0,60}\]|[^\s,;(){}\[\]'\"=]{1,80}"
# --lr 3e-4, --lr=3e-4 · lr=0.0003, · "lr": 0.0003, · lr: 0.0003 · lr ............... 0.0003 · export NCCL_DEBUG=INFO
_OPTION = lazy_regex(rf"(?:^|[\s'\"])--({_NAME})(?:=|['\"]?,? +['\"]?)(?!--)({_WORD})")
_ASSIGNED = lazy_regex(rf"(?:^|[\s,({{])({_NAME})=({_WORD})(?=[,;)\s}}]|$)")
_KEYED = lazy_regex(rf"(?:^\s*|[{{,]\s*)['\"]?({_NAME})['\"]?: ({_WORD}),?\s*(?=[,}}]|$)")
_DOTTED = lazy_regex(rf"(?:^|\s)({_NAME}) \.{{2,}} ({_WORD})\s*$")
_FLAG = lazy_regex(rf"(?:^|\s)--({_NAME})(?=\s+--|\s*$)()")
_CONFIG = lazy_regex(rf"^\s*['\"]?{_NAME}['\"]?: (?:{_WORD}),?\s*$|(?:^|\s){_NAME} \.{{2,}} |[{{\[(]\s*$")
_FORMS = (_ASSIGNED, _KEYED, _DOTTED)
_OWN_VALUE = lazy_regex(r"<(?:time|uuid|addr|hex|url)>|^\[?redacted|\*\*\*")
_FRAME = lazy_regex(r'^\s*File "|Traceback \(|:\d+: \w*Warning: ')  # code follows below such a line
_QUOTED_KEY = lazy_regex(rf"^\s*['\"]{_NAME}['\"]: ")
# Letters, after the logger's header (`W1121 07:19:07.576000 16364 torch/distributed/run.py:874] `) if there is one
_SAYS = lazy_regex(r"^(?:[WEIF]\d{4} [\d:.]+ +\d+ \S+:\d+\])?+.*?[A-Za-z]{3}")
_SET = "set"  # the value of an option that takes none


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that a run printed for a name, and its place."""

    value: str
    line: Line
    option: bool = False  # from a command line


@dataclass(slots=True)
class RunLines:
    """What the lines of one run show: its settings by name, and its line forms, each with its first line. `partly`
    means that lines between the first and the last one were left out."""

    settings: dict[str, Setting] = field(default_factory=dict)
    forms: dict[str, Line] = field(default_factory=dict)
    partly: bool = False


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs. `job` is what its sender said about it, by name."""

    lines: RunLines
    verdict: Verdict | None = None
    job: dict[str, str] = field(default_factory=dict)


def run_lines(lines: Iterable[Line], vocabulary: Vocabulary, partly: bool = False) -> RunLines:
    """Returns what the lines of a run show. The lines are read once, in order."""
    result = RunLines(partly=partly)
    own = frozenset(vocabulary.words(OWN_SETTINGS))
    started = quoted = False
    for line in lines:
        text = line.text[:_MAX_COMMAND_LENGTH]
        code, quoted = quoted, _FRAME.search(text) is not None
        if code or not _SAYS.search(text):
            continue
        if progress.PROGRESS.matches(text):
            started = True
            continue
        options = _options(line, text)
        if options or not started or _QUOTED_KEY.match(text):
            settings = options or _settings(line, text[:_MAX_LINE_LENGTH])
            result.settings |= {name: one for name, one in settings.items() if not _is_own(name, own)}
        if not options and not quoted and not _CONFIG.search(text):
            result.forms.setdefault(mask_all(text).strip(), line)
    return result


def _is_own(name: str, own: frozenset[str]) -> bool:
    lower = name.lower()
    return lower in own or lower.rpartition("_")[2] in own


def compared(before: ComparedRun, now: ComparedRun) -> RunComparison:
    """Returns what changed from the earlier run to the later one."""
    settings = list(_setting_changes(before.lines, now.lines))
    same = sum(
        other.value == setting.value
        for name, setting in now.lines.settings.items()
        if (other := before.lines.settings.get(name)) is not None
    )
    changes = (*_job_changes(before, now), *_run_changes(before, now), *settings[:_MAX_CHANGES])
    return RunComparison(
        tuple(sorted(changes, key=lambda change: list(ChangeKind).index(change.kind))),
        tuple(_new_lines(before.lines, now)),
        same,
        before.lines.partly or now.lines.partly,
    )


def _options(line: Line, text: str) -> dict[str, Setting]:
    """Returns the options of a command line. A line with a single option is treated as a sentence."""
    found = [(form, one) for form in (_OPTION, _FLAG) for one in form.finditer(text)]
    values = {one[1]: one[2].strip("'\"") or _SET for _, one in found} if len(found) > 1 else {}
    return {
        name.replace("-", "_"): Setting(value[:_MAX_LENGTH], line, True)
        for name, value in values.items()
        if _fits(value)
    }


def _settings(line: Line, text: str) -> dict[str, Setting]:
    values = {one[1]: one[2].strip("'\"") for form in _FORMS for one in form.finditer(text)}
    return {
        name.replace("-", "_"): Setting(value[:_MAX_LENGTH], line) for name, value in values.items() if _fits(value)
    }


def _fits(value: str) -> bool:
    """Returns whether a value is worth comparing. Times, addresses and identifiers are not."""
    return bool(value) and not _OWN_VALUE.search(mask_all(value))


def _job_changes(before: ComparedRun, now: ComparedRun) -> Iterator[Change]:
    for name in dict.fromkeys((*before.job, *now.job)):
        if before.job.get(name) != now.job.get(name):
            yield Change(ChangeKind.JOB, name, before.job.get(name), now.job.get(name))


def _run_changes(before: ComparedRun, now: ComparedRun) -> Iterator[Change]:
    if before.verdict is None or now.verdict is None:
        return
    first, last = before.verdict.run, now.verdict.run
    for name in dict.fromkeys((*first.versions, *last.versions)):
        was, is_ = first.versions.get(name), last.versions.get(name)
        if was and is_ and was != is_:
            yield Change(ChangeKind.VERSION, name, was, is_)
    for name, was, is_ in (
        ("launcher", first.launcher, last.launcher),
        ("world_size", _text(first.world_size), _text(last.world_size)),
        ("new_hosts", None, hosts_text(set(last.hosts) - set(first.hosts))),
    ):
        if is_ and was != is_ and (was or (name == "new_hosts" and first.hosts)):
            yield Change(ChangeKind.LAUNCH, name, was, is_)
    yield from _time_changes(before.verdict, now.verdict)


def _time_changes(before: Verdict, now: Verdict) -> Iterator[Change]:
    was, is_ = _step_seconds(before), _step_seconds(now)
    if was and is_ and max(was, is_) > _SLOWER * min(was, is_):
        yield Change(ChangeKind.TIMING, _SECONDS, f"{was:.3g}", f"{is_:.3g}")


def _step_seconds(verdict: Verdict) -> float | None:
    """Returns the seconds per step: the median of the values in the lines, or else a value from the first and the last
    line with a time."""
    curve = verdict.run.progress
    if curve is None:
        return None
    if seconds := [value for value in curve.values.get(_SECONDS, ()) if value]:
        return median(seconds)
    dated = [(step, time) for step, time in zip(curve.steps, curve.times, strict=True) if step is not None and time]
    if len(dated) < 2 or dated[-1][0] <= dated[0][0]:
        return None
    took = seconds_between(dated[0][1], dated[-1][1])
    return took / (dated[-1][0] - dated[0][0]) if took and took > 0 else None


def _setting_changes(before: RunLines, now: RunLines) -> Iterator[Change]:
    """Yields settings that both runs printed with different values, and options that only one command line has."""
    for name, setting in now.settings.items():
        was = before.settings.get(name)
        if was is not None and was.value != setting.value:
            yield _change(name, was.value, setting)
        elif was is None and setting.option and before.settings:
            yield _change(name, None, setting)
    for name, setting in before.settings.items():
        if setting.option and name not in now.settings and now.settings:
            yield Change(ChangeKind.SETTING, name, setting.value, None)


def _change(name: str, before: str | None, setting: Setting) -> Change:
    return Change(ChangeKind.SETTING, name, before, setting.value, setting.line.number, setting.line.file)


def _new_lines(before: RunLines, now: ComparedRun) -> Iterator[NewLine]:
    """Yields the first lines of new forms above the later run's first failure. If there are many, those nearest to the
    failure are chosen."""
    if not before.forms:
        return
    root = now.verdict.root_cause if now.verdict else None
    failed = min((line.line for line in root.evidence), default=None) if root else None
    found = [
        line
        for form, line in now.lines.forms.items()
        if form not in before.forms and (failed is None or line.number < failed)
    ]
    for line in found[-MAX_NEW_LINES:]:
        yield NewLine(line.number, line.text[:_MAX_LINE_LENGTH].strip(), line.file)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def hosts_text(names: Collection[str]) -> str | None:
    """Returns the first hosts and how many more there are, or None if there is no host."""
    ordered = sorted(names)
    more = len(ordered) - _MAX_HOSTS
    return ", ".join(chain(ordered[:_MAX_HOSTS], [f"… +{more}"] if more > 0 else [])) or None
