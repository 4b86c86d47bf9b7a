#!/usr/bin/env python3
"""Reports failed training runs to a torchtriage service. One file, Python 3.8 or newer, standard library only.

    torchtriage-client run -- torchrun --nproc-per-node 8 train.py     # or: python3 torchtriage_client.py run -- …
    torchtriage-client watch -- torchrun --nproc-per-node 8 train.py   # the same, and reports while it hangs
    torchtriage-client report slurm-4711.out

`run` runs the command unchanged. If it fails, its output and that of its ranks are sent to $TORCHTRIAGE_URL, and the
verdict is printed at the end of the job's log. A report that cannot be delivered is kept in a folder, the spool, until
`flush` or the next `run` delivers it. Errors of the client never change the exit status of the job; they are one line
on standard error.
"""

from __future__ import annotations

import argparse
import ast
import calendar
import contextlib
import errno
import fcntl
import glob
import io
import itertools
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import threading
import time
from typing import IO, Any, Callable, ContextManager, Dict, Iterable, Iterator, NamedTuple, Sequence, Tuple, Union

__version__ = "0.2.0"

MB = 1 << 20
_CONNECTING = 5  # seconds to connect to the service
_SPOOLED = 2048 * MB  # maximum bytes in one spool folder
_FILE = 64 * MB  # maximum bytes sent of one file: its first quarter and its end
_BETWEEN = 30  # seconds between two checks of the size of the ranks' logs
_ABANDONED = 86400  # seconds without a change after which a file is considered abandoned
_SAMPLE = 64 << 10
_TEXT = bytes(range(32, 256)) + b"\0\t\n\r\x0b\x0c\x1b\x08\x07"
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_LOG_NAME = re.compile(r"(\.(log|out|err|txt|jsonl?|std(out|err)|[oe]\d+)(\.\d+)?(\.gz|\.zst)?|/[^.]+)$", re.I)
_KINDS = ("explained", "unexplained", "healthy", "inconclusive")
_INCONCLUSIVE = 13
_RESTART = 10  # exit status if a restart can help
_DECIDED = {"stop": 11, "wait": 14}  # exit status of each action; all other actions are restarts
_STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP")
_NOT_FAILED = ("healthy", "inconclusive")  # outcomes in which the log shows no failure


def say(text: str) -> None:
    """Prints one line on standard error, and ignores it if that fails."""
    with contextlib.suppress(OSError, ValueError):
        print("torchtriage-client: " + text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- settings

_FIELDS = ("job_id", "job_name", "cluster", "scheduler", "user", "queue", "attempt", "node_rank", "nodes", "exit_code",
           "state", "started_at", "ended_at", "gpus", "image", "commit", "url")  # fmt: skip
Facts = Dict[str, str]


class Settings(NamedTuple):
    """Where to report, within which limits, and what the user says about the job."""

    url: str
    token: str
    spool: str
    scratch: str  # folder for the captured output while a job runs
    wait: float  # seconds to wait for the verdict
    timeout: float  # maximum seconds for the whole report
    max_bytes: int
    tee: bool
    facts: Facts
    labels: list[str]
    gather: bool = True  # whether to gather logs and GPU state of this host after a failure


def settings_of(options: argparse.Namespace, timeout: float) -> Settings:
    """Returns the settings of the options, or of the environment for options not given. Raises ValueError with a
    message for people."""

    def given(name: str, default: str = "") -> str:
        return str(getattr(options, name, None) or os.environ.get("TORCHTRIAGE_" + name.upper(), "") or default)

    try:
        wait, limit = float(given("wait", "10")), float(given("timeout", str(timeout)))
        max_bytes = int(given("max_bytes", str(256 * MB)))
    except ValueError as error:
        raise ValueError(
            f"TORCHTRIAGE_WAIT, TORCHTRIAGE_TIMEOUT and TORCHTRIAGE_MAX_BYTES must be numbers: {error}"
        ) from None
    url = given("url").rstrip("/")
    if url and not url.startswith(("http://", "https://")):
        raise ValueError("TORCHTRIAGE_URL: not a URL that starts with http:// or https://: " + url)
    names = {name: "job_" + name if name in ("url", "exit_code") else name for name in _FIELDS}
    facts = {name: text for name, key in names.items() if (text := given(key))}
    if getattr(options, "node", None) is not None:  # only one node of the run reports
        facts.setdefault("nodes", "1")
    labels = [*os.environ.get("TORCHTRIAGE_LABELS", "").split(","), *(getattr(options, "label", None) or [])]
    return Settings(
        url,
        given("token"),
        given("spool") or os.path.expanduser("~/.cache/torchtriage/spool"),
        given("scratch") or own_folder(tempfile.gettempdir()),
        max(0.0, min(wait, 60.0)),
        max(1.0, limit),
        max(MB, max_bytes),
        given("tee", "yes").lower() not in ("no", "0", "off", "false"),
        facts,
        [label.strip() for label in labels if ":" in label],
        given("gather", "yes").lower() not in ("no", "0", "off", "false"),
    )


def own_folder(parent: str) -> str:
    """Returns a folder of this user below `parent`, which everyone may write to. If another user could control it,
    creates one with a random name instead."""
    path = os.path.join(parent, f"torchtriage-{os.getuid()}")
    with contextlib.suppress(OSError):
        os.makedirs(path, 0o700, exist_ok=True)
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            return tempfile.mkdtemp(prefix="torchtriage-", dir=parent)
    return path


# ---------------------------------------------------------------- facts about the job

# The scheduler is the first one whose marker variable is set. Each fact comes from the first of its variables that is
# set.
_SCHEDULERS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("slurm", "SLURM_JOB_ID", {
        "job_id": "SLURM_JOB_ID", "job_name": "SLURM_JOB_NAME", "cluster": "SLURM_CLUSTER_NAME",
        "user": "SLURM_JOB_USER", "queue": "SLURM_JOB_PARTITION", "attempt": "SLURM_RESTART_COUNT",
        "node_rank": "SLURM_NODEID", "gpus": "SLURM_GPUS_ON_NODE",
        "nodes": "SLURM_STEP_NUM_NODES SLURM_JOB_NUM_NODES SLURM_NNODES",
        "image": "SLURM_CONTAINER_IMAGE SLURM_CONTAINER"}),
    ("skypilot", "SKYPILOT_TASK_ID", {
        "job_id": "SKYPILOT_TASK_ID", "job_name": "SKYPILOT_TASK_NAME", "node_rank": "SKYPILOT_NODE_RANK",
        "gpus": "SKYPILOT_NUM_GPUS_PER_NODE", "nodes": "SKYPILOT_NUM_NODES", "user": "SKYPILOT_USER"}),
    ("ray", "RAY_JOB_CONFIG_JSON_ENV_VAR", {}),
    ("kubernetes", "KUBERNETES_SERVICE_HOST", {
        "job_name": "JOBSET_NAME TRAINJOB_NAME JOB_NAME", "attempt": "JOBSET_RESTART_ATTEMPT RESTART_ATTEMPT",
        "node_rank": "PET_NODE_RANK JOB_COMPLETION_INDEX VC_TASK_INDEX VK_TASK_INDEX", "nodes": "PET_NNODES",
        "cluster": "CLUSTER_NAME", "queue": "KUEUE_QUEUE QUEUE_NAME", "image": "CONTAINER_IMAGE"}),
    ("lsf", "LSB_JOBID", {"job_id": "LSB_JOBID", "job_name": "LSB_JOBNAME", "queue": "LSB_QUEUE"}),
    ("pbs", "PBS_JOBID", {"job_id": "PBS_JOBID", "job_name": "PBS_JOBNAME", "queue": "PBS_QUEUE"}),
)  # fmt: skip
_ANYWHERE = {
    "user": "USER LOGNAME", "node_rank": "PET_NODE_RANK GROUP_RANK NODE_RANK", "nodes": "PET_NNODES NNODES",
    "attempt": "TORCHELASTIC_RESTART_COUNT", "commit": "GIT_COMMIT GITHUB_SHA CI_COMMIT_SHA",
    "image": "APPTAINER_CONTAINER SINGULARITY_CONTAINER", "url": "CI_JOB_URL BUILD_URL",
}  # fmt: skip
# What controllers append to a job's name to get the names of its pods: -worker-3, -node-0-3-x7k2p, -3-x7k2p, -x7k2p,
# -task-3
_POD_ENDING = re.compile(
    r"-(?:master|worker|chief|ps|launcher|evaluator)-\d+$|-[a-z0-9]+-\d+-\d+-[a-z0-9]{5}$|-\d+-[a-z0-9]{5}$|-[a-z0-9]{5}$|-[a-z0-9]+-\d+$"
)
_NUMBERS = ("attempt", "node_rank", "gpus", "nodes", "exit_code")


def facts_here() -> tuple[Facts, list[str]]:
    """Returns the facts about this job that the environment variables give, and labels."""
    scheduler, known = "", {}  # type: str, Dict[str, str]
    for name, mark, table in _SCHEDULERS:
        if os.environ.get(mark):
            scheduler, known = name, table
            break
    facts = {**_facts_from(_ANYWHERE), **_facts_from(known)}
    labels = ["host:" + socket.gethostname()]
    if scheduler:
        facts["scheduler"] = scheduler
    if scheduler == "slurm":
        _slurm(facts, labels)
    elif scheduler == "kubernetes":
        _kubernetes(facts, labels)
    elif scheduler == "ray":
        _ray(facts)
    elif scheduler == "skypilot":
        with contextlib.suppress(ValueError, AttributeError):
            facts["cluster"] = str(json.loads(os.environ.get("SKYPILOT_CLUSTER_INFO", "")).get("cluster_name", ""))
    facts.setdefault("gpus", _gpus_here())
    return facts, labels


def _facts_from(table: dict[str, str]) -> Facts:
    found = {}
    for name, variables in table.items():
        values = [os.environ[variable] for variable in variables.split() if os.environ.get(variable)]
        if name in _NUMBERS:
            values = [value for value in values if value.isdigit()]
        if values:
            found[name] = values[0]
    return found


def _slurm(facts: Facts, labels: list[str]) -> None:
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        facts["job_id"] = f"{array}_{task}"
    facts.setdefault("attempt", "0")  # Slurm sets the variable only after the first restart
    for label, variable in (
        ("account", "SLURM_JOB_ACCOUNT"),
        ("nodes", "SLURM_JOB_NODELIST"),
        ("step", "SLURM_STEP_ID"),
    ):
        if os.environ.get(variable):
            labels.append(f"{label}:{os.environ[variable]}")


def _kubernetes(facts: Facts, labels: list[str]) -> None:
    pod = os.environ.get("POD_NAME") or socket.gethostname()
    space = os.environ.get("POD_NAMESPACE", "")
    if not space:
        with contextlib.suppress(OSError), open("/var/run/secrets/kubernetes.io/serviceaccount/namespace") as file:
            space = file.read().strip()
    if "node_rank" not in facts and os.environ.get("RANK", "").isdigit() and "LOCAL_RANK" not in os.environ:
        facts["node_rank"] = os.environ["RANK"]  # the PyTorchJob operator numbers its pods this way
        if os.environ.get("WORLD_SIZE", "").isdigit():
            facts.setdefault("nodes", os.environ["WORLD_SIZE"])
    facts.setdefault("job_name", _POD_ENDING.sub("", pod))
    facts.setdefault("job_id", os.environ.get("JOB_UID") or "/".join(filter(None, (space, facts["job_name"]))))
    labels += ["pod:" + pod, *(["namespace:" + space] if space else [])]
    if os.environ.get("NODE_NAME"):
        labels.append("node:" + os.environ["NODE_NAME"])


def _ray(facts: Facts) -> None:
    with contextlib.suppress(ValueError, AttributeError):
        metadata = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"]).get("metadata") or {}
        facts.update(job_id=str(metadata.get("job_submission_id", "")), job_name=str(metadata.get("job_name", "")))


def _gpus_here() -> str:
    """Returns the number of GPUs that the job can use on this host, as text; empty if unknown."""
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        shown = os.environ.get(name, "")
        if shown and shown not in ("all", "none", "void", "NoDevFiles"):
            return str(len(shown.split(",")))
    return str(len(glob.glob("/dev/nvidia[0-9]*")) or "")


def _commit_here() -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=2
        )
        return done.stdout.decode().strip() if done.returncode == 0 else ""
    return ""


def query_of(settings: Settings, facts: Facts, labels: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the parameters of the request, in the form that the service accepts. Facts given by the user override
    those found."""
    parameters = {**facts, **settings.facts}
    if not parameters.get("job_id"):
        parameters["job_id"] = f"{socket.gethostname()}-{int(time.time())}-{os.getpid()}"
    query = [(name, _plain(parameters[name])) for name in _FIELDS if parameters.get(name)]
    query = [(name, text) for name, text in query if name not in _NUMBERS or text.lstrip("-").isdigit()]
    return query + [
        ("label", _plain(label)) for label in [*labels, *settings.labels][:50] if label.split(":", 1)[1].strip()
    ]


def _plain(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)[:500]


# ---------------------------------------------------------------- bundles

Piece = Union[bytes, Tuple[str, int, int]]  # bytes, or a file with the start and end offset of a part


class Member(NamedTuple):
    """One file of a bundle, as a list of pieces."""

    name: str
    pieces: list[Piece]

    @property
    def size(self) -> int:
        return sum(map(_length, self.pieces))

    def within(self, limit: int) -> Member:
        """Returns the member itself, or only its beginning and end if it is longer than `limit` bytes."""
        size = self.size
        if size <= limit:
            return self
        head, tail = limit // 4, limit - limit // 4
        note = b"\n[torchtriage-client left out %d bytes here]\n" % (size - head - tail)
        return Member(self.name, [*_part(self.pieces, 0, head), note, *_part(self.pieces, size - tail, size)])


def _length(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else max(0, piece[2] - piece[1])


def _part(pieces: Iterable[Piece], begin: int, end: int) -> Iterator[Piece]:
    at = 0
    for piece in pieces:
        low, high = max(begin - at, 0), min(end - at, _length(piece))
        if low < high:
            yield piece[low:high] if isinstance(piece, bytes) else (piece[0], piece[1] + low, piece[1] + high)
        at += _length(piece)


def whole_file(name: str, path: str, start: int = 0) -> Member:
    """Returns a file from offset `start` to its current end. Raises OSError."""
    size = os.stat(path).st_size
    # If the file is shorter than `start`, it was truncated and written again.
    return Member(name, [(path, start if start <= size else 0, size)])


class Pieces(io.RawIOBase):
    """Reads the pieces of a member. If a file became shorter meanwhile, line feeds replace the missing bytes."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = list(pieces)
        self._file: IO[bytes] | None = None
        self._left = 0

    def read(self, size: int = -1) -> bytes:
        parts = []
        while size and (self._left or self._pieces):
            if not self._left:
                piece = self._pieces.pop(0)
                self._left = _length(piece)
                self._file = io.BytesIO(piece) if isinstance(piece, bytes) else _opened(piece)
            wanted = self._left if size < 0 else min(size, self._left)
            found = self._file.read(wanted) if self._file is not None else b""
            parts.append(found + b"\n" * (wanted - len(found)))
            self._left -= wanted
            if not self._left and self._file is not None:
                self._file.close()
            size -= wanted if size > 0 else 0
        return b"".join(parts)


def _opened(piece: tuple[str, int, int]) -> IO[bytes] | None:
    try:
        file = open(piece[0], "rb")  # noqa: SIM115  closed by the reader, after this piece
        file.seek(piece[1])
        return file
    except OSError:
        return None


def sendable(members: Iterable[Member]) -> list[Member]:
    """Returns the members that are not empty and are text or compressed. error.json comes last, because it says less
    than the logs."""
    chosen = [member for member in members if member.size and _is_text(member)]
    return sorted(chosen, key=lambda member: member.name.endswith("error.json"))


def _is_text(member: Member) -> bool:
    sample = Pieces(list(_part(member.pieces, 0, _SAMPLE))).read(_SAMPLE)
    if sample.startswith(_PACKED):
        return bool(re.search(r"\.(gz|zst|tgz|zip)$", member.name))
    return len(sample.translate(None, _TEXT)) <= len(sample) * 0.05 and sample.strip(b"\0") != b""


def pack(members: list[Member], target: IO[bytes], max_bytes: int) -> None:
    """Writes the members as a .tar.gz into `target`, each cut to its share of `max_bytes`. Raises OSError."""
    import tarfile

    share = min(_FILE, max(max_bytes // max(1, len(members)), 64 << 10)) if max_bytes < 2048 * MB else max_bytes
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        for member in members[:4000]:
            packed = member.name.endswith((".gz", ".zst", ".tgz", ".zip"))
            if packed and member.size > share:
                say(f"{member.name} is left out: it is compressed and larger than {share} bytes")
                continue
            part = member if packed else member.within(share)
            info = tarfile.TarInfo(part.name.lstrip("/"))
            info.size, info.mtime = part.size, int(time.time())
            archive.addfile(info, Pieces(part.pieces))


# ---------------------------------------------------------------- the spool

# A bundle in the spool is one file: a line of JSON with the parameters of the request, then the .tar.gz. It is renamed
# to its final name when it is complete, locked while it is sent, and deleted when the service has confirmed it.


class Undelivered(Exception):
    """A bundle could not be delivered. `final`: the service will never accept it."""

    def __init__(self, reason: str, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def spools(settings: Settings) -> list[str]:
    """Returns the folders for bundles, best first. There are several because a full home folder may be why the job
    failed."""
    return [settings.spool, os.path.join(settings.scratch, "spool"), os.path.join(own_folder("/dev/shm"), "spool")]


def keep(
    settings: Settings,
    query: list[tuple[str, str]],
    members: list[Member],
    reading: Callable[[], ContextManager[None]] = contextlib.nullcontext,
) -> str:
    """Writes a bundle into the first spool that has room and returns its path. Raises the OSError of the last spool if
    all fail.

    Reads the files of the members inside `reading`, and writes the spool outside it.
    """
    problem = OSError(errno.ENOSPC, "every spool is full")
    for folder in spools(settings):
        part = ""
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            if sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()) > _SPOOLED:
                say(f"the spool {folder} is full; `torchtriage-client flush` delivers it")
                continue
            handle, part = tempfile.mkstemp(".part", f"{int(time.time())}-{socket.gethostname()[:60]}-", folder)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(query).encode() + b"\n")
                with reading():
                    pack(members, file, settings.max_bytes)
                file.flush()
                os.fsync(file.fileno())
            whole = part[: -len(".part")] + ".bundle"
            os.rename(part, whole)
            return whole
        except OSError as error:
            problem = error
            with contextlib.suppress(OSError):
                os.unlink(part)
    raise problem


def deliver(settings: Settings, path: str, deadline: float, wait: float) -> dict[str, Any] | None:
    """Sends one bundle and returns the incident. Returns None if another process is sending it or has sent it. Raises
    Undelivered."""
    try:
        with open(path, "r+b") as file:  # NFS allows an exclusive lock only on a file that is open for writing
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    return None
                # This file system has no locks. If two processes send the bundle, the service recognizes the second
                # copy.
            if os.fstat(file.fileno()).st_nlink == 0:
                return None
            query = [(str(name), str(text)) for name, text in json.loads(file.readline())]
            summaries = [text for name, text in query if name == _SUMMARY]
            answer = post(settings, [pair for pair in query if pair[0] != _SUMMARY], file, deadline, wait)
            os.unlink(path)
            for summary in summaries:
                left = min(_SUMMARY_SECONDS, deadline - time.monotonic() - 1)
                answer["since_good"] = send_summary(settings, summary, str(answer["id"]), left) if left > 0 else None
            return answer
    except FileNotFoundError:
        return None
    except Undelivered as error:
        if error.final:
            with contextlib.suppress(OSError):
                os.rename(path, path + ".refused")
        raise
    except (OSError, ValueError) as error:
        raise Undelivered(f"{path}: {error}") from error


def flush(settings: Settings) -> tuple[int, int]:
    """Delivers the bundles in the spools. Returns how many were delivered and how many are left."""
    recover(settings)
    delivered = left = 0
    for folder in spools(settings):
        for path in glob.glob(os.path.join(glob.escape(folder), "*.part")):  # a killed client leaves these behind
            with contextlib.suppress(OSError):
                if time.time() - os.stat(path).st_mtime > _ABANDONED:
                    os.unlink(path)
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.bundle"))):
            try:
                if deliver(settings, path, time.monotonic() + 300, 0) is not None:
                    delivered += 1
            except Undelivered as error:
                say(f"{os.path.basename(path)}: {error}")
                if not error.final:
                    return delivered, left + _waiting(settings)
    return delivered, left


def _waiting(settings: Settings) -> int:
    return sum(len(glob.glob(os.path.join(glob.escape(folder), "*.bundle"))) for folder in spools(settings))


def post(
    settings: Settings, query: list[tuple[str, str]], body: IO[bytes], deadline: float, wait: float
) -> dict[str, Any]:
    """Sends the rest of `body` and returns the incident from the service's answer. Raises Undelivered."""
    import urllib.parse

    left = max(1.0, deadline - time.monotonic())
    asked = urllib.parse.urlencode([*query, ("wait", f"{max(0, min(wait, left - 1)):g}")])
    size = os.fstat(body.fileno()).st_size - body.tell()
    headers = {"Content-Type": "application/gzip", "Content-Length": str(size)}
    found = _posted(settings, "/api/v1/incidents?" + asked, body, headers, left, "id")
    # The answer has no URL if this token may not read the incident.
    found.setdefault("url", "{}/incidents/{}".format(settings.url, found["id"]))
    return found


def decision_of(settings: Settings, incident: dict[str, Any]) -> dict[str, Any]:
    """Returns the service's decision about the attempt of an incident: stop, restart or wait, with hosts and
    checkpoint. Raises Undelivered."""
    body = json.dumps({"incident": incident["id"]}).encode()
    path = f"/api/v1/decision?wait={settings.wait:g}"
    return _posted(settings, path, body, {"Content-Type": "application/json"}, settings.wait + 30, "action")


def _posted(
    settings: Settings, path: str, body: Any, headers: dict[str, str], seconds: float, key: str
) -> dict[str, Any]:
    """Returns the JSON object that the service answers; it must contain `key`. Raises Undelivered."""
    import http.client
    import urllib.error
    import urllib.request

    headers["User-Agent"] = "torchtriage-client/" + __version__
    if settings.token:
        headers["Authorization"] = "Bearer " + settings.token
    request = urllib.request.Request(settings.url + path, body, headers, method="POST")
    try:
        with _opener().open(request, timeout=seconds) as answer:
            found = json.loads(answer.read(64 * MB))
        if not isinstance(found, dict) or key not in found:
            raise Undelivered(f"{settings.url} does not answer like a torchtriage service")
        return found
    except urllib.error.HTTPError as error:
        raise _refusal(settings.url, error) from None
    except urllib.error.URLError as error:
        raise Undelivered(f"{settings.url} can't be reached: {error.reason}") from None
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise Undelivered(f"{settings.url}: {str(error) or type(error).__name__}") from None


def _refusal(url: str, error: Any) -> Undelivered:
    reason = ""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        reason = str(json.loads(error.read(MB))["error"]["message"])
    if 300 <= error.code < 400:
        reason = "it redirects to {}; set TORCHTRIAGE_URL to that address".format(
            error.headers.get("Location", "elsewhere")
        )
    return Undelivered(f"{url}: {error.code} {reason or error.reason}", final=error.code in (400, 413, 415, 422))


def _opener() -> Any:
    """Returns an opener that gives up early if nothing listens, and never sends the token to a redirect's address."""
    import http.client
    import urllib.request

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            _connect_soon(self, super().connect)

    class Encrypted(http.client.HTTPSConnection):
        def connect(self) -> None:
            _connect_soon(self, super().connect)

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, req: Any) -> Any:
            return self.do_open(Plain, req)

    class EncryptedHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: Any) -> Any:
            return self.do_open(Encrypted, req)

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return urllib.request.build_opener(PlainHandler, EncryptedHandler, Stay)


def _connect_soon(connection: Any, connect: Callable[[], None]) -> None:
    whole = connection.timeout
    connection.timeout = min(_CONNECTING, whole)
    connect()
    connection.sock.settimeout(whole)


# ---------------------------------------------------------------- the summary of a run

_SUMMARY = "run_summary"  # name of this parameter in a bundle; the summary is sent after the log
_SUMMARY_BYTES = 20_000  # maximum size of a summary
_SUMMARY_SECONDS = 5.0  # maximum time for sending the summary of a successful run
_MAX_LINES, _MAX_LINE_LENGTH, _MAX_VALUE_LENGTH = 200, 160, 200
_READ = 256 << 10  # bytes at the beginning and end of a file in which lines are searched
_SECRET = re.compile(
    r"key|token(?!izer)|secret|passw|pwd$|passphrase|credential|auth|cookie|session|signature|cert|private|dsn|webhook"
    r"|connection_?str|proxy|salt|license",
    re.I,
)
_DULL = re.compile(
    r"^(SLURM|SRUN|PMI|KUBERNETES|RAY_JOB|SKYPILOT|SSH|XDG|DBUS|BASH|LS_COLORS|LESS|TERM|TORCHTRIAGE|TORCHELASTIC_ERROR_FILE|_$|PS\d)"
    r"|_(SERVICE|PORT)(_|$)|_TCP(_|$)"
)
# Accepts words, numbers and paths. A part of more than 16 characters that mixes letters and digits may be a secret.
_PLAIN_VALUE = re.compile(r"^[\w.,:;/+=@%~^*|()\[\]{} -]*$")
_DRAWN = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9+]{17,}|[A-Za-z0-9+=_-]{48,}")
_MASKS = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"(?i)((?:key|token|secret|passw\w*|authorization|credential\w*)\w*['\"]?\s*[:=]\s*).*"), r"\1*"),
    (re.compile(r"(?<=://)[^/\s@]+@"), "*@"),
    (_DRAWN, "*"),
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,}\b|\d+(?:\.\d+)?(?:e[-+]?\d+)?"), "#"),
)
_DISTRIBUTION = re.compile(r"^([A-Za-z0-9][\w.-]*?)-(\d[\w.+!]*)\.(?:dist-info|egg-info)$")


def summary_of(query: Sequence[tuple[str, str]], command: Sequence[str], members: Iterable[Member],
               phases: dict[str, float]) -> str:  # fmt: skip
    """Returns a summary of the run as JSON, with which later runs of the job are compared. It has at most 20 KB: if it
    is too long, its lines are left out, then its environment, then its versions."""
    known = dict(query)
    labels = dict(text.split(":", 1) for name, text in query if name == "label")
    hosts = [labels.get("nodes") or socket.gethostname()]
    found: dict[str, Any] = {name: known[name] for name in ("job_name", "cluster", "job_id") if known.get(name)}
    kept = ("image", "commit", "gpus", "queue", "cluster", "scheduler", "user")
    found["job"] = {name: known[name] for name in kept if known.get(name)}
    found.update(hosts=hosts, phases=phases, versions=versions_of(command))
    found.update(environment=plain_environment(os.environ), lines=first_lines(members))
    # Whole parts only, because a shortened part would look as if items had disappeared.
    for name in ("lines", "environment", "versions"):
        if len(json.dumps(found)) > _SUMMARY_BYTES:
            found[name] = type(found[name])()
    return json.dumps(found)


def versions_of(command: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the packages in the command's Python, by name. Reads the names of their folders and runs
    nothing."""
    found = {"kernel": os.uname().release}
    with contextlib.suppress(OSError, IndexError), open("/proc/driver/nvidia/version") as file:
        found["nvidia-driver"] = file.read(1000).split("Kernel Module")[1].split()[0]
    programs = [shutil.which(word) for word in command[:12] if not word.startswith("-")]
    homes = [os.path.dirname(os.path.dirname(os.path.abspath(path))) for path in programs if path]
    for home in dict.fromkeys([*homes, sys.prefix]):
        places = [place for form in ("lib/python3*/*-packages", "local/lib/python3*/*-packages")
                  for place in sorted(glob.glob(os.path.join(glob.escape(home), form)))]  # fmt: skip
        for place in places:
            with contextlib.suppress(OSError):
                for name in os.listdir(place):
                    known = _DISTRIBUTION.match(name)
                    if known:
                        found.setdefault(re.sub(r"[-_.]+", "-", known[1]).lower(), known[2])
        if len(found) > 2:  # the first Python that the command names
            version = re.search(r"python(3\.\d+)", places[0]) if places else None
            return {**found, **({"python": version[1]} if version else {})}
    return found


def plain_environment(environment: Any) -> dict[str, str]:
    """Returns the variables that contain no secret, judged by name and value. Leaves out variables that differ in every
    run or shell."""
    return {
        name: value for name, value in sorted(environment.items())
        if len(value) <= _MAX_VALUE_LENGTH and len(name) <= 100 and _PLAIN_VALUE.match(value)
        and not (_SECRET.search(name) or _DULL.search(name) or _DRAWN.search(value) or "://" in value)
    }  # fmt: skip


def first_lines(members: Iterable[Member]) -> list[str]:
    """Returns the first line of each form at the beginning and end of a run's output, in order, with numbers and
    secrets masked. Returns at most 200 lines."""
    found: dict[str, None] = {}
    for member in itertools.islice(members, 4):
        text = Pieces(member.within(_READ).pieces).read().decode("utf-8", "replace")
        for line in re.split(r"[\r\n]+", text):
            line = line[:2000]
            for form, mark in _MASKS:
                line = form.sub(mark, line)
            line = re.sub(r"[\x00-\x1f\x7f]", " ", line).strip()[:_MAX_LINE_LENGTH]
            if (
                len(found) < _MAX_LINES
                and re.search(r"[A-Za-z]{3}", line)
                and not line.startswith("[torchtriage-client")
            ):
                found.setdefault(line)
    return list(found)


def send_summary(
    settings: Settings, summary: str, incident: str | None = None, seconds: float = _SUMMARY_SECONDS
) -> dict[str, Any] | None:
    """Sends the summary of a run: of this incident, or of a successful run. Returns what changed since the job last
    succeeded, or None if the service does not say. Errors are ignored."""
    body = json.dumps({**json.loads(summary), **({"incident": incident} if incident else {})}).encode()
    with contextlib.suppress(Undelivered):
        headers = {"Content-Type": "application/json"}
        found = _posted(settings, "/api/v1/run-summaries", body, headers, seconds, "since_good")
        changed = found["since_good"]
        return changed if isinstance(changed, dict) else None
    return None


# ---------------------------------------------------------------- the verdict


_MAX_STEPS = _MAX_CHANGES = 3
# What no shell command starts with, and what Python makes of words of a shell: see answer/shell_prompt of torchtriage.
_SETTING = re.compile(
    r'--|["{#]|[\w.-]+:[ \t]+\S|\w+ = |[A-Z]{3,} |\+?\w+[./][\w./]*=|\+\w+=|[A-Z][A-Z_]*(?:\.[A-Z][A-Z_]*)+ '
)
_OF_SHELL = (
    ast.Name,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.Compare,
    ast.Lt,
    ast.Gt,
    ast.Attribute,
    ast.Constant,
    ast.expr_context,
)
_MAX_COMMAND_LENGTH = 3  # lines; longer commands are only on the web page


def summary_lines(incident: dict[str, Any]) -> list[str]:
    """Returns the lines that are printed at the end of a job's log."""
    verdict = incident.get("verdict") or {}
    cause, action = verdict.get("root_cause") or {}, verdict.get("action") or {}
    outcome = verdict.get("outcome")
    if outcome not in _KINDS:
        waiting = {
            "failed": "failed: {}".format(incident.get("failure")),
            "triaged": "is done; this token may not read the reports of others",
        }.get(str(incident.get("state")), "is in progress")
        return [f"The log is kept, the triage {waiting}", "  {}".format(incident.get("url"))]
    answer = verdict.get("answer") or {}
    lines = [answer.get("says") or _headline(outcome, cause)]
    if verdict.get("provisional"):
        lines.append(
            "  state: provisional, because the job is still running; the report at its end will replace this one"
        )
    lines += _nodes(incident.get("job") or {})
    where = _where(cause, answer.get("values") or {})
    if where:
        lines.append("  where: " + where)
    evidence = (cause.get("evidence") or [{}])[0]
    if evidence.get("text"):
        lines.append("  why:   line {}: {}".format(evidence.get("line"), evidence["text"].strip()))
    steps = answer.get("steps") or [
        {"do": fix.get("title"), "run": (fix.get("commands") or [None])[0]} for fix in (cause.get("fixes") or [])[:2]
    ]
    for number, step in enumerate(steps[:_MAX_STEPS], 1):
        lines.append("  {:6} {}. {}".format("do:" if number == 1 else "", number, step.get("do")))
        command = (step.get("run") or "").split("\n")
        if command[0] and len(command) <= _MAX_COMMAND_LENGTH:
            prompt = _prompt(command[0])
            lines += ["            {}{}".format("  " if at else prompt, line) for at, line in enumerate(command)]
    if outcome not in _NOT_FAILED:
        hosts = ", ".join(_hosts(action))
        advice = "{}{}".format(action.get("advice"), ": without " + hosts if hosts else "")
        lines.append("  retry: {} ({}). {}".format(action.get("retry"), advice, action.get("reason") or ""))
        known = "{} ({})".format(cause.get("confidence"), cause.get("entry"))
        lines.append("  confidence: " + (known if cause.get("entry") else "no entry names the cause"))
    if answer.get("unknown"):
        lines.append("  not in the log: {}".format(answer["unknown"]))
    changes = (incident.get("since_good") or {}).get("changes") or []
    for number, change in enumerate(changes[:_MAX_CHANGES]):
        lines.append("  {} {}".format("changed since it worked:" if not number else " " * 24, change["says"]["en"]))
    lines.append("  more:  {}".format(incident.get("url")))
    return [re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "", line)[:600] for line in lines]


def _nodes(job: dict[str, Any]) -> list[str]:
    """Returns a line that says how many nodes have reported, if the job has several."""
    nodes, reported = job.get("nodes") or 1, len(job.get("reports") or ()) or 1
    more = "; the reports of the others will be added" if reported < nodes else ""
    return [f"  nodes: {reported} of {nodes} have reported{more}"] if nodes > 1 else []


def _prompt(run: str) -> str:
    """Returns the prompt to show before a command: `PS> ` for PowerShell, `$ ` for another shell, none for code."""
    if re.match(r"\$env:\w|[A-Z][a-z]+-[A-Z]\w+ ", run):
        return "PS> "
    return "$ " if _is_shell_command(run) else ""


def _is_shell_command(run: str) -> bool:
    """Returns whether what a step shows is a shell command, and not Python, JSON or YAML, or an option. The same rules
    as in answer/shell_prompt of torchtriage."""
    if _SETTING.match(run):
        return False
    code = re.sub(r", …|…, ", "", run).replace("…", "...")
    if code.startswith("@"):
        code += "\ndef f(): pass"
    body = _parsed(code)
    if body is not None:
        return all(_may_be_shell(part) for part in body)
    arguments = _parsed("f(" + code + "\n)") if ", " in code else None  # padding=True, max_length=512
    call = getattr(arguments[0], "value", None) if arguments else None
    if isinstance(call, ast.Call):
        return bool(call.args)
    return not any(_parsed(code[: head.end()] + " pass") for head in re.finditer(r":(?=\s|$)", code))


def _parsed(code: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError):
        return None


def _may_be_shell(part: ast.stmt) -> bool:
    """Returns whether Python only reads a part of a shell command as an expression: `nvidia-smi` as a difference,
    `hostname` as a name and `sort < names` as a comparison."""
    if not isinstance(part, ast.Expr) or not isinstance(part.value, (ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare)):
        return False
    return all(isinstance(node, _OF_SHELL) for node in ast.walk(part.value))


def _where(cause: dict[str, Any], values: dict[str, Any]) -> str:
    """Returns the known ones of rank or ranks, host, time and line of code."""
    rank, several = cause.get("rank"), values.get("ranks")
    alone = f"rank {rank}" if rank is not None else ""
    ranges = re.findall(r"(\d{1,9})(?:-(\d{1,9}))?", several or "") if rank is not None and several != str(rank) else []
    same = any(int(low) <= int(rank) <= int(high or low) for low, high in ranges if rank is not None)
    parts = [
        f"ranks {several} ({alone} first)" if same else alone or (f"seen on ranks {several}" if several else ""),
        cause.get("host"),
        re.sub(r"^--|\.\d+", "", cause.get("time") or "").replace("T", " "),
        values.get("where") or values.get("library_frame"),
    ]
    return " · ".join(str(part) for part in parts if part)


def _headline(outcome: str, cause: dict[str, Any]) -> str:
    if outcome == "healthy":
        return "The log does not show why the run failed"
    if outcome == "inconclusive":
        return "The log shows neither a failure nor a successful end"
    if outcome == "unexplained":
        thrown = cause.get("exception") or {}
        return "Unexplained: %s" % (thrown.get("type") or "no entry names this failure")
    return "{} ({}, {})".format(cause.get("title"), cause.get("entry"), cause.get("confidence"))


def show(lines: Sequence[str], stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        encoding = stream.encoding or "utf-8"
        text = "".join(f"torchtriage: {line}\n" for line in lines)
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()


def status_of(incident: dict[str, Any] | None) -> int | None:
    """Returns the exit status for a verdict: 0 healthy, 10 a retry can help, 11 a fix is needed first, 12 unexplained,
    13 inconclusive. Returns None if there is no verdict."""
    verdict = (incident or {}).get("verdict") or {}
    if verdict.get("outcome") == "explained":
        return _RESTART if (verdict.get("action") or {}).get("retry") in ("yes", "once") else 11
    return {"healthy": 0, "unexplained": 12, "inconclusive": _INCONCLUSIVE}.get(str(verdict.get("outcome")))


def _hosts(action: dict[str, Any]) -> list[str]:
    """Returns the hosts to exclude. Leaves out what is not a valid host name, because it comes from a log and may be
    malicious."""
    form = r"[A-Za-z0-9_:][A-Za-z0-9_.:-]{0,252}"
    return [host for host in action.get("exclude_hosts") or [] if re.fullmatch(form, str(host))]


def restarts(decision: dict[str, Any]) -> bool:
    """Returns whether the job must be restarted. In a dry run it never is."""
    return decision.get("mode") == "enforce" and str(decision.get("action")).startswith("restart")


def hosts_of(decision: dict[str, Any]) -> list[str]:
    """Returns the hosts that a decision excludes."""
    return _hosts({"exclude_hosts": decision.get("hosts")})


def decided(decision: dict[str, Any]) -> str:
    """Returns a decision as one line for people."""
    hosts = ",".join(hosts_of(decision))
    where = f" without {hosts}" if hosts else ""
    dry = " (dry run)" if decision.get("mode") != "enforce" else ""
    action = str(decision.get("action")).replace("-excluding", "").replace("-from-checkpoint", " from a checkpoint")
    return re.sub(r"[\x00-\x1f\x7f]", "", f"{action}{where}{dry}. {decision.get('reason')}")[:600]


def for_shell(incident: dict[str, Any], decision: dict[str, Any] | None = None) -> str:
    """Returns the advice, and the decision if there is one, as shell variables for `eval`."""
    verdict = incident.get("verdict") or {}
    action = verdict.get("action") or {}
    shown = {
        "OUTCOME": verdict.get("outcome"),
        "ENTRY": (verdict.get("root_cause") or {}).get("entry"),
        "ADVICE": action.get("advice"),
        "RETRY": action.get("retry"),
        "EXCLUDE": ",".join(_hosts(action)),
        "INCIDENT": incident.get("url"),
    }
    if decision is not None:
        shown.update(
            EXCLUDE=",".join(hosts_of(decision)),
            DECISION=decision.get("action"),
            MODE=decision.get("mode"),
            CHECKPOINT=decision.get("checkpoint"),
            REASON=decision.get("reason"),
        )
    return "\n".join("TORCHTRIAGE_{}={}".format(name, shlex.quote(str(value or ""))) for name, value in shown.items())


# ---------------------------------------------------------------- run: captured output

_MULTI_NODE = ("srun", "mpirun", "mpiexec", "pdsh", "clush")


class Capture:
    """A folder with everything needed to report this run. Another process can report it if this one is killed."""

    def __init__(self, settings: Settings, command: Sequence[str]) -> None:
        """Raises OSError."""
        os.makedirs(settings.scratch, 0o700, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix="run-", dir=settings.scratch)
        self.ranks = os.path.join(self.folder, "ranks")
        os.mkdir(self.ranks)
        self.many_hosts = os.path.basename(command[0]) in _MULTI_NODE
        facts, labels = facts_here()
        if self.many_hosts:  # one report for all nodes
            nodes = facts.pop("nodes", "1")
            if facts.get("gpus"):
                facts["gpus"] = str(int(facts["gpus"]) * int(nodes))
        else:
            from_command = _facts_of_command(command)
            facts = {**from_command, **facts, **({"nodes": from_command["nodes"]} if "nodes" in from_command else {})}
        facts["started_at"] = str(int(time.time()))
        self.state: dict[str, Any] = {
            "query": query_of(settings, facts, labels),
            "trees": [self.ranks, *_own_trees(command)],
            "host": "" if self.many_hosts else socket.gethostname(),
            "streams": {},
        }
        self._lock = open(os.path.join(self.folder, "job.json"), "w")  # noqa: SIM115  stays open, and so locked, until this process ends
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def environment(self, settings: Settings, command: Sequence[str], to_terminal: bool) -> dict[str, str]:
        """Returns the environment of the command, which makes torchrun keep each rank's output. Variables of the user
        are not changed."""
        added = {"TORCHTRIAGE_ACTIVE": "1", "TORCHELASTIC_ERROR_FILE": os.path.join(self.folder, "error.json")}
        is_set = any(re.match(r"(--(tee|redirects|log[-_]dir)\b|-[tr]\b)", word) for word in command)
        is_set = is_set or any(os.environ.get(name) for name in ("PET_TEE", "PET_REDIRECTS", "PET_LOG_DIR"))
        if self.many_hosts:
            del added["TORCHELASTIC_ERROR_FILE"]  # the folder exists only on this host
        elif not is_set:
            added["PET_LOG_DIR"] = self.ranks
        if settings.tee and not is_set and not to_terminal:  # with tee, progress bars on a terminal would stop working
            added["PET_TEE"] = "3"
        return {**added, **os.environ}

    def write(self, **changes: Any) -> None:
        """Saves the facts about this run. Rewrites the file in place, because it is locked."""
        self.state.update(changes)
        self._lock.seek(0)
        json.dump(self.state, self._lock)
        self._lock.truncate()
        self._lock.flush()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


# Options of multi-node launchers: the number of nodes, the number of this node, and the id of the run.
_OF_NODES = {
    "--nnodes": "nodes", "--num-machines": "nodes", "--node-rank": "node_rank", "--machine-rank": "node_rank",
    "--rdzv-id": "job_id",
}  # fmt: skip


def _facts_of_command(command: Sequence[str]) -> Facts:
    """Returns what the options of a command say: how many nodes there are and, if several, which one this is and the id
    of the run."""
    found: Facts = {}
    for word, after in zip(command, [*command[1:], ""]):
        option, equals, value = word.partition("=")
        name = _OF_NODES.get(option.replace("_", "-"))
        value = (value if equals else after).rpartition(":")[2] if name == "nodes" else value if equals else after
        if name and value and (name == "job_id" or value.isdigit()):
            found.setdefault(name, value)
    if "--standalone" in command:
        found["nodes"] = "1"
    return (
        found if int(found.get("nodes", "1")) > 1 else {name: text for name, text in found.items() if name == "nodes"}
    )


def _own_trees(command: Sequence[str]) -> list[str]:
    """Returns the folders in which the user told torchrun to keep logs."""
    found = [os.environ["PET_LOG_DIR"]] if os.environ.get("PET_LOG_DIR") else []
    for word, after in zip(command, [*command[1:], ""]):
        option, equals, value = word.partition("=")
        if option in ("--log-dir", "--log_dir"):
            found.append(value if equals else after)
    return [os.path.abspath(path) for path in found if path]


def captured(
    folder: str, evidence: list[Member] | None = None, beside: Iterable[Member] = ()
) -> tuple[list[tuple[str, str]], list[Member]]:
    """Returns the parameters and the members for a report on the run in this folder. `evidence` is given if the run is
    still going. `beside` is what the host knows about a failed run. Raises OSError or ValueError."""
    with open(os.path.join(folder, "job.json")) as file:
        known = json.load(file)
    members = []
    for name, stream in known["streams"].items():
        with contextlib.suppress(OSError):
            members.append(ring_member(folder, name) if stream is None else whole_file(name, *stream))
    since = os.stat(os.path.join(folder, "ranks")).st_ctime - 60 if not known["trees"][1:] else float(known["since"])
    for tree in known["trees"]:
        members += [member for member in files_in(tree, since) if "attempt_" in member.name]
    with contextlib.suppress(OSError):
        members.append(whole_file("error.json", os.path.join(folder, "error.json")))
    members = sendable(members)
    ended = known.get("ended", "the client was killed before the command ended")
    nothing = all(member.name.endswith("error.json") for member in members)
    if evidence is None and (known.get("killed") or nothing):
        line = f"torchtriage-client: {ended}\n".encode()
        name = list(known["streams"])[-1]
        pieces = [piece for member in members if member.name == name for piece in member.pieces]
        members = [Member(name, [*pieces, line]), *(member for member in members if member.name != name)]
    members += evidence if evidence is not None else files_in(os.path.join(folder, "evidence"))
    members += beside
    prefix = known["host"] + "/" if known["host"] else ""
    query = [(str(name), str(text)) for name, text in known["query"]]
    return query, [Member(prefix + member.name, member.pieces) for member in members]


def files_in(folder: str, since: float = 0.0) -> Iterator[Member]:
    """Yields every file below a folder that changed after `since` (a time in seconds), named by its path in the
    folder."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_mtime >= since:
                    yield whole_file(os.path.relpath(path, folder), path)


def recover(settings: Settings) -> None:
    """Moves runs whose client was killed into the spool."""
    for folder in glob.glob(os.path.join(glob.escape(settings.scratch), "run-*")):
        with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, "job.json"), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink and os.fstat(file.fileno()).st_size:
                query, members = captured(folder)
                keep(settings, query, members)
                shutil.rmtree(folder, ignore_errors=True)


def punch(folder: str, head: int = 64 * MB, tail: int = 256 * MB) -> None:
    """Frees the disk space between the beginning and the end of each file, if the file system can do that.

    torchrun reads these files while they grow; it may be up to `tail` bytes behind.
    """
    try:
        import ctypes

        fallocate = ctypes.CDLL(None).fallocate
    except (ImportError, OSError, AttributeError):
        return
    for member in files_in(folder):
        path, _, size = next(piece for piece in member.pieces if not isinstance(piece, bytes))
        length = (size - tail - head) // 4096 * 4096
        with contextlib.suppress(OSError):
            if length > 0 and os.stat(path).st_blocks * 512 > head + tail + length // 8:
                with open(path, "r+b") as file:  # 3 = punch a hole and keep the size
                    fallocate(file.fileno(), 3, ctypes.c_int64(head), ctypes.c_int64(length))


class Ring:
    """Keeps a stream on disk in limited space: its beginning, and two segments for its end that are overwritten in
    turn."""

    HEAD, SEGMENT = 16 * MB, 24 * MB

    def __init__(self, folder: str, name: str) -> None:
        """Raises OSError."""
        self._path = os.path.join(folder, name)
        self._file: IO[bytes] | None = open(self._path + ".head", "wb", 0)  # noqa: SIM115
        self._room = self.HEAD
        self.skipped = 0

    def write(self, block: memoryview) -> None:
        """Writes a block. If the disk is full, stops writing; the stream itself continues."""
        if self._file is None:
            return
        try:
            if self._room <= 0:
                self._turn()
            self._file.write(block)
            self._room -= len(block)
        except OSError:
            self._file = None

    def _turn(self) -> None:
        end = self._path + ".end"
        if os.path.exists(end):
            if os.path.exists(end + ".before"):
                self.skipped += os.path.getsize(end + ".before")
                with open(self._path + ".skipped", "w") as file:
                    file.write(str(self.skipped))
            os.replace(end, end + ".before")
        self._file, self._room = open(end, "wb", 0), self.SEGMENT  # noqa: SIM115


def ring_member(folder: str, name: str) -> Member:
    """Returns what the Ring of this name has kept."""
    path = os.path.join(folder, name)
    pieces = list(whole_file(name, path + ".head").pieces)
    with contextlib.suppress(OSError, ValueError), open(path + ".skipped") as file:
        pieces.append(b"\n[torchtriage-client left out %d bytes here]\n" % int(file.read()))
    for ending in (".end.before", ".end"):
        with contextlib.suppress(OSError):
            pieces += whole_file(name, path + ending).pieces
    return Member(name, pieces)


# ---------------------------------------------------------------- run: streams


class Stream:
    """The standard output or standard error of the command, or both in one.

    If it goes to a file, the command writes it directly and the file is read after a failure. If it goes to a terminal,
    a pseudo-terminal is used, so that progress bars work. Otherwise a pipe is used.
    """

    def __init__(self, fd: int, name: str, folder: str) -> None:
        """Raises OSError."""
        self.name, self.folder, self._target = name, folder, fd
        self.terminal = os.isatty(fd)
        self.child: int | None = None  # descriptor that the command writes to; None if it writes to the target
        self.where = None if self.terminal else _readable(fd)
        self._source = -1
        self.seen: Callable[[bytes], None] | None = None  # called with each block
        self.first_step = 0.0  # time of the first line with a step
        self._wrote = time.monotonic()
        self._thread: threading.Thread | None = None
        if self.where is not None:
            return
        self._ring = Ring(folder, name)
        if self.terminal:
            self._source, self.child = os.openpty()
            _raw(self.child)
            self.resize()
        else:
            self._source, self.child = os.pipe()
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._source, 1031, MB)  # F_SETPIPE_SZ; Python 3.8 has no name for it

    def resize(self) -> None:
        if self.terminal:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(self._target, termios.TIOCGWINSZ, b"\0" * 8)
                fcntl.ioctl(self._source, termios.TIOCSWINSZ, size)

    def start(self) -> None:
        if self.child is not None:
            os.close(self.child)
            self._thread = threading.Thread(target=self._pass_on, daemon=True)
            self._thread.start()

    def _pass_on(self) -> None:
        buffer = memoryview(bytearray(MB))  # reused, because allocating memory costs more than copying
        while True:
            try:
                block = buffer[: os.readv(self._source, [buffer])]
            except OSError:  # a pseudo-terminal ends with an error
                return
            if not block:
                return
            try:
                _write_all(self._target, block)
            except OSError:
                os.close(self._source)  # the reader is gone; closing lets the command notice it, as without us
                return
            self._ring.write(block)
            if not self.first_step and step_in(bytes(block[-4096:])) is not None:
                self.first_step = time.time()
            if self.seen is not None:
                self.seen(bytes(block))
            self._wrote = time.monotonic()
            if len(block) < _SAMPLE and not self.terminal:
                time.sleep(0.01)  # lets the pipe fill; waking up for every line would take CPU from the job

    def finish(self) -> bool:
        """Waits for the remaining output. Returns whether the stream ended; processes that the command left behind may
        keep it open."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.05)
            with contextlib.suppress(OSError, ValueError):
                if time.monotonic() - self._wrote > 0.5 and not select.select([self._source], [], [], 0)[0]:
                    return not self._thread.is_alive()
        return True

    def pass_on_alone(self) -> None:
        """Continues to pass the stream on, in a child process, until it ends."""
        if os.fork() == 0:
            with contextlib.suppress(OSError):
                while True:
                    block = os.read(self._source, MB)
                    if not block:
                        break
                    _write_all(self._target, block)
            os._exit(0)


def _readable(fd: int) -> tuple[str, int] | None:
    """Returns path and offset of the regular file that a descriptor writes to, or None if it is not such a file or
    cannot be read."""
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        path = os.path.realpath(f"/proc/self/fd/{fd}")
        with open(path, "rb") as file:
            if not os.path.samestat(os.fstat(file.fileno()), found):
                return None
        appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        return path, found.st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
    except OSError:
        return None


def _raw(fd: int) -> None:
    """Passes bytes through unchanged; the real terminal processes them."""
    modes = termios.tcgetattr(fd)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(fd, termios.TCSANOW, modes)


def _write_all(fd: int, block: bytes | memoryview) -> None:
    view = memoryview(block)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])


def streams(folder: str) -> list[Stream]:
    """Returns the output streams, with copies kept in `folder`. If both go to the same place, returns one stream, so
    that their order is kept. Raises OSError."""
    first, second = os.fstat(1), os.fstat(2)
    if (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev):
        return [Stream(1, "output.log", folder)]
    return [Stream(1, "stdout.log", folder), Stream(2, "stderr.log", folder)]


# ---------------------------------------------------------------- watch: whether a run hangs

# How the message of a watchdog starts. Keep this in step with the list `watchdog-first-words` of the knowledge base.
_WATCHDOG = re.compile(
    rb"Watchdog caught collective operation timeout|watchdog got stuck for \d|Heartbeat monitor timed out"
    rb"|Watchdog timeout \(|Did not get (?:initial|subsequent) heartbeat|hang detected"
)
_DIGITS = re.compile(rb"\d+|0x[0-9a-f]+")
# Lines that torchtriage itself prints are not output of the run.
_OWN_WORDS = re.compile(rb"(?m)^torchtriage(?:-client)?: .*\n?")
# [rank3]: · [default3]: · 3: , the prefixes of torch, torchrun and srun -l
_RANK = re.compile(rb"(?m)^(?:\[(?:rank|default)(\d{1,6})\]:|(\d{1,6}): )")
# attempt_0/3/stdout.log, written by torchrun · rank_3.log
_RANK_OF_FILE = re.compile(r"attempt_\d+/(\d{1,6})/std(?:out|err)\.log$|rank[_.-]?(\d{1,6})(?!.*rank)", re.I)
# step 120 · iteration: 120/1000 · 第 120 步. Also 'loss': 2.31 and 12%|#2   | 120/1000 [, which show a step without its
# number.
_STEP = re.compile(
    rb"(?i)(?:\b|_)(?:step|iter|iteration|update)s?['\"]?[ :=\[#/]{1,12}(\d{1,9})\b|\bloss['\"]?[ :=]{1,3}-?\d[\d.]*"
    rb"|\d%\|[^|\n]{0,200}\| ?\d{1,9}/\d{1,9} \[|" + "第 ?(\\d{1,9}) ?步".encode()
)


class Limits(NamedTuple):
    """After how many seconds without output a run counts as hanging.

    At least `silence`, and at least `factor` times its usual pause. At least `patience` if the last line had a form
    that was seldom seen before.
    """

    silence: float = 90.0
    factor: float = 5.0
    patience: float = 600.0


class Pace:
    """Measures how often something happens and how long a pause may be. The caller gives the time, in seconds.

    `form` is the form of the last output, with numbers masked. After a form that was seen often, the usual pause is
    known. After a new one the run may be saving, evaluating or compiling, so it gets more time.
    """

    _MIN_PAUSES = 3  # number of pauses needed to know what is usual
    _FORMS = 256

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits, self.last = limits, now
        self._form = b""
        self._pauses: list[float] = []  # the newest pauses, in seconds
        self._after: dict[bytes, tuple[int, float]] = {}  # by form: the number of pauses after it, and the longest
        self.usual: float | None = None  # median pause in seconds; None while unknown

    def happened(self, now: float, form: bytes = b"", usual: bool = True) -> None:
        """Records that it happened at time `now`. With `usual` false, the pause before it does not raise the limit."""
        if now > self.last:
            count, longest = self._after.pop(self._form, (0, 0.0))
            self._after[self._form] = count + 1, max(longest, now - self.last if usual else 0.0)
            self._pauses = [*self._pauses[-100:], now - self.last]
            if len(self._pauses) >= self._MIN_PAUSES:
                self.usual = sorted(self._pauses)[len(self._pauses) // 2]
            if len(self._after) > self._FORMS:
                del self._after[next(iter(self._after))]
        self.last, self._form = now, form

    def knows(self, form: bytes) -> bool:
        """Returns whether this form was seen before."""
        return form in self._after

    @property
    def limit(self) -> float:
        """Seconds after the last time from which the run counts as hanging."""
        count, longest = self._after.get(self._form, (0, 0.0))
        enough = max(self.limits.silence, self.limits.factor * (self.usual or 0.0), 1.5 * longest)
        return enough if count >= self._MIN_PAUSES else max(enough, self.limits.patience)


class News(NamedTuple):
    """A report on a watched run.

    `kind` is silent (no output), stalled (output, but no step), watchdog (`line` is its message) or resumed. `seconds`
    is the time without output or step; `usual` is how long that usually is. `ranks` lists how many seconds each group
    of ranks wrote nothing, longest first.
    """

    kind: str
    seconds: float
    limit: float
    usual: float | None = None
    step: int | None = None
    ranks: tuple[tuple[float, tuple[int, ...]], ...] = ()
    line: str = ""

    @property
    def for_engine(self) -> str:
        """The line that passes this report to the engine. Empty if the log itself shows it."""
        if self.kind not in ("silent", "stalled"):
            return ""
        what = "output" if self.kind == "silent" else "step"
        # Avoids the word `step`, which would be counted as a step.
        reached = "" if self.step is None else f"; reached {self.step}"
        return f"torchtriage watch: no {what} for {self.seconds:.0f} s (limit {self.limit:.0f} s){reached}\n"


class Step(NamedTuple):
    """A step as it is printed, and its number if it has one."""

    shown: bytes
    number: int | None


class Watch:
    """The state of a running job. Its size is bounded, whatever the job writes. The caller gives the time, in
    seconds."""

    TAIL = 64 << 10  # bytes of new output in which forms, ranks and steps are searched
    _MAX_RANKS = 1 << 16

    def __init__(self, limits: Limits, now: float, step_of: Callable[[bytes], Step | None] | None = None) -> None:
        """`step_of` returns the last step in a block of output."""
        self.output = Pace(limits, now)
        self._steps = Pace(limits._replace(silence=max(limits.silence, limits.patience)), now)
        self.step: int | None = None  # number of the last step that had one
        self._shown = b""  # the last step, as it was printed
        self._step_of = step_of or step_in
        self._ranks: dict[int, float] = {}
        self._told = ""  # kind of the last report, until the run continues
        self._wrote = self._stepped = self._works = False
        self._form, self._word = b"", ""

    def took(self, block: bytes, now: float, rank: int | None = None) -> None:
        """Takes a block of new output; `rank` is its rank, if the name of its file says so."""
        if b"torchtriage" in block:
            block = _OWN_WORDS.sub(b"", block)
        if not block.strip():
            return
        found = _WATCHDOG.search(block)
        if found and not self._word:
            line = block[block.rfind(b"\n", 0, found.start()) + 1 :][:500].partition(b"\n")[0]
            self._word = line.decode("utf-8", "replace").strip()
        tail = block[-self.TAIL :].rstrip()
        last = max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1
        # torchrun adds a label to lines that it passes on; the rank's own file has none
        self._wrote, self._form = True, _DIGITS.sub(b"0", _RANK.sub(b"", tail[last:][:200]).strip())
        for each in {rank} if rank is not None else {int(one[1] or one[2]) for one in _RANK.finditer(tail)}:
            if each in self._ranks or len(self._ranks) < self._MAX_RANKS:
                self._ranks[each] = now
        step = self._step_of(tail)
        if step is not None and step.shown != self._shown:
            self._shown, self._stepped = step.shown, True
            self.step = self.step if step.number is None else step.number
        if not self.output.knows(self._form):
            self._steps.last = now  # the run does something other than training

    def look(self, now: float, at_work: Callable[[], bool] = bool) -> News | None:
        """Returns what must be reported now, once each. `at_work` returns whether the processes keep reading or writing
        files."""
        wrote, stepped, word = self._wrote, self._stepped, self._word
        self._wrote, self._stepped, self._word = False, False, ""
        since, since_step = now - self.output.last, now - self._steps.last
        if wrote:
            self._works = False
            worked = since > self.output.limit and not self._told  # a long pause of work, as the next output shows
            self.output.happened(now, self._form, usual=not worked)
        if stepped:
            self._steps.happened(now)
        if word and self._told != "watchdog":
            self._told = "watchdog"
            return self._news("watchdog", since_step, now, word)
        if self._told and (stepped or (wrote and not word and self._told == "silent")):
            resumed = self._news("resumed", since if self._told == "silent" else since_step, now)
            self._told = ""
            return resumed
        return None if self._told else self._overdue(now, at_work)

    def withdraw_silence(self) -> None:
        """Withdraws the silence reported last, because the processes are working. It may last for `patience`
        seconds."""
        self._told, self._works = "", True

    def may_be_work(self, news: News) -> bool:
        """Returns whether a report is a silence that does not count if the processes are working."""
        return news.kind == "silent" and news.limit < self.output.limits.patience

    def _overdue(self, now: float, at_work: Callable[[], bool]) -> News | None:
        silent, limit = now - self.output.last, self.output.limit
        may_work = silent > limit - Work.WINDOW and limit < self.output.limits.patience
        if may_work and (self._works or at_work()):
            limit = self.output.limits.patience
        if silent > limit:
            self._told = "silent"
        elif self._steps.usual is not None and now - self._steps.last > self._steps.limit:
            self._told, silent, limit = "stalled", now - self._steps.last, self._steps.limit
        return self._news(self._told, silent, now)._replace(limit=limit) if self._told else None

    def _news(self, kind: str, seconds: float, now: float, line: str = "") -> News:
        pace = self.output if kind == "silent" else self._steps
        by_time: dict[int, list[int]] = {}
        for rank, at in self._ranks.items():
            by_time.setdefault(round(now - at), []).append(rank)
        ranks = tuple((float(ago), tuple(sorted(by_time[ago]))) for ago in sorted(by_time, reverse=True))
        return News(kind, seconds, pace.limit, pace.usual, self.step, ranks, line)


def step_in(tail: bytes) -> Step | None:
    """Returns the last step that these lines show, or None."""
    found = list(_STEP.finditer(tail[-4096:]))
    numbers = [one[1] or one[2] for one in found if one[1] or one[2]]
    shown = b" ".join(one[0] for one in found[-4:])  # a line can show several steps
    return Step(shown, int(numbers[-1]) if numbers else None) if found else None


def rank_of_file(path: str) -> int | None:
    found = _RANK_OF_FILE.search(path)
    return int(found[1] or found[2]) if found else None


class Followed:
    """A log file that grows and may be renamed or truncated. Only its offset is kept, no open descriptor."""

    _BLOCK, _MAX_FILES = MB, 64 * MB  # maximum bytes of one block, and of one call of `read`

    def __init__(self, path: str, position: int = 0) -> None:
        self.path, self._position, self._inode = path, position, 0
        self.gone = False

    def read(self) -> Iterator[bytes]:
        """Yields the blocks that were written since the last call."""
        try:
            found = os.stat(self.path)
        except OSError:
            self.gone = True
            return
        self.gone = False
        if self._inode and found.st_ino != self._inode:
            old = self._renamed()
            if old:
                yield from self._rest(old, os.stat(old).st_size)
            self._position = 0
        elif found.st_size < self._position:
            self._position = 0
        self._inode = found.st_ino
        if found.st_size > self._position:
            yield from self._rest(self.path, found.st_size)

    def _rest(self, path: str, size: int) -> Iterator[bytes]:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            self._position = max(self._position, size - self._MAX_FILES)
            file.seek(self._position)
            while self._position < size:
                block = file.read(min(self._BLOCK, size - self._position))
                if not block:
                    return
                self._position += len(block)
                yield block

    def _renamed(self) -> str | None:
        """Returns the new path of the file if it was renamed, or None."""
        with contextlib.suppress(OSError), os.scandir(os.path.dirname(self.path) or ".") as entries:
            for entry in entries:
                if entry.inode() == self._inode and entry.is_file():
                    return entry.path
        return None


class Follower:
    """Files and folders that are followed, including files created later. Of existing files, only the end is read."""

    _MAX_FILES = 16384  # maximum number of files
    _NAMES = 5.0  # seconds between two listings of the folders

    def __init__(self, paths: Sequence[str], now: float) -> None:
        self.paths = list(paths)
        self._files: dict[str, Followed] = {}
        self._listed = now - self._NAMES
        self._list(now, Watch.TAIL)

    def read(self, watch: Watch, now: float) -> None:
        """Passes new output to a Watch."""
        self._list(now, None)
        for file in list(self._files.values()):
            for block in file.read():
                watch.took(block, now, rank_of_file(file.path))

    @property
    def gone(self) -> bool:
        """Whether there were files and all of them are gone."""
        return bool(self._files) and all(file.gone for file in self._files.values())

    def newest(self) -> float | None:
        """Returns when a file last changed, as a time in seconds, or None."""
        times = []
        for path in self._files:
            with contextlib.suppress(OSError):
                times.append(os.stat(path).st_mtime)
        return max(times, default=None)

    def _list(self, now: float, tail: int | None) -> None:
        if now - self._listed < self._NAMES:
            return
        self._listed = now
        for path in self.paths:
            for name in itertools.islice(_logs_below(path), self._MAX_FILES) if os.path.isdir(path) else [path]:
                if name not in self._files and len(self._files) < self._MAX_FILES:
                    with contextlib.suppress(OSError):
                        size = os.stat(name).st_size
                        self._files[name] = Followed(name, 0 if tail is None else max(0, size - tail))


def _logs_below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            if _LOG_NAME.search("/" + name) and not name.endswith((".gz", ".zst", ".json")):
                yield os.path.join(place, name)


class Work:
    """Checks whether processes read or write files. A hanging job does not; saving and evaluation do."""

    WINDOW = 10.0  # seconds of one measurement
    ENOUGH = 10 * MB  # bytes in that time that count as work

    def __init__(self, processes: Callable[[], Iterable[int]], clock: Callable[[], float] = time.monotonic) -> None:
        self._processes, self._clock = processes, clock
        self._since = -self.WINDOW * 2
        self._before: dict[int, int] = {}
        self._busy = True

    def __call__(self) -> bool:
        """Returns whether they did in the last measurement; True until the first one is complete."""
        now = self._clock()
        if now - self._since < self.WINDOW:
            return self._busy
        counts = {pid: count for pid in self._processes() for count in [_io_of(pid)] if count is not None}
        if now - self._since < 2 * self.WINDOW:
            moved = sum(max(0, count - self._before.get(pid, count)) for pid, count in counts.items())
            self._busy = moved >= self.ENOUGH
        else:  # the last call is too long ago
            self._busy = True
        self._since, self._before = now, counts
        return self._busy


def _io_of(pid: int) -> int | None:
    """Returns how many bytes a process has read and written, or None if unknown."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/io") as file:
        counters = dict(line.split(": ") for line in file.read().splitlines())
        return int(counters["rchar"]) + int(counters["wchar"])
    return None


def tree_of(pid: int) -> list[int]:
    """Returns a process and its descendants, as far as /proc shows them."""
    below: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
                    below.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
    found = [pid]
    for each in found:
        found += below.get(each, [])
    return found


# ---------------------------------------------------------------- watch: evidence of a hang

_GATHERING = 30.0  # seconds for gathering everything
_ONE_ANSWER = 10.0  # seconds for each external program
_AT_THE_END = 6.0  # seconds for gathering everything after a failure, part of the time for the report
_KERNEL_TAIL = 256 << 10  # bytes of the newest lines of the kernel log
_CLOCKS_APART = 120.0  # seconds by which the kernel's clock may be behind
_MAX_STACKS, _MAX_EVIDENCE = 256, 64 * MB
# Seconds in which a working rank reaches another line; number of ranks that are checked.
_MOVES_WITHIN, _MAX_SEARCHED = 8.0, 16
OWN_FILE = "torchtriage-watch.log"
_STACKS = "TORCHTRIAGE_STACKS"
# The file names of flight recorder dumps, without the rank, and the pipes that request a dump.
_DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DUMPS_ELSEWHERE = ("/tmp/nccl_trace_rank_", "~/.cache/torch/comm_lib_trace_rank_")
_DUMP_PIPES = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE")
# This module is imported in place of another sitecustomize, which it then imports. In a rank it registers a signal, if
# nobody uses it, that writes all stacks to a file. The file's name contains the process id, its start time and the
# descriptor.
_HOOK = """
import os, sys

def _register():
    folder = os.environ.get("TORCHTRIAGE_STACKS")
    if not folder or "RANK" not in os.environ:
        return None
    import faulthandler, signal
    number = signal.SIGRTMAX - 2
    if signal.getsignal(number) is not signal.SIG_DFL:
        return None
    with open("/proc/self/stat") as file:
        began = file.read().rpartition(")")[2].split()[19]
    made = os.path.join(folder, "%d-%s" % (os.getpid(), began))
    file = open(made, "wb", 0)
    faulthandler.register(number, file=file, all_threads=True, chain=False)
    os.rename(made, made + "-%d.txt" % file.fileno())
    return file

try:
    _stacks = _register()
except Exception:  # the program starts in any case
    pass
_own, _here = sys.modules.get("sitecustomize"), os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if path != _here]
sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = _own
"""


def hooked(folder: str, environment: dict[str, str]) -> dict[str, str]:
    """Returns an environment in which Python ranks register a signal that writes their stacks. Returns it unchanged if
    that is not possible."""
    hook, stacks = os.path.join(folder, "hook"), os.path.join(folder, "stacks")
    if not hasattr(signal, "SIGRTMAX") or not os.path.exists("/proc/self/stat"):
        return environment
    try:
        os.mkdir(hook)
        os.mkdir(stacks)
        with open(os.path.join(hook, "sitecustomize.py"), "w") as file:
            file.write(_HOOK)
    except OSError:
        return environment
    before = environment.get("PYTHONPATH")
    return {**environment, _STACKS: stacks, "PYTHONPATH": hook + (os.pathsep + before if before else "")}


class Gathered(NamedTuple):
    """The gathered evidence. `missing` says in one sentence each what could not be gathered. `silent` are lines for the
    engine about ranks without a stack."""

    files: list[Member]
    missing: list[str]
    silent: list[str]


def gather(pid: int, stacks: str, since: float, host: bool = True) -> Gathered:
    """Gathers stacks and dumps of the job that process `pid` started at time `since`, and with `host` the state of this
    host. Time and size are limited. Changes nothing in the job."""
    deadline = time.monotonic() + _GATHERING
    found = Gathered([], [], [])
    _ask_for_dumps(found)
    _gather_stacks(found, pid, stacks, deadline)
    if host:
        _gather_gpus(found, deadline)
        _gather_kernel(found, since, deadline)
    _gather_dumps(found, since)
    return found


def gather_at_end(have: str, since: float, seconds: float = _AT_THE_END) -> Gathered:
    """Gathers what the host knows about a failed command: the newest lines of the kernel log, the state of the GPUs,
    dumps newer than `since`. Leaves out files that the folder `have` contains from an earlier hang."""
    deadline = time.monotonic() + seconds
    found = Gathered([], [], [])
    _gather_kernel(found, since, deadline)
    _gather_gpus(found, deadline)
    _gather_dumps(found, since)
    return found._replace(files=[file for file in found.files if not os.path.exists(os.path.join(have, file.name))])


def gather_now(pid: int) -> Gathered:
    """Gathers stacks, dumps and the state of this host for the job that process `pid` runs. Raises ValueError if there
    is no such process."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(word.partition(b"=")[::2] for word in file.read().split(b"\0"))
        with open(f"/proc/{pid}/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            seconds = float(file.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"--gather: process {pid} cannot be read: {reason}") from None
    stacks = os.fsdecode(variables.get(_STACKS.encode(), b""))  # if a client of ours started it
    return gather(pid, stacks, time.time() - seconds)


def _host_file_name(name: str) -> str:
    """Returns a file name with the name of this host: `dmesg.gpu-021.txt`."""
    return "{}.{}.txt".format(name, socket.gethostname().split(".")[0])


def _gather_kernel(found: Gathered, since: float, deadline: float) -> None:
    """Adds the newest lines of the kernel log since the job started. Says nothing if this user may not read it, because
    that is common."""
    for command in (
        ["dmesg", "--time-format", "iso"],
        ["dmesg", "-T"],
        ["journalctl", "-k", "-n", "2000", "-o", "short-iso"],
    ):
        tool = shutil.which(command[0])
        left = deadline - time.monotonic()
        if tool is None or left <= 0:
            continue
        output, problem = _output([tool, *command[1:]], min(_ONE_ANSWER, left))
        if problem:
            found.missing.append(f"{command[0]}: {problem}")
            return
        if output.strip():
            output = _lines_since(output, since - _CLOCKS_APART)[-_KERNEL_TAIL:]
            if len(output) == _KERNEL_TAIL:
                output = output[output.find(b"\n") + 1 :]
            if output:
                found.files.append(Member(_host_file_name("dmesg"), [output]))
            return


def _lines_since(output: bytes, since: float) -> bytes:
    """Returns the kernel's lines, beginning with the first one that is not older than `since`."""
    start = 0
    for line in output.splitlines(True):
        time_of = _kernel_time(line[:40].decode("ascii", "replace"))
        if time_of is not None and time_of >= since:
            return output[start:]
        start += len(line)
    return b""


def _kernel_time(line: str) -> float | None:
    """Parses the time of a kernel line, `2026-05-01T09:05:01,440118+00:00 …` or `[Fri May  1 09:05:01 2026] …`."""
    found = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?([+-])(\d\d):?(\d\d)", line)
    try:
        if found:
            offset = int(found[3]) * 3600 + int(found[4]) * 60
            seconds = calendar.timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S"))
            return seconds - offset if found[2] == "+" else seconds + offset
        return time.mktime(time.strptime(line[1:25], "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return None


def _gather_stacks(found: Gathered, pid: int, folder: str, deadline: float) -> None:
    ranks = _ranks_below(pid)
    for rank, process in sorted(ranks.items())[:_MAX_STACKS]:
        if time.monotonic() > deadline:
            found.missing.append("stacks of the other ranks: no time left")
            return
        seconds = min(_ONE_ANSWER, deadline - time.monotonic())
        stack = _stack_of(process, folder, seconds)
        if stack:
            found.files.append(Member(f"stacks/rank_{rank}.txt", [stack[: 4 * MB]]))
        else:
            why = _no_stack_reason(process)
            found.missing.append(f"the stack of rank {rank}: {why}")
            if why.startswith("its process "):
                found.silent.append(f"[rank{rank}]: torchtriage watch: no stack: {why}\n")
    if not ranks:
        found.missing.append("stacks: no process has a rank")


def moving(pid: int, folder: str) -> list[int]:
    """Returns the ranks below a process whose main thread reaches another line within a few seconds. In a hanging job
    there are none, except ranks that loop. Empty if no stack is available."""
    ranks = dict(sorted(_ranks_below(pid).items())[:_MAX_SEARCHED])
    before: dict[int, bytes] = {}
    until = time.monotonic() + _MOVES_WITHIN
    while ranks:
        now = {rank: place_of(_stack_of(process, folder, 2.0)) for rank, process in ranks.items()}
        moved = [rank for rank, place in now.items() if place and before.get(rank, place) != place]
        if moved or time.monotonic() > until:
            return moved
        before = now
        ranks = {rank: process for rank, process in ranks.items() if now[rank]}
        time.sleep(_MOVES_WITHIN / 32)
    return []


def place_of(stacks: bytes) -> bytes:
    """Returns the frames of the main thread, from the output of py-spy or faulthandler."""
    threads = re.split(rb"(?m)^(?:Current t|T)hread ", stacks)[1:]
    main = [thread for thread in threads if b'"MainThread"' in thread.partition(b"\n")[0]]
    main = main or [thread for thread in threads if b"<module>" in thread] or threads[-1:]
    return main[0].partition(b"\n")[2].strip() if main else b""


def _stack_of(process: int, folder: str, seconds: float) -> bytes:
    tool = shutil.which("py-spy")
    stack, _ = _output([tool, "dump", "--pid", str(process)], seconds) if tool else (b"", "")
    return stack or _by_signal(process, folder)


def _no_stack_reason(pid: int) -> str:
    """Returns why a process gives no stack."""
    state = ""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        state = file.read().rpartition(")")[2].split()[0]
    known = {
        "T": "its process is stopped (SIGSTOP)",
        "D": "its process waits in the kernel (state D), as for a disk",
        "Z": "its process has ended",
        "": "its process is gone",
    }
    return known.get(state, "py-spy gave none, and it does not answer the signal for it")


def _ranks_below(pid: int) -> dict[int, int]:
    """Returns the rank processes below a process, by rank. They have a RANK that their parent process does not have."""
    own: dict[int, str] = {}
    found: dict[int, int] = {}
    for process in tree_of(pid):  # parents come before their children
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{process}/environ", "rb") as file:
                words = file.read().split(b"\0")
            own[process] = next((word[5:].decode() for word in words if word.startswith(b"RANK=")), "")
            with open(f"/proc/{process}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            if own[process].isdigit() and own[process] != own.get(parent, "") and int(own[process]) not in found:
                found[int(own[process])] = process
    return found


def _by_signal(pid: int, folder: str) -> bytes:
    """Returns the stacks of a process that registered the signal for them. Empty if it does not answer, or if it may
    not have registered the signal, which would then kill it."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            began = file.read().rpartition(")")[2].split()[19]
        (path,) = glob.glob(os.path.join(glob.escape(folder), f"{pid}-{began}-*.txt"))
        descriptor = path.rpartition("-")[2][: -len(".txt")]
        if os.stat(f"/proc/{pid}/fd/{descriptor}").st_ino != os.stat(path).st_ino:
            return b""
        with open(f"/proc/{pid}/status") as file:
            caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt:"))
        number = signal.SIGRTMAX - 2
        if not caught >> (number - 1) & 1:
            return b""
        size = os.stat(path).st_size
        os.kill(pid, number)
        stack, until = b"", time.monotonic() + 2
        while time.monotonic() < until:
            time.sleep(0.05)
            with open(path, "rb") as answer:
                answer.seek(size)
                now = answer.read(4 * MB)
            if now and now == stack:
                break
            stack = now
        return stack
    except (OSError, ValueError, IndexError, StopIteration):
        return b""


def _gather_gpus(found: Gathered, deadline: float) -> None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return
    output, problem = _output([tool, "-q"], min(_ONE_ANSWER, max(0.1, deadline - time.monotonic())))
    if output:
        found.files.append(Member(_host_file_name("nvidia-smi-q"), [output[: 4 * MB]]))
    if problem:
        found.missing.append(f"nvidia-smi: {problem}")


def _ask_for_dumps(found: Gathered) -> None:
    for variable in _DUMP_PIPES:
        for pipe in glob.glob(glob.escape(os.environ.get(variable, "")) + "*.pipe") if os.environ.get(variable) else []:
            try:
                handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # fails if no process reads the pipe
                try:
                    if stat.S_ISFIFO(os.fstat(handle).st_mode):
                        os.write(handle, b"1\n")
                finally:
                    os.close(handle)
            except OSError as error:
                found.missing.append(f"{pipe}: {error.strerror}")


def _gather_dumps(found: Gathered, since: float) -> None:
    prefixes = [os.environ[name] for name in _DUMPS if os.environ.get(name)] or list(_DUMPS_ELSEWHERE)
    room = _MAX_EVIDENCE
    for prefix in dict.fromkeys(map(os.path.expanduser, prefixes)):
        for path in sorted(glob.glob(glob.escape(prefix) + "*[0-9]")):
            try:
                if os.stat(path).st_mtime < since or not stat.S_ISREG(os.stat(path).st_mode):
                    continue
                dump = whole_file("dumps/" + os.path.basename(path), path)
            except OSError as error:
                found.missing.append(f"{path}: {error.strerror}")
                continue
            if dump.size > room:
                found.missing.append(f"{path}: more than {_MAX_EVIDENCE} bytes of dumps")
                continue
            room -= dump.size
            found.files.append(dump)


def _output(command: Sequence[str], seconds: float) -> tuple[bytes, str]:
    """Returns the output of a program, and why it is incomplete (empty if it is not). Does not wait for a program that
    cannot be killed."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        return b"", str(error.strerror)
    assert process.stdout is not None
    handle, output, until = process.stdout.fileno(), b"", time.monotonic() + seconds
    try:
        while len(output) < 16 * MB:
            if not select.select([handle], [], [], max(0.0, until - time.monotonic()))[0]:
                return output, f"no answer within {seconds:.0f} s"
            block = os.read(handle, MB)
            if not block:
                return output, ""
            output += block
        return output, "more than 16 MB of output"
    finally:
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)


class Watching(NamedTuple):
    """The command is watched. If it hangs for `stop_after` seconds, it is ended; None means never."""

    limits: Limits
    stop_after: float | None


class Watcher:
    """Watches the command while it runs. If it hangs, says so, gathers evidence and reports it."""

    _STOPPING = 60.0  # seconds between asking it to end and killing it

    def __init__(self, settings: Settings, capture: Capture, watching: Watching | None) -> None:
        """If `watching` is None, nothing is watched."""
        self.posted = False
        self._settings, self._capture, self._watching = settings, capture, watching
        self._limits, self._stop_after = watching or Watching(Limits(), None)
        self._watch = Watch(self._limits, time.monotonic())
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._files: list[Followed] = []
        self._follower = Follower([], time.monotonic())
        self._since = time.time()
        self._evidence = os.path.join(capture.folder, "evidence")
        self._hung_at: int | None = None  # the step at which it hung

    def saw(self, block: bytes) -> None:
        """Takes output of the command."""
        with self._lock:
            self._watch.took(block, time.monotonic())

    def start(self, child: subprocess.Popen[bytes], outputs: Sequence[Stream]) -> None:
        if self._watching is None:
            return
        for stream in outputs:
            stream.seen = self.saw
        self._files = [Followed(*stream.where) for stream in outputs if stream.where]
        self._follower = Follower(self._capture.state["trees"], time.monotonic())
        self._thread = threading.Thread(target=self._look, args=(child,), daemon=True)
        self._thread.start()

    def end(self, status: int) -> None:
        """Called when the command has ended. Waits a moment for a report that is being sent, because it must arrive
        first."""
        self._over.set()
        if self._thread is None:
            return
        self._thread.join(5)
        self._read(time.monotonic())
        if status == 0 or self._watch.step != self._hung_at:
            self._forget()

    def _read(self, now: float) -> None:
        with self._lock:
            for file in self._files:
                for block in file.read():
                    self._watch.took(block, now)
            self._follower.read(self._watch, now)

    def _look(self, child: subprocess.Popen[bytes]) -> None:
        work = Work(lambda: tree_of(child.pid))
        hangs_since: float | None = None
        while not self._over.wait(min(1.0, self._limits.silence / 4)):
            now = time.monotonic()
            self._read(now)
            with self._lock:
                news = self._watch.look(now, work)
            if news is not None and self._watch.may_be_work(news):
                works = moving(child.pid, os.path.join(self._capture.folder, "stacks"))
                if works:
                    with self._lock:
                        self._watch.withdraw_silence()
                    say(at_work(news, works, self._limits.patience))
                    continue
            if news is not None:
                hangs_since = None if news.kind == "resumed" else hangs_since or now
                self._tell(news, child.pid)
            if self._stop_after is not None and hangs_since is not None and now - hangs_since >= self._stop_after:
                return self._stop(child)

    def _tell(self, news: News, pid: int) -> None:
        for line in hang_lines(news):
            say(line)
        if news.kind == "resumed" and news.step == self._hung_at:
            return  # the new output may be the failure that follows the hang
        self._forget()
        if news.kind == "resumed":
            return
        self._hung_at = news.step
        stacks = os.path.join(self._capture.folder, "stacks")
        found = gather(pid, stacks, self._since, self._settings.gather)
        own = news.for_engine + "".join(found.silent)
        if own:
            found.files.append(Member(OWN_FILE, [own.encode()]))
        for missing in found.missing:
            say("not gathered: " + missing)
        try:
            for member in found.files:
                path = os.path.join(self._evidence, member.name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(Pieces(member.pieces).read())
        except OSError as error:  # the report that is sent now has it anyway
            say(f"evidence is not kept for the report at the end: {error}")
            self._forget()
        self._post(found.files)

    def _forget(self) -> None:
        """Removes the evidence of a hang that is over."""
        shutil.rmtree(self._evidence, ignore_errors=True)

    def _post(self, evidence: list[Member]) -> None:
        """Reports the run so far. If that fails, the report is not kept, because the one at the end has more."""
        path = ""
        try:
            query, members = captured(self._capture.folder, evidence)
            self._announce_the_last()
            path = keep(
                self._settings,
                [*(pair for pair in query if pair[0] != "provisional"), ("provisional", "true")],
                members,
            )
            incident = deliver(self._settings, path, time.monotonic() + self._settings.timeout, self._settings.wait)
        except (OSError, ValueError, Undelivered) as error:
            for left in (path, path + ".refused"):
                with contextlib.suppress(OSError):
                    os.unlink(left)
            return say(f"the hang is not reported: {error}")
        self.posted = self.posted or incident is not None
        if incident is not None and not self._over.is_set():
            show(summary_lines(incident), sys.stderr)

    def _announce_the_last(self) -> None:
        """Makes the report at the end replace this one, even if the answer to this one is lost."""
        known = self._capture.state["query"]
        if ("provisional", "false") not in known:
            with contextlib.suppress(OSError, ValueError):
                self._capture.write(query=[*known, ("provisional", "false")])

    def _stop(self, child: subprocess.Popen[bytes]) -> None:
        say(f"it has hung for {self._stop_after:.0f} s: the command is told to end (--stop-after)")
        with contextlib.suppress(OSError), open(os.path.join(self._evidence, OWN_FILE), "a") as file:
            # So that the engine knows who ended it.
            file.write(f"torchtriage watch: ended after {self._stop_after:.0f} s\n")
        with contextlib.suppress(OSError):
            child.terminate()
        if not self._over.wait(self._STOPPING):
            for pid in reversed(tree_of(child.pid)):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def at_work(news: News, ranks: Sequence[int], patience: float) -> str:
    """Returns the line about a silence in which `ranks` are working."""
    shown = ",".join(map(str, ranks[:32]))
    who = f"rank{'s' if len(ranks) > 1 else ''} {shown}"
    return f"no output for {news.seconds:.0f} s, but the stack of {who} changes: no hang before {patience:.0f} s"


def hang_lines(news: News) -> Iterator[str]:
    """Yields the lines that are printed about a hang."""
    usual = "" if news.usual is None else f", usually {news.usual:.0f} s"
    step = "" if news.step is None else f"; last step {news.step}"
    yield {
        "silent": f"no output for {news.seconds:.0f} s (limit {news.limit:.0f} s{usual}){step}",
        "stalled": f"output, but no step for {news.seconds:.0f} s (limit {news.limit:.0f} s{usual}){step}",
        "watchdog": f"a watchdog reports: {news.line}",
        "resumed": f"the run continues after {news.seconds:.0f} s",
    }[news.kind]
    for seconds, ranks in news.ranks[:4] if news.kind != "resumed" else ():
        shown = ",".join(map(str, ranks[:32])) + (f" and {len(ranks) - 32} more" if len(ranks) > 32 else "")
        yield f"silent for {seconds:.0f} s: rank{'s' if len(ranks) > 1 else ''} {shown}"


# ---------------------------------------------------------------- run: the process

_FORWARDED = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
}
_WAITED = {*_FORWARDED, signal.SIGCHLD, signal.SIGWINCH}


class Witness:
    """A process that only observes which signals reach the whole process group. The command has received those
    already."""

    GRACE = 0.25  # maximum seconds between two processes receiving a signal sent to their group

    def __init__(self) -> None:
        self._read = self.pid = -1
        self._seen: set[int] = set()
        if not hasattr(signal, "sigtimedwait"):  # macOS lacks it: every signal is passed on
            return
        self._asked = signal.SIGRTMIN
        self._read, write = os.pipe()
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {self._asked})
        self.pid = os.fork()
        if self.pid == 0:
            _die_with_parent(signal.SIGKILL)
            os.closerange(0, write)  # else this process would keep the pipes open
            os.closerange(write + 1, 4096)
            while os.getppid() == parent:
                seen = signal.sigtimedwait({*_FORWARDED, self._asked}, 5)
                if seen is not None:
                    os.write(write, bytes([seen.si_signo]))
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {self._asked})
        os.close(write)

    def saw(self, number: int) -> bool:
        """Returns whether the signal that reached this process reached its group.

        The witness may run late on a busy machine, so after a moment it is asked with a signal of its own. It takes
        pending signals in the order of their numbers, and that one has the highest, so its answer comes last.
        """
        asked = False
        while self.pid > 0 and number not in self._seen:
            if not asked and not select.select([self._read], [], [], self.GRACE)[0]:
                os.kill(self.pid, self._asked)
                asked = True
            byte = os.read(self._read, 1)
            if byte in (b"", bytes([self._asked])):
                return False
            self._seen.add(byte[0])
        self._seen.discard(number)
        return self.pid > 0

    def end(self) -> None:
        if self.pid > 0:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _die_with_parent(number: int) -> None:
    if _prctl is not None:
        _prctl(1, number, 0, 0, 0)  # PR_SET_PDEATHSIG


def _find_prctl() -> Any:
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


_prctl: Any = None


class Answers(NamedTuple):
    """What the service has answered so far: at most one incident and one decision about it."""

    incidents: list[dict[str, Any]]
    decisions: list[dict[str, Any]]


class Ending(NamedTuple):
    """How `run` ends after a failure. With `exit_code`, the exit status gives the verdict or, with `decide`, the
    decision. `restart` is the status for a restart."""

    exit_code: bool = False
    decide: bool = False
    restart: int = _RESTART

    def status(self, answers: Answers) -> int | None:
        """Returns the exit status. Returns None if the command's own status is kept: without an answer, in a dry run,
        or if the verdict is healthy or inconclusive."""
        if not self.exit_code:
            return None
        if self.decide:
            taken = [one for one in answers.decisions if one.get("mode") == "enforce"]
            return _DECIDED.get(str(taken[0].get("action")), self.restart) if taken else None
        found = status_of(answers.incidents[0] if answers.incidents else None)
        return None if found in (0, _INCONCLUSIVE) else self.restart if found == _RESTART else found


def run(
    settings: Settings, command: list[str], ending: Ending, node: int | None, watching: Watching | None = None
) -> int:
    """Runs the command and reports it if it fails or hangs. Returns its exit status."""
    if _is_unreported(settings, node):
        return replace_by(command)
    global _prctl
    _prctl = _find_prctl()
    try:
        capture, outputs = _start_capture(settings, command)
    except OSError as error:
        say(f"cannot capture the output, so the command runs unreported: {error}")
        return replace_by(command)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    witness = Witness()
    watcher = Watcher(settings, capture, watching)
    try:
        environment = capture.environment(settings, command, all(stream.terminal for stream in outputs))
        if watching is not None:
            environment = hooked(capture.folder, environment)
        child = _start(command, environment, outputs)
    except OSError as error:
        witness.end()
        capture.remove()
        return _not_started(command, error)
    capture.write(pid=child.pid)
    watcher.start(child, outputs)
    for stream in outputs:
        stream.start()
    threading.excepthook = lambda failed: say(f"{failed.exc_type.__name__}: {failed.exc_value}")
    threading.Thread(target=_host_evidence_worker, args=(settings, capture), daemon=True).start()
    status, signals = _wait(child, witness, outputs)
    witness.end()
    ended = [stream.finish() for stream in outputs]
    watcher.end(status)
    answers = Answers([], [])
    fine = status == 0 or (status in (-signal.SIGINT, 130, 1) and "SIGINT by group" in signals)
    if fine and not watcher.posted:
        _send_good_run_summary(settings, _summary(capture, command, outputs) if status == 0 else "")
        capture.remove()
    else:
        answers = _report_run(settings, capture, status, signals, _summary(capture, command, outputs), ending.decide)
    for stream, is_over in zip(outputs, ended):
        if not is_over:
            stream.pass_on_alone()
    advised = ending.status(answers) if status != 0 else None
    return status if advised is None else advised


def _start_capture(settings: Settings, command: list[str]) -> tuple[Capture, list[Stream]]:
    """Returns the folder for the report and the streams that the command will write to. Raises OSError."""
    capture = Capture(settings, command)
    outputs = streams(capture.folder)
    capture.write(streams={stream.name: stream.where for stream in outputs}, since=time.time() - 2)
    return capture, outputs


def _is_unreported(settings: Settings, node: int | None) -> bool:
    """Returns whether the command runs without a report: another client reports it, no service is set, or another node
    reports."""
    if os.environ.get("TORCHTRIAGE_ACTIVE") or not settings.url:
        if not settings.url:
            say("TORCHTRIAGE_URL is not set: the command runs unreported")
        return True
    return node is not None and facts_here()[0].get("node_rank", str(node)) != str(node)


def replace_by(command: list[str]) -> int:
    """Replaces this process by the command. Returns an exit status if that fails."""
    try:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        return _not_started(command, error)


def _not_started(command: list[str], error: OSError) -> int:
    say(f"{command[0]}: {error.strerror}")
    return 127 if isinstance(error, FileNotFoundError) else 126


def _start(command: list[str], environment: dict[str, str], outputs: list[Stream]) -> subprocess.Popen[bytes]:
    def prepare() -> None:
        _die_with_parent(signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED)

    return subprocess.Popen(
        command, env=environment, stdout=outputs[0].child, stderr=outputs[-1].child, close_fds=False, preexec_fn=prepare
    )


def _wait(child: subprocess.Popen[bytes], witness: Witness, outputs: list[Stream]) -> tuple[int, list[str]]:
    """Returns the status of the command, negative for a signal, and the signals that arrived meanwhile."""
    signals: list[str] = []
    while True:
        number = signal.sigwait(_WAITED)
        if number == signal.SIGCHLD:
            if child.poll() is not None:
                return child.returncode, signals
        elif number == signal.SIGWINCH:
            for stream in outputs:
                stream.resize()
            child.send_signal(number)
        else:
            everybody = witness.saw(number)
            signals.append(signal.Signals(number).name + (" by group" if everybody else ""))
            if not everybody:
                child.send_signal(number)


def _host_evidence_worker(settings: Settings, capture: Capture) -> None:
    """Delivers waiting reports, and limits the size of the ranks' logs while the command runs."""
    delivered, _ = flush(settings)
    if delivered:
        say(f"delivered {delivered} reports of earlier runs")
    while True:
        time.sleep(_BETWEEN)
        punch(capture.ranks)


def _summary(capture: Capture, command: Sequence[str], outputs: Sequence[Stream]) -> str:
    """Returns the summary of the run. Empty if the job has no name, or if the user turned summaries off."""
    query = capture.state["query"]
    named = any(name == "job_name" for name, _ in query)
    if not named or os.environ.get("TORCHTRIAGE_SUMMARY", "").lower() in ("no", "0", "off", "false"):
        return ""
    with contextlib.suppress(OSError, ValueError):
        query = query if any(name == "commit" for name, _ in query) else [*query, ("commit", _commit_here())]
        began = float(dict(query).get("started_at") or time.time())
        steps = [stream.first_step for stream in outputs if stream.first_step]
        ended = time.time()
        phases = {"start": min(steps) - began, "train": ended - min(steps)} if steps else {"whole": ended - began}
        members = [member for member in captured(capture.folder, [])[1] if not member.name.endswith(".json")]
        return summary_of(query, command, members, {name: max(0.0, round(took, 1)) for name, took in phases.items()})
    return ""


def _send_good_run_summary(settings: Settings, summary: str) -> None:
    """Sends the summary of a successful run within a few seconds. Errors are ignored."""
    if summary:
        thread = threading.Thread(target=send_summary, args=(settings, summary), daemon=True)
        thread.start()
        thread.join(_SUMMARY_SECONDS)


def _report_run(
    settings: Settings, capture: Capture, status: int, signals: list[str], summary: str, decide: bool
) -> Answers:
    """Reports a failed run within the time limit and returns the service's answers so far. No decision is requested if
    a signal ended the run."""
    shown = 128 - status if status < 0 else status
    ended = f"the command ended with exit status {shown}"
    if status < 0:  # in the words of a shell
        ended = f"line 1: {capture.state['pid']} {signal.strsignal(-status)}  the command"
    query = [*capture.state["query"], ("exit_code", str(shown)), ("ended_at", str(int(time.time())))]
    query += [("label", "signal:" + name.split()[0]) for name in signals[:1]]
    query += [(_SUMMARY, summary)] if summary else []
    if all(name != "commit" for name, _ in query):
        query += [("commit", commit) for commit in [_commit_here()] if commit]
    answers = Answers([], [])
    decide = decide and status != 0 and not any(name.split()[0] in _STOP_SIGNALS for name in signals)

    def work() -> None:
        try:
            capture.write(query=query, ended=ended, killed=status < 0)
            path = keep(settings, *captured(capture.folder, beside=_host_evidence(settings, capture, status)))
        except (OSError, ValueError) as error:
            return say(f"the failure cannot be reported: {error}")
        capture.remove()
        _ask(settings, path, deadline, decide, answers)

    deadline = time.monotonic() + settings.timeout
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.02)
        stopped = signal.sigtimedwait([signal.SIGINT, signal.SIGQUIT], 0) if hasattr(signal, "sigtimedwait") else None
        if stopped is not None or time.monotonic() > deadline:
            later = "the report is not delivered yet; `torchtriage-client flush` or the next run will deliver it"
            say("no decision came in time" if answers.incidents else later)
            break
    if answers.incidents and status != 0:
        decisions = ["  decision: " + decided(one) for one in answers.decisions]
        show([*summary_lines(answers.incidents[0]), *decisions], sys.stderr)
    return answers


def _ask(settings: Settings, path: str, deadline: float, decide: bool, answers: Answers) -> None:
    """Delivers a bundle and, if wanted, asks for a decision. Adds each answer as it arrives."""
    try:
        answers.incidents.extend(filter(None, [deliver(settings, path, deadline, settings.wait)]))
    except Undelivered as error:
        return say(f"{error}; the report waits in {os.path.dirname(path)}")
    try:
        if decide:
            answers.decisions.extend(decision_of(settings, incident) for incident in answers.incidents)
    except Undelivered as error:
        say(f"no decision: {error}")


def _host_evidence(settings: Settings, capture: Capture, status: int) -> list[Member]:
    """Returns what this host knows about a command that failed here. Prints a line for each thing that is missing."""
    if status == 0 or capture.many_hosts or not settings.gather:
        return []
    found = gather_at_end(
        os.path.join(capture.folder, "evidence"),
        float(capture.state.get("since", time.time())),
        min(_AT_THE_END, settings.timeout / 3),
    )
    for missing in found.missing:
        say("not gathered: " + missing)
    return found.files


def leave(status: int) -> None:
    """Ends this process as the command ended; if a signal ended it, by the same signal."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dump, because the command wrote its own
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
        os.kill(os.getpid(), -status)
        status = 128 - status  # the first process of a container ignores the signal
    os._exit(status)


# ---------------------------------------------------------------- report, flush


def report(
    settings: Settings, paths: Sequence[str], facts: Facts, labels: Sequence[str], pid: int | None = None
) -> dict[str, Any]:
    """Reports existing files as one run and returns the incident. If process `pid` still runs the job, the report is
    provisional and has what the host knows about the job. Raises OSError, Undelivered, or ValueError if there is no log
    or no such process."""
    members: list[Member] = []
    facts = {name: text for name, text in facts.items() if name != "nodes"}  # these are the logs of all nodes
    for path in paths:
        if path == "-":
            members.append(Member("log", [sys.stdin.buffer.read(settings.max_bytes)]))
        elif os.path.isdir(path):
            members += [member for member in files_in(path) if _LOG_NAME.search("/" + member.name)]
        else:
            members.append(whole_file(os.path.basename(path), path))
    members = sendable(members)
    if not members:
        raise ValueError("no log in {}".format(" ".join(paths)))
    query = query_of(settings, facts, labels)
    if pid is not None:
        found = gather_now(pid)
        members += found.files
        query.append(("provisional", "true"))
        for missing in found.missing:
            say("not gathered: " + missing)
    return deliver_now(settings, keep(settings, query, members))


def deliver_now(settings: Settings, path: str) -> dict[str, Any]:
    """Sends a bundle that was just saved and returns the incident. Raises Undelivered, which says where the report is
    kept."""
    try:
        incident = deliver(settings, path, time.monotonic() + settings.timeout, settings.wait)
    except Undelivered as error:
        kept = "" if error.final else f"; the report waits in {os.path.dirname(path)}"
        raise Undelivered(str(error) + kept, error.final) from None
    if incident is None:
        raise Undelivered("another process is delivering it")
    return incident


def answer(settings: Settings, incident: dict[str, Any], options: argparse.Namespace) -> int:
    """Prints the verdict in the requested form, and the decision if wanted. Returns the exit status. Raises
    Undelivered."""
    decision = decision_of(settings, incident) if options.decide else None
    if options.json:
        print(json.dumps(incident if decision is None else {**incident, "decision": decision}))
    elif options.shell:
        print(for_shell(incident, decision))
    else:
        lines = summary_lines(incident)
        show(lines if decision is None else [*lines, "  decision: " + decided(decision)], sys.stdout)
    if not options.exit_code:
        return 0
    if decision is not None:
        return _DECIDED.get(str(decision.get("action")), _RESTART)
    status = status_of(incident)
    return 1 if status is None else status


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of commands that report existing files."""
    add_options(parser)
    parser.add_argument(
        "--decide",
        action="store_true",
        help="also ask whether to restart the job; --exit-code then means 10 restart, 11 stop, 14 wait",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print the incident as JSON")
    how.add_argument("--shell", action="store_true", help="print the advice as variables, for eval")


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("service (default: $TORCHTRIAGE_URL, $TORCHTRIAGE_TOKEN, …)")
    group.add_argument("--url", help="address of the service, such as https://triage.example.org")
    group.add_argument("--wait", metavar="SECONDS", help="seconds to wait for the verdict, at most 60 (10)")
    group.add_argument("--timeout", metavar="SECONDS", help="seconds for the whole report (20; for `report`: 300)")
    group.add_argument(
        "--spool", metavar="DIR", help="folder for reports that are not delivered yet (~/.cache/torchtriage/spool)"
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 10 if a retry can help, 11 if a fix is needed first, 12 if unexplained, "
        "13 if inconclusive, 0 if healthy (`run` gives the command's own status for the last two)",
    )
    facts = parser.add_argument_group("facts about the job (default: $TORCHTRIAGE_JOB_ID, …, then its scheduler)")
    for name in _FIELDS:
        shown = "job_" + name if name in ("url", "exit_code") else name
        facts.add_argument("--" + shown.replace("_", "-"), metavar="…")
    facts.add_argument(
        "--label", action="append", metavar="KEY:VALUE", help="label of the incident; repeat for more than one"
    )


def _add_run(commands: Any, name: str, help_: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=help_, usage=f"torchtriage-client {name} [options] -- COMMAND [ARGUMENT…]"
    )
    add_options(made)
    made.add_argument(
        "--decide",
        action="store_true",
        help="also ask whether to restart the command; --exit-code then means 10 restart, 11 stop, 14 wait, and in "
        "a dry run the command's own status",
    )
    made.add_argument("--restart-status", metavar="N", help="exit with N instead of 10")
    made.add_argument(
        "--node", type=int, metavar="N", help="report only on node N; on other nodes, only run the command"
    )
    made.add_argument(
        "--no-tee",
        dest="tee",
        action="store_const",
        const="no",
        help="do not make torchrun print the output of all ranks",
    )
    return made


def watching_of(options: argparse.Namespace) -> Watching | None:
    """Returns how the command is watched, or None if it is not. Raises ValueError with a message for people."""
    if options.command != "watch":
        return None
    found: dict[str, float] = {}
    for name in ("silence", "factor", "patience", "stop_after"):
        text = getattr(options, name) or os.environ.get("TORCHTRIAGE_" + name.upper(), "")
        if text:
            try:
                found[name] = float(text)
            except ValueError:
                found[name] = -1.0
            if not 0 < found[name] < float("inf"):
                raise ValueError("--{}: not a number above 0: {}".format(name.replace("_", "-"), text))
    stop_after = found.pop("stop_after", None)
    return Watching(Limits()._replace(**found), stop_after)


def ending_of(options: argparse.Namespace) -> Ending:
    """Returns how `run` ends after a failure. Raises ValueError with a message for people."""
    if options.command not in ("run", "watch"):
        return Ending()
    text = options.restart_status or os.environ.get("TORCHTRIAGE_RESTART_STATUS", "") or str(_RESTART)
    if not text.isdecimal() or not 1 <= int(text) <= 255 or int(text) in _DECIDED.values():
        raise ValueError(f"--restart-status: not a number from 1 to 255, or the status of another action: {text}")
    return Ending(options.exit_code, options.decide, int(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchtriage-client", description="Report failed training runs.")
    parser.add_argument("--version", action="version", version="torchtriage-client " + __version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands, "run", "run a command, and report it if it fails")
    made = _add_run(commands, "watch", "like run, and also report a hang while the command runs")
    limits = Limits()
    for name, value, what in (
        ("silence", f"{limits.silence:g}", "minimum seconds without output that count as a hang"),
        ("factor", f"{limits.factor:g}", "multiple of the usual pause that counts as a hang"),
        (
            "patience",
            f"{limits.patience:g}",
            "seconds allowed at the start, after a new kind of line, and during file access",
        ),
        ("stop-after", "never", "end the command after it has hung for N seconds"),
    ):
        made.add_argument("--" + name, metavar="N", help=f"{what} ({value})")
    made = commands.add_parser("report", help="report existing logs, as one run")
    add_report_options(made)
    made.add_argument("paths", nargs="+", metavar="FILE|DIR|-")
    made.add_argument(
        "--gather",
        type=int,
        metavar="PID",
        help="process PID still runs the job: also send the stacks of its ranks, the state of the GPUs, the kernel log "
        "and flight-recorder dumps",
    )
    made = commands.add_parser("flush", help="deliver the reports in the spool")
    add_options(made)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    command: list[str] = []
    if words[:1] in (["run"], ["watch"]) and "--" in words:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    parser = _parser()
    options = parser.parse_args(words)
    try:
        settings = settings_of(options, 20 if options.command in ("run", "watch") else 300)
        watching = watching_of(options)
        ending = ending_of(options)
    except ValueError as error:
        if not command:
            parser.error(str(error))
        say(f"{error}: the command runs unreported")
        return replace_by(command)
    if options.command in ("run", "watch"):
        if not command:
            parser.error(f"{options.command}: put the command after --, as in: run -- torchrun train.py")
        leave(run(settings, command, ending, options.node, watching))
    if not settings.url:
        parser.error("TORCHTRIAGE_URL is not set")
    return _flush(settings) if options.command == "flush" else _report(settings, options)


def _flush(settings: Settings) -> int:
    delivered, left = flush(settings)
    print(f"delivered {delivered}, waiting {left}")
    return 1 if left else 0


def _report(settings: Settings, options: argparse.Namespace) -> int:
    try:
        return answer(settings, report(settings, options.paths, *facts_here(), options.gather), options)
    except (OSError, ValueError, Undelivered) as error:
        say(str(error))
        return 2 if isinstance(error, (FileNotFoundError, ValueError)) else 1


if __name__ == "__main__":
    sys.exit(main())
