"""Takes a line's prefixes off, whatever put them there, and keeps what they tell: rank, local rank, host, time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-B0-2]|[=>])")
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
# Order matters: outer writers (container, journal) come before inner ones (launcher, rank).
_PREFIXES = re.compile(
    r"\s?(?:"
    rf"(?P<time>{_TIME})(?: std(?:out|err) [FP])?(?: |$)"  # docker -t, kubectl --timestamps, CRI
    r"|\[pod/(?P<pod>[^/\]\s]+)/[^\]\s]+\] "  # kubectl logs --prefix
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<journal>[\w.-]+) [\w./@-]+(?:\[\d+\])?: "  # journalctl, syslog
    r"|\[(?:default|trainer|worker|role_\w+)(?P<local>\d+)\]:"  # torchrun --tee: role name and local rank
    r"|\[rank(?P<rank>\d+)\]: ?"  # torch >= 2.2, uncaught exceptions and C++ logs
    r"|\[1,(?P<mpi>\d+)\](?:<std(?:out|err)>)?: ?"  # mpirun --tag-output
    r"|\[(?P<nodehost>[A-Za-z][\w.-]*):(?P<nodelocal>\d+)\](?=\s|[A-Z])"  # launchers that write [host:local rank]
    r"|\((?P<actor>[A-Za-z_][\w.:-]*(?:\([\w =,.]*\))?) (?:pid|ip)=(?P<pid>[\d.]+)(?:, ip=(?P<ip>[\w.:]+))?\) ?"  # Ray
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w./-]+:\d+\] ?"  # vLLM
    r"|stderr: |\[stderr\] |E {3}(?=\S)"  # tools that quote another's output; pytest
    r"|\[repeated \d+x across cluster\] ?"
    r")"
)
_OWN_RANK = re.compile(r"(?i)^\W{0,3}(?:[\w:.,/ -]{0,60}[\[(| ])?rank[ =:_]?(\d{1,6})\b")
_SRUN_LABEL = re.compile(r"^\s*(\d{1,6}): ?")
_HOST_LABEL = re.compile(r"^([A-Za-z][\w.-]*): ?")
_NO_HOST = re.compile(
    r"^[A-Z0-9]+$|(?:Error|Exception|Warning|Interrupt|Exit|Fault)$"
    r"|^(?:srun|sbatch|slurmstepd|kernel|NVRM|mpirun|torchrun|python\d?|bash|sh|npm|wandb|docker|kubelet)$"
)
_MOST_LABELS = 64  # different host labels among the first lines; more are no hosts
_TO_ISO = str.maketrans({" ": "T", "_": "T", "/": "-", ",": "."})
_LOG_TIME = re.compile(
    rf"({_TIME})"
    r"|[WEIF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+)"  # glog, torch >= 2.2: month and day, no year
    r"|(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"  # torchelastic's report and others
)


@dataclass(frozen=True, slots=True)
class Labels:
    """Which line labels, too plain to be taken for a prefix on sight, this file carries on most of its lines."""

    srun: bool = False
    host: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """What the prefixes of a line tell, and the text that remains."""

    text: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    stream: str = ""


def labels(sample: Iterable[str]) -> Labels:
    """-> the labels that at least 80 % of a file's first lines carry (srun -l writes `3: `, pdsh writes `host: `)."""
    lines = [line for line in sample if line.strip()]
    if len(lines) < 4:
        return Labels()
    hosts = [found[1] for found in map(_HOST_LABEL.match, lines) if found and not _NO_HOST.search(found[1])]
    named = len(set(hosts)) > 1 or any(re.search(r"[\d.-]", host) for host in hosts)  # `srun: ` is a program's name
    return Labels(
        srun=sum(map(bool, map(_SRUN_LABEL.match, lines))) >= 0.8 * len(lines),
        host=named and len(hosts) >= 0.8 * len(lines) and len(set(hosts)) <= min(_MOST_LABELS, len(lines) / 2),
    )


def take_off(raw: str, known: Labels) -> Origin:
    """-> where a line came from and its bare text. `raw` is one line without its line end."""
    text = ANSI.sub("", raw) if "\x1b" in raw else raw
    origin = Origin(text)
    if text.startswith("{"):
        origin = _from_json(text)
    while True:
        found = _take_label(origin, known) or _take_one(origin)
        if found is None:
            break
        origin = found
    if origin.rank is None and (own := _OWN_RANK.match(origin.text)):
        origin = replace(origin, rank=int(own[1]))
    time = origin.time or _time_in(origin.text[:120])
    return replace(origin, time=time.translate(_TO_ISO)) if time else origin


def _time_in(text: str) -> str | None:
    """-> the time that a line's text begins with; without a year (glog) it begins with `--`."""
    found = _LOG_TIME.search(text)
    if found is None:
        return None
    return f"--{found[2]}-{found[3]}T{found[4]}" if found[2] else found[1] or found[5]


def _from_json(text: str) -> Origin:
    """-> the line inside a JSON object of a log driver (docker, Loki, CloudWatch, Stackdriver), else the line itself."""
    try:
        data = json.loads(text)
    except ValueError:
        return Origin(text)
    for key in ("log", "line", "message", "textPayload", "msg"):
        if isinstance(data.get(key), str) and (
            "stream" in data or "time" in data or "timestamp" in data or key != "msg"
        ):
            time = data.get("time") or data.get("timestamp") or data.get("ts")
            inner = data[key].rstrip("\r\n")
            return Origin(ANSI.sub("", inner), time=time if isinstance(time, str) else None)
    return Origin(text)


def _take_label(origin: Origin, known: Labels) -> Origin | None:
    if known.host and origin.host is None and (found := _HOST_LABEL.match(origin.text)):
        return replace(origin, text=origin.text[found.end() :], host=found[1], stream=f"{origin.stream}{found[1]}/")
    if known.srun and origin.rank is None and (found := _SRUN_LABEL.match(origin.text)):
        return replace(
            origin, text=origin.text[found.end() :], rank=int(found[1]), stream=f"{origin.stream}r{found[1]}/"
        )
    return None


def _take_one(origin: Origin) -> Origin | None:
    found = _PREFIXES.match(origin.text)
    if found is None or not found.end():
        return None
    part = found.groupdict()
    rank, local = part["rank"] or part["mpi"], part["local"] or part["nodelocal"]
    host = part["pod"] or part["journal"] or part["nodehost"] or part["ip"]
    stream = origin.stream
    for name in (part["pod"], part["nodehost"], part["actor"] and f"{part['actor']} {part['pid']}", rank, local):
        stream += f"{name}/" if name else ""
    return Origin(
        origin.text[found.end() :],
        int(rank) if rank else origin.rank,
        int(local) if local else origin.local_rank,
        host or origin.host,
        part["time"] or origin.time,
        stream,
    )
