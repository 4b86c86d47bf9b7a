"""The table of known prefixes: name, example and regex. The name of a group says what its value is.

To add a prefix, add a row. Its example is its test (tests/reading/test_known_prefixes.py).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.times import CTIME, STAMP, SYSLOG

# What the groups say:
#   time                 when the line was written
#   host                 the machine
#   stream_host          the machine, whose lines are a stream of their own
#   stream               whose lines these are, in a word that need not be the machine's name
#   pod                  the Kubernetes pod: host and stream, too
#   torch_rank           the rank, as torch itself prints it
#   rank, tp_rank        the rank; the one of the tensor-parallel group
#   task                 the rank, or the node's number where each task is a launcher that starts workers
#   node_rank            the node's number
#   local_rank           the local rank
#   torchrun_local_rank  the local rank, behind which a rank outside is that of the node
#   pid, actor           the process, and Ray's name of it
#   labels, keys         several at once: Loki's labels, a logger's `rank=3 host=gpu-7`
RANKS = frozenset({"rank", "tp_rank", "task"})
LOCAL_RANKS = frozenset({"local_rank", "torchrun_local_rank"})
NODES = frozenset({"node_rank", "task"})
HOSTS = frozenset({"host", "stream_host", "pod"})
STREAMS = frozenset({"stream_host", "stream", "pod"})
OWN = RANKS | LOCAL_RANKS | {"torch_rank", "keys"}  # printed by a worker itself


class KnownPrefix(NamedTuple):
    """`example` begins with the prefix and has no other known one. `regex` matches it at the start of a line."""

    name: str
    example: str
    regex: str


_PROGRAM = r"[\w./@-]+\[\d+\]: ?"
_HOST = r"[A-Za-z][\w.-]*"
_NUMBERED = r"[A-Za-z](?=(?:[^\W\d]|[.-]){0,62}\d)[\w.-]{1,63}"  # a host name with a number in it
_KEYS = r"(?:(?:global_|local_|node_)?rank|world_size|host(?:name)?|node|pid|role|gpu)"
_TORCH = KnownPrefix(
    "torch >= 2.2 and Lightning: uncaught exceptions and C++ logs",
    "[rank3]: ",
    r"\[rank[:=]? ?(?P<torch_rank>\d{1,6})\](?:: ?| )(?:\|\| )?",
)
# Order matters: outer writers (container, journal) come before inner ones (launcher, rank).
KNOWN = (
    KnownPrefix(
        "syslog (RFC 5424)",
        "<14>1 2026-05-01T09:00:00Z gpu-7 train 412 - - ",
        rf"<\d{{1,3}}>\d (?P<time>{STAMP}) (?P<host>[\w.-]+) [\w./@-]+ (?:\d+|-) [\w-]+ - ",
    ),
    KnownPrefix(
        "docker -t, kubectl --timestamps, CRI, CI runners; journalctl -o short-iso, short-full",
        "2026-05-01T09:00:00.5Z stdout F ",
        rf"(?:[A-Z][a-z]{{2}} )?(?P<time>{STAMP})(?: UTC)?(?: std(?:out|err) [FP])?(?: \d\d[OE]\+?)?"
        rf"(?:[ \t](?P<host>[\w.-]+) (?:{_PROGRAM}|kernel: )|[ \t]|$|(?=: rank\d+\[\d+\]))",
    ),
    KnownPrefix(
        "Jenkins, Determined",
        "[2026-05-01T09:00:00.123Z] ",
        r"\[(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)\] ",
    ),
    KnownPrefix("kubectl logs --prefix", "[pod/train-worker-0/pytorch] ", r"\[pod/(?P<pod>[^/\]\s]+)/[^\]\s]+\] "),
    KnownPrefix(
        "kail", "default/train-worker-0[pytorch]: ", r"[a-z0-9-]+/(?P<pod>[a-z0-9][a-z0-9.-]*)\[[a-z0-9-]+\]: "
    ),
    KnownPrefix(
        "docker service logs",
        "train.1.x7k2p9q8r7s6@gpu-7    | ",
        r"[\w.-]+\.\d+\.[a-z0-9]{10,25}@(?P<stream_host>[\w.-]+)\s+\| ?",
    ),
    KnownPrefix(
        "Slurm with LogTimeFormat=thread_id",
        "Apr 08 03:37:03.834962 3444994 slurmstepd   0x155552ddfd40: ",
        rf"(?P<time>{SYSLOG}) +\d+ +(?:slurm[a-z]*|srun|salloc|sbatch) +0x[0-9a-f]+: ",
    ),
    KnownPrefix(
        "journalctl, syslog, ts",
        "May  1 09:00:00 gpu-7 train[412]: ",
        rf"(?:<\d{{1,3}}>)?(?P<time>{SYSLOG}) (?:(?P<host>[\w.-]+) (?:{_PROGRAM}|[a-z][\w./@-]*: ))?",
    ),
    KnownPrefix(
        "journalctl -o short-monotonic",
        "[ 1234.567890] gpu-7 train[412]: ",
        rf"\[ *\d+\.\d{{6}}\] (?P<host>[\w.-]+) {_PROGRAM}",
    ),
    KnownPrefix(
        "Loki's logcli",
        '{pod="train-worker-0", node_name="gpu-7"} ',
        r'\{(?P<labels>[A-Za-z_]\w*="[^"\n]*"(?:, ?[A-Za-z_]\w*="[^"\n]*")*)\}\s+',
    ),
    KnownPrefix(
        "torchrun --tee: role and local rank",
        "[default1]:",
        r"\[(?:default|trainer|worker|role_\w+)(?P<torchrun_local_rank>\d{1,6})\]:",
    ),
    KnownPrefix(
        "torchrun with TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE: local rank and rank",
        "[trainer1|5]: ",
        r"\[{1,3}(?:default|trainer|worker)-?(?P<local_rank>\d{1,6})[-|](?P<rank>\d{1,6})\]{1,3}:? ?",
    ),
    KnownPrefix(
        "torchrun with TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE: rank",
        "[default-rank5]:",
        r"\[(?:default|trainer|worker)[-_ ]?rank[-_ ]?(?P<rank>\d{1,6})\]:? ?",
    ),
    _TORCH,
    KnownPrefix(
        "Determined: container and rank",
        "8ddca4c8 [rank=3] || ",
        r"\[?[0-9a-f]{8}\]? (?:\[rank=(?P<rank>\d{1,6})\] )?\|\| (?:[A-Z]{4,8}: (?=Traceback))?",
    ),
    KnownPrefix(
        "composer",
        "rank3[1234][MainThread]: ERROR: composer.cli.launcher: ",
        r"(?:: )?rank(?P<rank>\d{1,6})\[\d+\]\[\w+\]: [A-Z]{4,8}: [\w.]+: ",
    ),
    KnownPrefix(
        "mpirun --timestamp-output", "Fri May  1 09:00:00 2026[1,3]<stderr>:", rf"(?P<time>{CTIME})(?=\[[\d,]+\]<std)"
    ),
    KnownPrefix(
        "mpirun --tag-output, PRRTE, SageMaker",
        "[1,3]<stderr>:",
        r"\[(?:1|[\w.@-]+(?=,[^\]]{1,80}\]<std)),(?:mpirank:)?(?P<task>\d{1,6})(?:,(?P<host>[\w.-]+))?\](?:<std(?:out|err)>)?: ?",
    ),
    KnownPrefix("horovodrun", "[3]<stderr>:", r"\[(?P<task>\d{1,6})\]<std(?:out|err)>: ?"),
    # Launchers and scripts that print host and rank in one pair of brackets.
    KnownPrefix(
        "host and local rank, also of torchrun's --role with the host's name",
        "[gpu-3:2] ",
        rf"\[(?P<stream_host>{_NUMBERED}):(?P<local_rank>\d{{1,2}})\](?::| ?(?=\S)(?=[A-Z]|(?<= ))|(?= {{2,}}\S))",
    ),
    KnownPrefix(
        "host and rank",
        "[node-12|rank=3] ",
        rf"[\[(](?P<stream_host>{_NUMBERED}) ?[:/|@,] ?(?:global_)?(?i:rank)[ =:_]?(?P<rank>\d{{1,6}})[\])]:? ?",
    ),
    KnownPrefix(
        "host and GPU",
        "[node-12:gpu3] ",
        rf"[\[(](?P<stream_host>{_NUMBERED}) ?[:/|@,] ?(?i:gpu|local_?rank)[ =:_]?(?P<local_rank>\d{{1,2}})[\])]:? ?",
    ),
    KnownPrefix(
        "rank and host",
        "[rank 3 @ gpu-7] ",
        rf"[\[(](?i:rank)[ =:_]?(?P<rank>\d{{1,6}}) ?[:/|@,] ?(?P<stream_host>{_NUMBERED})[\])]:? ?",
    ),
    KnownPrefix(
        "keys and values, a rank among them",
        "[rank=3 host=gpu-7] ",
        rf"\[(?:\w+ )?(?=[^\]]{{0,80}}rank[=:])(?P<keys>{_KEYS}[=:][\w.-]+(?:[ ,|;]+{_KEYS}[=:][\w.-]+){{1,5}})\]:? ?",
    ),
    KnownPrefix("Open MPI: host and process", "[gpu-3:12345] ", rf"\[(?P<host>{_HOST}):\d{{3,7}}\] "),
    KnownPrefix(
        "SkyPilot, whose rank is the node's",
        "(worker1, rank=1, pid=1234, ip=10.0.0.3) ",
        r"\((?P<stream>[\w.-]+), (?:rank=(?P<node_rank>\d{1,5}), )?pid=(?P<pid>\d+)(?:, ip=(?P<host>[\w.:]+))?\) ?",
    ),
    KnownPrefix(
        "Ray, vLLM's workers",
        "(RayTrainWorker pid=1234, ip=10.0.0.3) ",
        r"\((?=(?:Vllm)?Worker_TP(?P<tp_rank>\d{1,4})[_ ]|)(?:(?P<actor>[A-Za-z_][\w.:-]*(?:\([\w =,.]*\))?) )?(?:rank=(?P<rank>\d{1,6}) )?"
        r"(?:pid|ip)=(?P<pid>[\d.]+)(?:, ip=(?P<host>[\w.:]+))?\) ?",
    ),
    KnownPrefix(
        "Ray's own processes",
        "(raylet, ip=10.0.0.3) ",
        r"\((?:raylet|autoscaler|gcs_server)(?:, ip=(?P<host>[\w.:]+))?\) ",
    ),
    KnownPrefix(
        "vLLM",
        "ERROR 05-01 09:00:00 engine.py:12] ",
        r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? \[?[\w./-]+:\d+\] ?",
    ),
    KnownPrefix(
        "tools that quote another's output; pytest; GitHub",
        "stderr: ",
        r"stderr: |\[stderr\] |E {3}(?= *\S)|##\[error\]",
    ),
    # Ranks of data and pipeline groups come before the rank of the tensor group, which counts over all nodes.
    KnownPrefix(
        "SGLang",
        "[2026-05-01 09:00:00 DP0 TP3] ",
        rf"\[(?P<time>{STAMP})(?: [DP]P\d+)* TP(?P<rank>\d{{1,4}})(?: EP\d+)?\] ",
    ),
    KnownPrefix("Ray, of lines left out", "[repeated 3x across cluster] ", r"\[repeated \d+x across cluster\] ?"),
    KnownPrefix("Kaggle's viewer: seconds and the line's number", "704.7s\t1459\t", r"\d{1,6}\.\ds\t\d{1,7}\t"),
    KnownPrefix(
        "a colour whose escape character a web form took away or spelled",
        "^[[31m",
        r"(?:(?:\^\[|\\(?:x1[bB]|u001[bB]|0?33|e)|[␛\ufffd])\[|\[(?!m\w))\d{0,2}(?:;\d{1,3})*m ?",
    ),
)
TORCH_RANK = lazy_regex(_TORCH.regex)


def _group(name: str, number: int) -> str:
    """Returns the name of a group in the regex of all prefixes, in which each name must be unique."""
    return f"{name}_{number}"


def _numbered(prefix: KnownPrefix, number: int) -> str:
    return re.sub(r"\(\?P<(\w+)>", lambda found: f"(?P<{_group(found[1], number)}>", prefix.regex)


def _fields() -> dict[str | None, tuple[tuple[str, str], ...]]:
    fields: dict[str | None, tuple[tuple[str, str], ...]] = {None: (), "torch_rank": (("torch_rank", "torch_rank"),)}
    for number, prefix in enumerate(KNOWN):
        pairs = [(name, _group(name, number)) for name in re.findall(r"\?P<(\w+)>", prefix.regex)]
        fields |= {group: tuple(pairs[: at + 1]) for at, (_, group) in enumerate(pairs)}
    return fields


_PREFIXES = lazy_regex(rf"\s?(?:{'|'.join(_numbered(prefix, number) for number, prefix in enumerate(KNOWN))})")
# Maps the last group of a match to (meaning, group) for the groups of its prefix up to that one. None has no meaning.
FIELDS = _fields()
# Text that a logger prints before each line of a worker that it passes on. The worker's own label follows.
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
PASSED_ON = lazy_regex(
    rf"(?:[-|] )?(?:[\[(<*]{{0,2}}(?:{_LEVEL}\b|\d{{2,4}}[-/:]\d\d|[A-Z]\d{{4}} |(?i:level|std(?:out|err)|time|ts)\b)|\[(?=[^\n]{{0,100}}?(?:{_LEVEL}|\d\d:\d\d))|[\w.]+ ?[-|:] ?\[?{_LEVEL}\b)"
    r"[^\n\"'{}]{0,120}?(?=\[(?:rank|default)\d{1,6}\]:)"
)
_OPENING = frozenset("[({<#:0123456789^\\␛\ufffd")
_LEVELS = ("DEBUG ", "INFO ", "WARNING ", "ERROR ", "CRITICAL ", "stderr: ")


def prefix_of(text: str) -> re.Match[str] | None:
    """Returns the match of a known prefix at the start of a text. It may be empty. `FIELDS` says what its groups
    mean."""
    # Nearly all lines of failing workers begin with their rank, and one regex is faster than all.
    if text.startswith("[rank") and (ranked := TORCH_RANK.match(text)):
        return ranked
    return _PREFIXES.match(text) if may_begin(text) else None


def may_begin(text: str) -> bool:
    """Returns whether a text may begin with a prefix. Most lines have none, and the regex takes five times as long to
    decide that."""
    first = text[:1]
    if first in _OPENING:
        return True
    if first.isspace():
        return text[:2] != "  "  # usually the body of a traceback
    return text[3:4] == " " or "]: " in text or "@" in text or text.startswith(_LEVELS)


def is_own(found: re.Match[str]) -> bool:
    """Returns whether a worker itself printed a prefix, and not a collector."""
    fields = FIELDS[found.lastgroup]
    return bool(fields) and fields[-1][0] in OWN
