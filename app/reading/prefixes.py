"""Takes a line's prefixes off, whatever put them there, and keeps what they tell: rank, local rank, host, time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.reading.labels import FORMS, Labels, learned

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-B0-2]|[=>])")
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PROGRAM = r"[\w./@-]+\[\d+\]: ?"
# Order matters: outer writers (container, journal) come before inner ones (launcher, rank). Above each kind: its forms.
_PREFIXES = re.compile(
    r"\s?(?:"
    # docker -t, kubectl --timestamps, CRI, CI runners; journalctl -o short-iso, short-full
    rf"(?:[A-Z][a-z]{{2}} )?(?P<time>{_TIME})(?: UTC)?(?: std(?:out|err) [FP])?(?: \d\d[OE]\+?)?"
    rf"(?:[ \t](?P<isojournal>[\w.-]+) {_PROGRAM}|[ \t]|$)"
    r"|\[(?P<bracketed>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)\] "  # Jenkins
    r"|\[pod/(?P<pod>[^/\]\s]+)/[^\]\s]+\] "  # kubectl logs --prefix
    # journalctl, syslog, ts
    rf"|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? (?:(?P<journal>[\w.-]+) (?:{_PROGRAM}|[a-z][\w./@-]*: ))?"
    rf"|\[ *\d+\.\d{{6}}\] (?P<monotonic>[\w.-]+) {_PROGRAM}"  # journalctl -o short-monotonic
    r'|\{(?P<loki>[A-Za-z_]\w*="[^"\n]*"(?:, ?[A-Za-z_]\w*="[^"\n]*")*)\}\s+'  # logcli
    r"|\[(?:default|trainer|worker|role_\w+)(?P<local>\d{1,6})\]:"  # torchrun --tee: role name and local rank
    r"|\[rank:? ?(?P<rank>\d{1,6})\](?:: ?| )"  # torch >= 2.2: uncaught exceptions and C++ logs; Lightning
    # mpirun --tag-output, also PRRTE's and SageMaker's
    r"|\[(?:1|[\w.@-]+(?=,[^\]]{1,80}\]<std)),(?:mpirank:)?(?P<mpi>\d{1,6})(?:,(?P<mpihost>[\w.-]+))?\](?:<std(?:out|err)>)?: ?"
    r"|\[(?P<nodehost>[A-Za-z][\w.-]*):(?P<nodelocal>\d{1,2})\](?=\s|[A-Z])"  # launchers that write [host:local rank]
    r"|\[(?P<mpinode>[A-Za-z][\w.-]*):\d{3,7}\] "  # Open MPI: [host:pid]
    # Ray, vLLM
    r"|\((?:(?P<actor>[A-Za-z_][\w.:-]*(?:\([\w =,.]*\))?) )?(?:rank=(?P<actorrank>\d{1,6}) )?"
    r"(?:pid|ip)=(?P<pid>[\d.]+)(?:, ip=(?P<ip>[\w.:]+))?\) ?"
    r"|\((?:raylet|autoscaler|gcs_server)(?:, ip=(?P<rayip>[\w.:]+))?\) "
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w./-]+:\d+\] ?"  # vLLM
    r"|stderr: |\[stderr\] |E {3}(?= *\S)|##\[error\]"  # tools that quote another's output; pytest; GitHub
    r"|\[repeated \d+x across cluster\] ?"
    r"|\[\d{0,2}(?:;\d{1,3})*m ?"  # a colour whose escape character a web form took away
    r")"
)
_RANKS = ("rank", "mpi", "actorrank")
_HOSTS = ("pod", "journal", "isojournal", "monotonic", "nodehost", "mpinode", "mpihost", "ip", "rayip")
_OWN_RANK = re.compile(
    r"(?i)^(?:\[(?!rank)[^\]\n]{0,80}\][ :]*){1,6}\[?rank[ =:_]{0,2}(\d{1,6})\b"  # [time] [level] [file] [Rank 3]
    r"|^\W{0,3}(?:[\w:.,/ -]{0,60}[\[(| ])?rank[ =:_]?(\d{1,6})\b"
)
_NCCL = re.compile(r"([A-Za-z][\w.-]*):\d+:\d+ \[(?:\d+)\] NCCL ")
_LOKI_LABEL = re.compile(r'(\w+)="([^"]*)"')
_MOST_ROUNDS = 3  # labels in one another
_TO_ISO = str.maketrans({" ": "T", "_": "T", "/": "-", ",": "."})
_LOG_TIME = re.compile(
    rf"({_TIME})"
    r"|[WEIF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+)"  # glog, torch >= 2.2: month and day, no year
    r"|(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"  # torchelastic's report and others
)


class Origin(NamedTuple):
    """What the prefixes of a line tell, and the text that remains."""

    text: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    stream: str = ""
    pod: str | None = None


NOWHERE = Origin("")


def labels(sample: Sequence[str]) -> Labels:
    """-> the labels that nearly all of a file's first lines carry, also one inside of another."""
    known = Labels()
    for _ in range(_MOST_ROUNDS):
        more = learned([take_off(line, known).text for line in sample] if known.forms else sample)
        if more is None:
            break
        known = Labels((*known.forms, more))
    return known


def take_off(raw: str, known: Labels, outer: Origin = NOWHERE) -> Origin:
    """-> where a line came from and its bare text. `raw` is one line without its line end; `outer` what is known of it."""
    text = ANSI.sub("", raw) if "\x1b" in raw else raw
    origin = Origin(text) if outer is NOWHERE else outer._replace(text=text)
    left = list(known.forms)
    while True:
        found = (left and _take_label(origin, left)) or _take_one(origin)
        if not found:
            break
        origin = found
    return _with_own(origin)


def _with_own(origin: Origin) -> Origin:
    """-> the origin with what the line's own text says of rank, host and time."""
    text = origin.text
    rank, host = origin.rank, origin.host
    if rank is None and _says_rank(text) and (own := _OWN_RANK.match(text)):
        rank = int(own[1] or own[2])
    if host is None and "] NCCL " in text and (nccl := _NCCL.match(text)):
        host = nccl[1]
    # Most lines tell no time; a time has two colons.
    time = origin.time or (_time_in(text[:120]) if text.count(":", 0, 120) > 1 else None)
    if rank == origin.rank and host == origin.host and time is None:
        return origin
    time = time.translate(_TO_ISO) if time else None
    return Origin(text, rank, origin.local_rank, host, time, origin.stream, origin.pod)


def _says_rank(text: str) -> bool:
    return "ank" in text or "RANK" in text


def _time_in(text: str) -> str | None:
    """-> the time that a line's text begins with; without a year (glog) it begins with `--`."""
    found = _LOG_TIME.search(text)
    if found is None:
        return None
    return f"--{found[2]}-{found[3]}T{found[4]}" if found[2] else found[1] or found[5]


def _take_label(origin: Origin, left: list[str]) -> Origin | None:
    """-> the origin without the first of the labels that are left, which is taken from them."""
    for at, name in enumerate(left):
        found = FORMS[name].match(origin.text)
        if found is None or not found.end():
            continue
        del left[at]
        part = found.groupdict()
        rank, pod = part.get("rank"), part.get("pod")
        writer = pod or part.get("host") or part.get("writer") or f"r{rank}"
        return origin._replace(
            text=origin.text[found.end() :],
            rank=origin.rank if origin.rank is not None or rank is None else int(rank),
            host=origin.host or part.get("host") or pod,
            pod=origin.pod or pod,
            stream=f"{origin.stream}{writer}/",
        )
    return None


def _take_one(origin: Origin) -> Origin | None:
    if origin.text[:2] == "  ":  # The body of a traceback, most often.
        return None
    found = _PREFIXES.match(origin.text)
    if found is None or not found.end():
        return None
    if found.lastgroup == "rank":  # Of nearly all lines that failing workers write.
        rank = found["rank"]
        text, stream = origin.text[found.end() :], f"{origin.stream}{rank}/"
        return Origin(text, int(rank), origin.local_rank, origin.host, origin.time, stream, origin.pod)
    part = found.groupdict()
    rank = next((part[name] for name in _RANKS if part[name]), None)
    host = next((part[name] for name in _HOSTS if part[name]), None)
    local = part["local"] or part["nodelocal"]
    actor = f"{part['actor'] or ''} {part['pid']}" if part["pid"] else None
    pod = part["pod"]
    if part["loki"]:
        told = dict(_LOKI_LABEL.findall(part["loki"]))
        pod = told.get("pod") or told.get("pod_name")
        host = told.get("node_name") or told.get("host") or told.get("hostname") or pod
    stream = origin.stream
    for name in (pod, part["nodehost"], actor, rank, local):
        stream += f"{name}/" if name else ""
    return Origin(
        origin.text[found.end() :],
        int(rank) if rank else origin.rank,
        int(local) if local else origin.local_rank,
        host or origin.host,
        origin.time or part["time"] or part["bracketed"],  # The outer clock stands on every line.
        stream,
        pod or origin.pod,
    )
