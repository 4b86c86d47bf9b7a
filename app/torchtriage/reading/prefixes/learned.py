"""Labels that are too plain to be known prefixes. A file has them if most of its first lines do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import re2

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.margins_and_markup import Edges

_SHARE = 0.8  # share of a file's first lines with the label
_MIN_COUNT = 4  # lines
_MAX_COUNT = 64  # different names; with more, they are not names
_LINES_PER_TASK = 10  # lines of each task, if not all lines are from tasks
_LINES_PER_HOST = 3  # lines of each host, if not all lines are from hosts
_TASK_SHARE = 0.4  # share of the first lines that such tasks wrote
_TRACEBACK = "Traceback (most recent call last)"
_FRAME = lazy_regex(r'File "[^"]+", line \d')


class LearnedLabel(NamedTuple):
    """A label that is too plain to be a known prefix. `regex` matches it at the start of a line. The name of a group
    says what its value is: `task` is a rank, or a node if each task is a launcher that starts workers; `stream` names
    one writer."""

    name: str
    example: str
    regex: str


# Order matters: the more reliable forms come first.
LABELS = (
    LearnedLabel(
        "clock",  # ts '[%F %T]'
        "[2026-05-01 09:00:00] ",
        r"\s?\[?(?P<time>\d{4}([-/])\d\d\2\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?:(?<=\d)\] )(?!\[(?:DEBUG|INFO|WARN|ERROR|CRIT)|torch\.)",
    ),
    LearnedLabel(
        "table",  # copied from CloudWatch's Logs Insights
        "| 2026-05-01T09:00:00.5Z | ",
        r" {0,3}\| (?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) \| ?",
    ),
    LearnedLabel(  # ts %.s
        "epoch",
        "1777626000.123456 ",
        r"\s?(?P<open>\[)?(?P<time>1\d{9}(?:\.\d+|\d{3}(?=[\] ])))(?(open)\]) ",
    ),
    LearnedLabel(  # seconds since the start; BuildKit prints them after the number of a step
        "elapsed",
        "[    12.345678] ",
        r"(?P<open>\[) {0,9}\d{1,7}\.\d{1,6} ?s?\] |(?P<step>#\d{1,4}) \d{1,6}\.\d{1,3} ",
    ),
    LearnedLabel(  # grep -rn; context lines have dashes
        "grep",
        "logs/rank3.log:17:",
        r"(?P<file>[\w./@=+-]*\w\.(?:log|out|err|txt)|[\w./@=+-]+/std(?:out|err))(?:(?P<mark>[:-])\d{1,9}(?P=mark)|:)",
    ),
    LearnedLabel("numbered", "17:", r"\s*(?P<line>\d{1,9})[:-]"),  # grep -n
    LearnedLabel(
        "rank",
        "[Rank 3/8] ",
        r"\s?[\[(<]?(?i:rank)[ =:_-]{0,3}(?P<rank>\d{1,6})(?: ?(?:/|of) ?\d+)?[\])>]?(?:\s?[:|>-]+)?(?: |$)",
    ),
    LearnedLabel("short", "[r3] ", r"\s?(?P<open>\[)?[rR](?P<rank>\d{1,5})(?(open)\]|\s?[:|>]) ?"),
    LearnedLabel(
        "local",
        "[gpu 3] ",
        r"\s?[\[(]?(?i:gpu|local[_ ]?rank|cuda|device)[ =:_]?(?P<local_rank>\d{1,2})[\])]?\s?[:|]? ",
    ),
    LearnedLabel("number", "3: ", r"\s*(?P<task>\d{1,6}):(?!\d\d:\d\d) ?"),  # srun -l; not a clock time
    LearnedLabel(  # srun -l inside a process that logs what it reads
        "logged",
        "2026-05-01 09:00:00 [INFO] 3: ",
        r"(?=(?:[^:\n]++|:(?! ))*+: )(?=[^\n\"']{0,80}\b(?:INFO|ERROR|WARNING|DEBUG)\b)[\[\w-][^\n\"']{3,100}?(?:[\]:|-] |(?<=[A-Z]) )(?P<task>\d{1,6}): ",
    ),
    LearnedLabel(  # mpiexec -l of Cray's PALS; not a PCI address
        "pals",
        "x1000c0s0b0n0 3: ",
        r"(?P<host>[a-z][\w.-]*\d[\w.-]*) (?P<task>\d{1,6}):(?![\da-f]{2}:) ?",
    ),
    LearnedLabel("bracket", "[3] ", r"\s?\[(?P<task>\d{1,5})\] ?"),  # mpiexec -l, -prepend-rank
    LearnedLabel("compose", "train-1  | ", r"\s?(?P<host>[A-Za-z][\w.-]*[-_.]\d+)\s*\| ?"),  # docker compose, honcho
    LearnedLabel(
        "kubetail",
        "[train-worker-0 pytorch] ",
        r"\s?\[(?=[a-z0-9.]*-[a-z0-9.-])(?P<pod>[a-z0-9][a-z0-9.-]*+)(?: [a-z][a-z0-9-]*)?\] ?",
    ),
    LearnedLabel(
        "stern",
        "train-worker-0 pytorch ",
        r"(?:[+-] )?(?=[a-z0-9.]*-[a-z.-]*\d)(?P<pod>[a-z0-9][a-z0-9.-]*+) [›>]? ?(?!\d)(?P<container>[a-z][a-z0-9-]*)(?: |$)",
    ),
    LearnedLabel("host", "gpu-7: ", r"(?P<host>[A-Za-z][\w.-]*):(?: |$)"),  # pdsh, clush; not `step:120/1000`
    LearnedLabel(  # aws logs tail, torchx; not NCCL's own `host:pid:tid [device] `
        "stream",
        "trainer/3 ",
        r"(?=[\w.:$]*[/-](?:[^\W\d]|[.:/\[\]$-])*\d)(?![\w.-]+:\d+:\d+ \[)(?P<stream>[A-Za-z][\w.:/\[\]$-]*+)(?: |$)",
    ),
)
FORMS = {label.name: lazy_regex(label.regex) for label in LABELS}
_COUNTED = lazy_regex(r"\d{1,9}(?:[ /,:]|$)(?!\d\d:)")  # `step 12`, `epoch 3/10`; not a time
_OWN_NUMBERS = frozenset(
    {"clock", "table", "epoch", "elapsed", "grep", "rank", "short", "number"}
)  # labels that may differ in each line
OF_HOSTS = frozenset({"host", "pals"})  # these name the writer of a line, whatever collected it
_HOST = lazy_regex(
    r"(?:node|host|gpu|worker|trainer|dgx|hgx|ip-|compute|cn|nid|server|srv|master|pod|vm|instance|algo|a100|h100|v100)[\w.-]*\d|x\d+c\d"
)
# If some lines of a file are from tasks or hosts, one of these begins a line. One search of all lines decides that.
_NUMBER_OR_HOST = re2.compile(rf"\n(?:\s*\d{{1,6}}:|(?:{_HOST.pattern})[^\s:]*:)")
_NO_HOST = lazy_regex(
    r"^[A-Z0-9]+$|(?:Error|Exception|Warning|Interrupt|Exit|Fault)$|\.pyx?$"
    r"|^(?:srun|sbatch|slurmstepd|kernel|NVRM|mpirun|torchrun|python\d?|bash|sh|npm|wandb|docker|kubelet)$"
    r"|^(?:error|fatal|warn|warning|info|debug|critical|notice|panic)$"
    r"|^(?i:batch|epoch|step|iter|iteration|train|training|val|valid|validation|test|eval|loss|fold|trial|episode)$"
)


class Labels(NamedTuple):
    """The labels of a file's lines, by their names in FORMS, outer ones first. `custom` is an unknown label. `edges` is
    None if there is nothing at the edges of the lines. `learning` is true if not all labels are known yet; then the
    text that a logger may have put before a worker's label is kept."""

    forms: tuple[str, ...] = ()
    custom: re.Pattern[str] | None = None
    edges: Edges | None = None
    learning: bool = False


def learned_label(lines: Sequence[str]) -> str | None:
    """Returns the label with which nearly all of a file's first lines begin, or that of one step of a job, or None."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < _MIN_COUNT:
        return None
    name = next((name for name, form in FORMS.items() if _fits(name, form, filled)), None)
    if name is None and _NUMBER_OR_HOST.search("\n".join(["", *filled])):
        name = "number" if _begin_with_tasks(filled) else "host" if _begin_with_hosts(filled) else None
    return name


def is_host(name: str) -> bool:
    """Returns whether a name before a colon is a host name, by its number and by the usual names of hosts."""
    return bool(_HOST.match(name)) and not _NO_HOST.search(name)


def _begin_with_hosts(lines: list[str]) -> bool:
    """Returns whether some lines begin with hosts because only remote output is labelled: a few typical host names
    appear again and again."""
    names = Counter(hit["host"] for hit in map(FORMS["host"].match, lines) if hit and is_host(hit["host"]))
    return 1 < len(names) <= _MAX_COUNT and min(names.values()) >= _LINES_PER_HOST


def _begin_with_tasks(lines: list[str]) -> bool:
    """Returns whether some lines begin with task numbers because only srun labels its output, and not the job script.
    Then a traceback has the same number before its head and its frames, or a few numbers appear again and again."""
    found = [hit for hit in map(FORMS["number"].match, lines) if hit]
    begun: set[str] = set()
    for hit in found:
        rest = hit.string[hit.end() :].strip()
        if rest.startswith(_TRACEBACK):
            begun.add(hit["task"])
        elif hit["task"] in begun and _FRAME.match(rest):
            return True
    numbers = {hit["task"] for hit in found}
    return 1 < len(numbers) <= len(found) / _LINES_PER_TASK and len(found) >= _TASK_SHARE * len(lines)


def _are_containers(found: list[re.Match[str]]) -> bool:
    """Returns whether the words after pods' names are containers, which are few, and not each line's own first word
    (`step 12`)."""
    counted = sum(bool(_COUNTED.match(hit.string, hit.end())) for hit in found)
    return len({hit["container"] for hit in found}) <= max(3, len(found) // 20) and counted * 2 < len(found)


def _count_lines(found: list[re.Match[str]]) -> bool:
    """Returns whether numbers before lines count them. Then they rise, and the lines of each traceback have one
    writer."""
    numbers = [int(hit["line"]) for hit in found]
    if any(number >= after for number, after in pairwise(numbers)):
        return False
    return numbers[0] > len(numbers) or any(_FRAME.match(hit.string[hit.end() :].strip()) for hit in found)


def _matches_of_most(form: re.Pattern[str], lines: list[str]) -> list[re.Match[str]]:
    """Returns the matches of a form, or an empty list if too many lines do not match, which usually shows soon."""
    found: list[re.Match[str]] = []
    most, at = int((1 - _SHARE) * len(lines) + 0.5), 0  # lines that need not match
    while at < len(lines):
        hits = list(map(form.match, lines[at : at + most + 1]))
        at += len(hits)
        most -= hits.count(None)
        if most < 0:
            return []
        found += filter(None, hits)
    return found


def _fits(name: str, form: re.Pattern[str], lines: list[str]) -> bool:
    found = _matches_of_most(form, lines)
    names = [next(value for value in hit.groups() if value) for hit in found]
    if name == "host":
        names = [host for host in names if not _NO_HOST.search(host)]
        # `srun: ` is a program's name.
        if len(set(names)) < 2 and not any(re.search(r"[\d.-]", host) for host in names):
            return False
    if len(names) < _SHARE * len(lines) or not names:
        return False
    if name == "numbered":
        return _count_lines(found)
    if name in _OWN_NUMBERS:
        return True
    if name == "stern" and not _are_containers(found):
        return False
    return len(set(names)) <= min(_MAX_COUNT if name != "bracket" else 4096, len(lines) / 2)
