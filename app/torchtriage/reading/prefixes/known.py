"""The prefixes that are known on sight, as their writers put them: one regex whose groups say what each part tells."""

from __future__ import annotations

import re

from torchtriage.reading.prefixes.times import CTIME, STAMP, SYSLOG

_PROGRAM = r"[\w./@-]+\[\d+\]: ?"
_HOST = r"[A-Za-z][\w.-]*"
_NUMBERED = r"[A-Za-z](?=(?:[^\W\d]|[.-]){0,62}\d)[\w.-]{1,63}"  # a host's name with a number in it
_KEYS = r"(?:(?:global_|local_|node_)?rank|world_size|host(?:name)?|node|pid|role|gpu)"
# torch >= 2.2: uncaught exceptions and C++ logs; Lightning
_RANK = r"\[rank[:=]? ?(?P<rank>\d{1,6})\](?:: ?| )(?:\|\| )?"
# Order matters: outer writers (container, journal) come before inner ones (launcher, rank). Above each kind: its forms.
_FORMS = (
    rf"<\d{{1,3}}>\d (?P<rfctime>{STAMP}) (?P<rfchost>[\w.-]+) [\w./@-]+ (?:\d+|-) [\w-]+ - ",  # syslog (RFC 5424)
    # docker -t, kubectl --timestamps, CRI, CI runners; journalctl -o short-iso, short-full
    rf"(?:[A-Z][a-z]{{2}} )?(?P<time>{STAMP})(?: UTC)?(?: std(?:out|err) [FP])?(?: \d\d[OE]\+?)?"
    rf"(?:[ \t](?P<isojournal>[\w.-]+) {_PROGRAM}|[ \t]|$|(?=: rank\d+\[\d+\]))",
    r"\[(?P<bracketed>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)\] ",  # Jenkins, Determined
    r"\[pod/(?P<pod>[^/\]\s]+)/[^\]\s]+\] ",  # kubectl logs --prefix
    r"[a-z0-9-]+/(?P<kail>[a-z0-9][a-z0-9.-]*)\[[a-z0-9-]+\]: ",  # kail
    r"[\w.-]+\.\d+\.[a-z0-9]{10,25}@(?P<swarm>[\w.-]+)\s+\| ?",  # docker service logs
    # journalctl, syslog, ts
    rf"(?:<\d{{1,3}}>)?(?P<syslog>{SYSLOG}) (?:(?P<journal>[\w.-]+) (?:{_PROGRAM}|[a-z][\w./@-]*: ))?",
    rf"\[ *\d+\.\d{{6}}\] (?P<monotonic>[\w.-]+) {_PROGRAM}",  # journalctl -o short-monotonic
    r'\{(?P<loki>[A-Za-z_]\w*="[^"\n]*"(?:, ?[A-Za-z_]\w*="[^"\n]*")*)\}\s+',  # logcli
    r"\[(?:default|trainer|worker|role_\w+)(?P<local>\d{1,6})\]:",  # torchrun --tee: role name and local rank
    # the same with TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE
    r"\[{1,3}(?:default|trainer|worker)-?(?P<ownlocal>\d{1,6})[-|](?P<ownrank>\d{1,6})\]{1,3}:? ?",
    r"\[(?:default|trainer|worker)[-_ ]?rank[-_ ]?(?P<rolerank>\d{1,6})\]:? ?",
    _RANK,
    r"\[?[0-9a-f]{8}\]? (?:\[rank=(?P<trialrank>\d{1,6})\] )?\|\| (?:[A-Z]{4,8}: (?=Traceback))?",  # Determined
    r"(?:: )?rank(?P<composerrank>\d{1,6})\[\d+\]\[\w+\]: [A-Z]{4,8}: [\w.]+: ",  # composer
    # mpirun --tag-output, with --timestamp-output too; PRRTE's, SageMaker's, horovodrun's
    rf"(?P<ctime>{CTIME})(?=\[[\d,]+\]<std)",
    r"\[(?:1|[\w.@-]+(?=,[^\]]{1,80}\]<std)),(?:mpirank:)?(?P<mpi>\d{1,6})(?:,(?P<mpihost>[\w.-]+))?\](?:<std(?:out|err)>)?: ?",
    r"\[(?P<horovod>\d{1,6})\]<std(?:out|err)>: ?",
    # launchers and scripts that write host and rank into one bracket: [host:local rank], also of torchrun's --role with
    # the host's name, [host|rank=3], [rank 3 @ host]
    rf"\[(?P<nodehost>{_NUMBERED}):(?P<nodelocal>\d{{1,2}})\](?::| ?(?=\S)(?=[A-Z]|(?<= ))|(?= {{2,}}\S))",
    rf"[\[(](?P<taghost>{_NUMBERED}) ?[:/|@,] ?(?:global_)?(?i:rank)[ =:_]?(?P<tagrank>\d{{1,6}})[\])]:? ?",
    rf"[\[(](?P<gpuhost>{_NUMBERED}) ?[:/|@,] ?(?i:gpu|local_?rank)[ =:_]?(?P<gpulocal>\d{{1,2}})[\])]:? ?",
    rf"[\[(](?i:rank)[ =:_]?(?P<rankfirst>\d{{1,6}}) ?[:/|@,] ?(?P<hostlast>{_NUMBERED})[\])]:? ?",
    rf"\[(?:\w+ )?(?=[^\]]{{0,80}}rank[=:])(?P<keys>{_KEYS}[=:][\w.-]+(?:[ ,|;]+{_KEYS}[=:][\w.-]+){{1,5}})\]:? ?",
    rf"\[(?P<mpinode>{_HOST}):\d{{3,7}}\] ",  # Open MPI: [host:pid]
    # SkyPilot: its rank is the node's
    r"\((?P<skynode>[\w.-]+), (?:rank=(?P<skyrank>\d{1,5}), )?pid=(?P<skypid>\d+)(?:, ip=(?P<skyip>[\w.:]+))?\) ?",
    # Ray, vLLM
    r"\((?=(?:Vllm)?Worker_TP(?P<vllmrank>\d{1,4})[_ ]|)(?:(?P<actor>[A-Za-z_][\w.:-]*(?:\([\w =,.]*\))?) )?(?:rank=(?P<actorrank>\d{1,6}) )?"
    r"(?:pid|ip)=(?P<pid>[\d.]+)(?:, ip=(?P<ip>[\w.:]+))?\) ?",
    r"\((?:raylet|autoscaler|gcs_server)(?:, ip=(?P<rayip>[\w.:]+))?\) ",
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<vllm>\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? \[?[\w./-]+:\d+\] ?",  # vLLM
    r"stderr: |\[stderr\] |E {3}(?= *\S)|##\[error\]",  # tools that quote another's output; pytest; GitHub
    # SGLang: DP and PP ranks stand before that of the tensor group, which counts over all nodes
    rf"\[(?P<sgltime>{STAMP})(?: [DP]P\d+)* TP(?P<tprank>\d{{1,4}})(?: EP\d+)?\] ",
    r"\[repeated \d+x across cluster\] ?",
    r"\d{1,6}\.\ds\t\d{1,7}\t",  # Kaggle's viewer: seconds and the line's number
    # a colour whose escape character a web form took away or spelled
    r"(?:(?:\^\[|\\(?:x1[bB]|u001[bB]|0?33|e)|[␛\ufffd])\[|\[(?!m\w))\d{0,2}(?:;\d{1,3})*m ?",
)
_PREFIXES = re.compile(rf"\s?(?:{'|'.join(_FORMS)})")
_NAMES = [re.findall(r"\?P<(\w+)>", form) for form in _FORMS]
# Of each group those that can tell something where it is the last one that does: the form's, up to it.
TOLD_BY = {name: tuple(names[: at + 1]) for names in _NAMES for at, name in enumerate(names)}
# What a group tells.
RANKS = frozenset(
    ("ownrank", "rolerank", "trialrank", "composerrank", "mpi", "horovod", "tagrank", "rankfirst", "actorrank",
     "tprank", "vllmrank")
)  # fmt: skip
NODES = frozenset({"skyrank", "mpi", "horovod"})  # each task can be a launcher that starts workers
LOCALS = frozenset({"local", "ownlocal", "nodelocal", "gpulocal"})
TIMES = frozenset({"time", "rfctime", "bracketed", "syslog", "ctime", "vllm", "sgltime"})
PODS = frozenset({"pod", "kail"})
HOSTS = frozenset(
    {"pod", "kail", "swarm", "rfchost", "journal", "isojournal", "monotonic", "nodehost", "taghost", "gpuhost", "hostlast",
     "mpinode", "mpihost", "ip", "rayip", "skyip"}
)  # fmt: skip
# Each one's lines are a stream.
WRITERS = frozenset({"pod", "kail", "swarm", "nodehost", "taghost", "gpuhost", "hostlast", "skynode"})
# What a logger puts before each line of a worker that it passes on; the worker's own label follows.
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
PASSED_ON = re.compile(
    rf"(?:[-|] )?(?:[\[(<*]{{0,2}}(?:{_LEVEL}\b|\d{{2,4}}[-/:]\d\d|[A-Z]\d{{4}} |(?i:level|std(?:out|err)|time|ts)\b)|\[(?=[^\n]{{0,100}}?(?:{_LEVEL}|\d\d:\d\d))|[\w.]+ ?[-|:] ?\[?{_LEVEL}\b)"
    r"[^\n\"'{}]{0,120}?(?=\[(?:rank|default)\d{1,6}\]:)"
)
_OPENING = frozenset("[({<#:0123456789^\\␛\ufffd")
_LEVELS = ("DEBUG ", "INFO ", "WARNING ", "ERROR ", "CRITICAL ", "stderr: ")


RANKED = re.compile(_RANK)


def prefix_of(text: str) -> re.Match[str] | None:
    """-> what stands before a text, as the match of a group that says which form it has; it can be empty."""
    # Nearly all lines that failing workers write begin with their rank, and one form is quicker than all of them.
    if text.startswith("[rank") and (ranked := RANKED.match(text)):
        return ranked
    return _PREFIXES.match(text) if may_begin(text) else None


def may_begin(text: str) -> bool:
    """-> whether one of the prefixes can stand at the beginning of a text. Before most lines stands none, and the regex
    takes five times as long to say so."""
    first = text[:1]
    if first in _OPENING:
        return True
    if first.isspace():
        return text[:2] != "  "  # the body of a traceback, most often
    return text[3:4] == " " or "]: " in text or "@" in text or text.startswith(_LEVELS)
