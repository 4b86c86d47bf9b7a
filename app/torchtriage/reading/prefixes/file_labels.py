"""Line labels too plain to be taken for a prefix on sight: a file has them where most of its first lines do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import re2

_SHARE = 0.8  # of a file's first lines that carry a label
_FEWEST = 4  # lines
_MOST = 64  # different names; more are no names
_TIMES = 10  # lines of each task, where not all lines are of tasks
_AGAIN = 3  # lines of each host, where not all lines are of hosts
_SOME = 0.4  # of the first lines that such tasks wrote
_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'File "[^"]+", line \d')
# Each takes from the start of a line what stands for one writer. Order matters: the surer come first. A `task` is a rank,
# or a node where each task is a launcher that starts workers.
FORMS: dict[str, re.Pattern[str]] = {
    "clock": re.compile(
        r"\s?\[?(?P<time>\d{4}([-/])\d\d\2\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?:(?<=\d)\] )(?!\[(?:DEBUG|INFO|WARN|ERROR|CRIT)|torch\.)"
    ),  # ts '[%F %T]'
    "table": re.compile(r" {0,3}\| (?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) \| ?"),  # CloudWatch's Logs Insights, copied
    "epoch": re.compile(r"\s?(?P<open>\[)?(?P<time>1\d{9}(?:\.\d+|\d{3}(?=[\] ])))(?(open)\]) "),  # ts %.s
    # seconds since the start; BuildKit's behind the number of a step
    "elapsed": re.compile(r"(?P<open>\[) {0,9}\d{1,7}\.\d{1,6} ?s?\] |(?P<step>#\d{1,4}) \d{1,6}\.\d{1,3} "),
    "grep": re.compile(  # grep -rn; of context the marks are dashes
        r"(?P<file>[\w./@=+-]*\w\.(?:log|out|err|txt)|[\w./@=+-]+/std(?:out|err))(?:(?P<mark>[:-])\d{1,9}(?P=mark)|:)"
    ),
    "numbered": re.compile(r"\s*(?P<line>\d{1,9})[:-]"),  # grep -n
    "rank": re.compile(
        r"\s?[\[(<]?(?i:rank)[ =:_-]{0,3}(?P<rank>\d{1,6})(?: ?(?:/|of) ?\d+)?[\])>]?(?:\s?[:|>-]+)?(?: |$)"
    ),
    "short": re.compile(r"\s?(?P<open>\[)?[rR](?P<rank>\d{1,5})(?(open)\]|\s?[:|>]) ?"),
    "local": re.compile(r"\s?[\[(]?(?i:gpu|local[_ ]?rank|cuda|device)[ =:_]?(?P<local>\d{1,2})[\])]?\s?[:|]? "),
    "number": re.compile(r"\s*(?P<task>\d{1,6}):(?!\d\d:\d\d) ?"),  # srun -l; not a clock
    "logged": re.compile(  # srun -l in a parent that logs what it reads
        r"(?=(?:[^:\n]++|:(?! ))*+: )(?=[^\n\"']{0,80}\b(?:INFO|ERROR|WARNING|DEBUG)\b)[\[\w-][^\n\"']{3,100}?(?:[\]:|-] |(?<=[A-Z]) )(?P<task>\d{1,6}): "
    ),
    "pals": re.compile(
        r"(?P<host>[a-z][\w.-]*\d[\w.-]*) (?P<task>\d{1,6}):(?![\da-f]{2}:) ?"
    ),  # mpiexec -l of Cray's PALS; no PCI address
    "bracket": re.compile(r"\s?\[(?P<task>\d{1,5})\] ?"),  # mpiexec -l, -prepend-rank
    "compose": re.compile(r"\s?(?P<host>[A-Za-z][\w.-]*[-_.]\d+)\s*\| ?"),  # docker compose, honcho
    "kubetail": re.compile(r"\s?\[(?=[a-z0-9.]*-[a-z0-9.-])(?P<pod>[a-z0-9][a-z0-9.-]*+)(?: [a-z][a-z0-9-]*)?\] ?"),
    "stern": re.compile(
        r"(?:[+-] )?(?=[a-z0-9.]*-[a-z.-]*\d)(?P<pod>[a-z0-9][a-z0-9.-]*+) [›>]? ?(?!\d)(?P<container>[a-z][a-z0-9-]*)(?: |$)"
    ),
    "host": re.compile(r"(?P<host>[A-Za-z][\w.-]*):(?: |$)"),  # pdsh, clush; not `step:120/1000`
    "stream": re.compile(  # aws logs tail, torchx; not NCCL's own `host:pid:tid [device] `
        r"(?=[\w.:$]*[/-](?:[^\W\d]|[.:/\[\]$-])*\d)(?![\w.-]+:\d+:\d+ \[)(?P<writer>[A-Za-z][\w.:/\[\]$-]*+)(?: |$)"
    ),
}
_COUNTED = re.compile(r"\d{1,9}(?:[ /,:]|$)(?!\d\d:)")  # `step 12`, `epoch 3/10`; no time
_NUMBERS = frozenset(
    {"clock", "table", "epoch", "elapsed", "grep", "rank", "short", "number"}
)  # of which each line can have its own
OF_HOSTS = frozenset({"host", "pals"})  # which name what wrote a line, whoever collected it
_HOST = re.compile(
    r"(?:node|host|gpu|worker|trainer|dgx|hgx|ip-|compute|cn|nid|server|srv|master|pod|vm|instance|algo|a100|h100|v100)[\w.-]*\d|x\d+c\d"
)
# One of them begins a line of a file some of whose lines are of tasks or hosts; one search of all lines says so.
_NUMBER_OR_HOST = re2.compile(rf"\n(?:\s*\d{{1,6}}:|(?:{_HOST.pattern})[^\s:]*:)")
_NO_HOST = re.compile(
    r"^[A-Z0-9]+$|(?:Error|Exception|Warning|Interrupt|Exit|Fault)$|\.pyx?$"
    r"|^(?:srun|sbatch|slurmstepd|kernel|NVRM|mpirun|torchrun|python\d?|bash|sh|npm|wandb|docker|kubelet)$"
    r"|^(?:error|fatal|warn|warning|info|debug|critical|notice|panic)$"
)


class Edges(NamedTuple):
    """What stands at the edges of a file's lines: `margins` and `tails`; `is_set`: a page or a mail set them."""

    margins: tuple[re.Pattern[str], ...] = ()
    tails: tuple[str, ...] = ()
    is_set: bool = False


class Labels(NamedTuple):
    """The labels that the lines of a file carry, by their names in FORMS, outer ones first; `unlisted`: others.
    `edges` is None where nothing stands at them. `learning`: they are not all known yet, so that what a logger may have
    put before a worker's label stays."""

    forms: tuple[str, ...] = ()
    unlisted: re.Pattern[str] | None = None
    edges: Edges | None = None
    learning: bool = False


def learned(lines: Sequence[str]) -> str | None:
    """-> the label that nearly all of a file's first lines begin with, or those of one step of a job; or None."""
    told = [line for line in lines if line.strip()]
    if len(told) < _FEWEST:
        return None
    known = next((name for name, form in FORMS.items() if _fits(name, form, told)), None)
    if known is None and _NUMBER_OR_HOST.search("\n".join(["", *told])):
        known = "number" if _surely_numbered(told) else "host" if _surely_of_hosts(told) else None
    return known


def is_host(name: str) -> bool:
    """-> whether a name before a colon is a host's, by its number and by what hosts are called."""
    return bool(_HOST.match(name)) and not _NO_HOST.search(name)


def _surely_of_hosts(lines: list[str]) -> bool:
    """-> whether hosts stand before some of the lines, where only output from afar is labelled: a few names that hosts
    have come again and again."""
    names = Counter(hit["host"] for hit in map(FORMS["host"].match, lines) if hit and is_host(hit["host"]))
    return 1 < len(names) <= _MOST and min(names.values()) >= _AGAIN


def _surely_numbered(lines: list[str]) -> bool:
    """-> whether task numbers stand before some of the lines (of a job script, where only srun labels its output): a
    traceback begins behind one and goes on behind the same one, or a few numbers come again and again."""
    found = [hit for hit in map(FORMS["number"].match, lines) if hit]
    begun: set[str] = set()
    for hit in found:
        rest = hit.string[hit.end() :].strip()
        if rest.startswith(_TRACEBACK):
            begun.add(hit["task"])
        elif hit["task"] in begun and _FRAME.match(rest):
            return True
    numbers = {hit["task"] for hit in found}
    return 1 < len(numbers) <= len(found) / _TIMES and len(found) >= _SOME * len(lines)


def _of_containers(found: list[re.Match[str]]) -> bool:
    """-> whether the words behind pods' names are containers', which are few, and no line's own first word (`step 12`)."""
    counted = sum(bool(_COUNTED.match(hit.string, hit.end())) for hit in found)
    return len({hit["container"] for hit in found}) <= max(3, len(found) // 20) and counted * 2 < len(found)


def _count_lines(found: list[re.Match[str]]) -> bool:
    """-> whether numbers before lines count them: they rise, though a traceback's lines, if any, have one writer."""
    numbers = [int(hit["line"]) for hit in found]
    if any(number >= after for number, after in pairwise(numbers)):
        return False
    return numbers[0] > len(numbers) or any(_FRAME.match(hit.string[hit.end() :].strip()) for hit in found)


def _mostly(form: re.Pattern[str], lines: list[str]) -> list[re.Match[str]]:
    """-> the places where a form stands, nothing where too many lines lack it, which most often shows soon."""
    found: list[re.Match[str]] = []
    most, at = int((1 - _SHARE) * len(lines) + 0.5), 0  # lines that may lack it
    while at < len(lines):
        hits = list(map(form.match, lines[at : at + most + 1]))
        at += len(hits)
        most -= hits.count(None)
        if most < 0:
            return []
        found += filter(None, hits)
    return found


def _fits(name: str, form: re.Pattern[str], lines: list[str]) -> bool:
    found = _mostly(form, lines)
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
    if name in _NUMBERS:
        return True
    if name == "stern" and not _of_containers(found):
        return False
    return len(set(names)) <= min(_MOST if name != "bracket" else 4096, len(lines) / 2)
