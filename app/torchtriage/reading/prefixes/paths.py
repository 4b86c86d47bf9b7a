"""Derives attempt, rank, local rank and host of all lines of a file from its path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from torchtriage.domain.host import host_name
from torchtriage.lazy_regex import lazy_regex

# torchrun --log-dir: <host or nothing>/<run id>_<random>/attempt_0/3/stderr.log
_TREE = lazy_regex(r"(?:^|(?P<root>.*)/)attempt_(?P<attempt>\d{1,6})/(?P<local>\d{1,6})/[^/]+$")
_LAUNCH = lazy_regex(r"(?:^|/)node_(\d{1,6})_local_rank_(\d{1,6})_std(?:out|err)$")  # torch.distributed.launch --logdir
# nemo_log_globalrank-3_localrank-3.txt, rank3.log, log_rank_3.txt, 1/rank.03/stdout (mpirun --output-filename)
_RANK = lazy_regex(
    r"(?:^|[/_.-])(?:global_?|log_?)?(?:rank|std_log_process|proc(?:ess)?)[_.-]?(\d{1,6})(?=[/_.-]|$)", re.I
)
# Paddle: log/workerlog.3, on each host
_LOCAL_RANK = lazy_regex(r"(?:^|[/_.-])(?:local_?rank[_.-]?|workerlog\.)(\d{1,6})(?=[/_.-]|$)", re.I)
# Slurm: %j_%t.out, %x-%j-%t.err, %x-%j-%N-%t.err, %x_%j_%N.out, %j-%t-%N.out; submitit: %j_%t_log.err
_HOST_TASK = lazy_regex(
    r"(?:^|[/_.-])\d{2,}[_.-](?P<host>[A-Za-z][A-Za-z0-9-]*\d)[_.-](?P<task>\d{1,6})\.(?:out|err|log)$"
)
_TASK_HOST = lazy_regex(
    r"(?:^|[/_.-])\d{3,}[_.-](?P<task>\d{1,6})[_.-](?P<host>[A-Za-z][A-Za-z0-9-]*\d)\.(?:out|err|log)$"
)
_TASK = lazy_regex(r"(?:_|(?:^|[/_-])\d{3,}[.-])(?P<task>\d{1,6})(?:_log)?\.(?:out|err)$")
_NODE_FILE = lazy_regex(r"(?:^|[/_.-])\d{3,}[_.-](?P<host>[A-Za-z][A-Za-z0-9-]*\d)\.(?:out|err|log)$")
# /var/log/pods/NAMESPACE_POD_UID/CONTAINER/RESTARTS.log, /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log
_POD_FOLDER = lazy_regex(r"(?:^|/)[a-z0-9-]+_(?P<pod>[a-z0-9.-]+)_[0-9a-f-]{8,36}/[^/]+/(?P<restarts>\d{1,4})\.log")
_POD_FILE = lazy_regex(r"(?:^|/)(?P<pod>[a-z0-9.-]+)_[a-z0-9-]+_[a-z0-9.-]+-[0-9a-f]{64}\.log$")
_POD_NAME = lazy_regex(
    r"(?:^|/)(?P<pod>[a-z0-9][a-z0-9.-]*-(?:master|worker|launcher|node|workers)-\d{1,5}(?:-\d{1,5})?(?:-[a-z0-9]{5})?)(?=/|\.(?:log|txt)$)"
)
_HOST = lazy_regex(
    r"(?:^|/)(?P<host>(?:node|host|gpu-|dgx|hgx|compute|ip-|algo-)-?[a-z0-9.-]{0,40}?\d)(?=/|\.(?:log|out|err|txt)$|-\d{10}\b|[_.-](?:global_?|local_?)?rank)", re.I
)  # fmt: skip
_DIGITS = lazy_regex(r"\d+")
_MAX_DIGITS = 9
# Numbered things that are not processes: launches, tasks of an array, parts of one log.
_NO_TASK = lazy_regex(
    r"(?i)(?:attempt|restart|retry|run|job|trial|epoch|step|part|shard|seed|fold|exp|version|v|phase|stage)[_.-]?$"
)
# stdout.log, stderr.log and error.json of a folder; 4711_3.out next to 4711_3.err
_CHANNEL = lazy_regex(r"(?:^|(?<=[/_.-]))(?:(?:std)?(?:out|err)(?:\.log|\.txt)?|error\.json)$")


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The values that a file's path gives to all its lines, None if unknown. `file` is None in a run of one file. `log`
    is the rotated log of which the file is a piece."""

    file: str | None
    rank: int | None = None
    local_rank: int | None = None
    attempt: int = 0
    host: str | None = None
    pod: str | None = None
    node: int | None = None
    log: str | None = None


class FileOrigins:
    """The origins of a run's files. `names` are those that are known from the start; others can follow."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        names = tuple(names)
        self._roots: dict[str, None] = {}
        self._numbered = _numbered(names)
        for name in names:
            if tree := _TREE.search(name):
                self._roots.setdefault(tree["root"] or "")

    @property
    def of_torchrun(self) -> bool:
        """Whether a file is where torchrun's `--log-dir` puts it."""
        return bool(self._roots)

    def of(self, name: str, several: bool) -> FileOrigin:
        """Returns the origin for the path `name` inside the run. Empty if the run is a single file."""
        if not several:
            return FileOrigin(None)
        origin = _origin(name)
        origin = replace(origin, host=host_name(origin.host))
        if name in self._numbered and {origin.rank, origin.local_rank, origin.host, origin.node} == {None}:
            number = self._numbered[name]
            origin = replace(origin, rank=number, node=number)  # the number is a node if an agent writes to the file
        tree = _TREE.search(name)
        if tree is None:
            return origin
        self._roots.setdefault(tree["root"] or "")
        local = int(tree["local"])
        origin = replace(origin, local_rank=local, attempt=int(tree["attempt"]))
        if len(self._roots) > 1:  # one folder per host: its name is the part in which they differ
            return replace(origin, rank=None, host=origin.host or self._host(tree["root"] or ""))
        return replace(origin, rank=local)  # on a single host, the local rank is the rank

    def _host(self, root: str) -> str | None:
        first = root.partition("/")[0]
        several = len({other.partition("/")[0] for other in self._roots}) > 1
        return host_name(first) if first != root and several else None


def writer_of(name: str) -> str:
    """Returns the common part of the names of all files that one process writes."""
    return _CHANNEL.sub("", name)


def _numbered(names: Iterable[str]) -> dict[str, int]:
    """Returns, for files whose names differ only in one number that counts from 0, that number."""
    same_but_numbers: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for name in names:
        if name.rpartition("/")[2].startswith("slurm-"):
            continue  # usually the tasks of an array
        same_but_numbers.setdefault(tuple(_DIGITS.split(name)), {})[name] = [
            int(number[:_MAX_DIGITS]) for number in _DIGITS.findall(name)
        ]
    found: dict[str, int] = {}
    for parts, files in same_but_numbers.items():
        columns = [at for at, column in enumerate(zip(*files.values(), strict=True)) if len(set(column)) > 1]
        if len(columns) == 1 and not _NO_TASK.search(parts[columns[0]]):
            numbers = {name: values[columns[0]] for name, values in files.items()}
            found |= numbers if sorted(numbers.values()) == list(range(len(numbers))) else {}
    return found


def _origin(name: str) -> FileOrigin:
    origin = FileOrigin(name)
    if launch := _LAUNCH.search(name):
        return replace(origin, node=int(launch[1]), local_rank=int(launch[2]))
    if pod := _POD_FOLDER.search(name):
        return replace(origin, pod=pod["pod"], host=pod["pod"], attempt=int(pod["restarts"]))
    if pod := _POD_FILE.search(name) or _POD_NAME.search(name):
        return replace(origin, pod=pod["pod"], host=pod["pod"])
    if local := _LOCAL_RANK.search(name):
        origin = replace(origin, local_rank=int(local[1]))
    if rank := _RANK.search(name):
        origin = replace(origin, rank=int(rank[1]))
    # By default, Slurm names the tasks of an array slurm-%A_%a.out, and Ray a worker's file worker-ID-JOB-PID.err.
    elif not name.rpartition("/")[2].startswith(("slurm-", "worker-")):
        origin = _task(name, origin)
    host = _HOST.search(name) or (_NODE_FILE.search(name) if origin.rank is None else None)
    if origin.host is None and host:
        origin = replace(origin, host=host["host"])
    return origin


def _task(name: str, origin: FileOrigin) -> FileOrigin:
    if found := _HOST_TASK.search(name) or _TASK_HOST.search(name):
        return replace(origin, rank=int(found["task"]), host=found["host"])
    found = _TASK.search(name)
    return replace(origin, rank=int(found["task"])) if found else origin
