#!/usr/bin/env python3
"""Reports failed training runs to a torchtriage service. One file, Python 3.8 or newer, standard library only.

    torchtriage-client run -- torchrun --nproc-per-node 8 train.py     # or: python3 torchtriage_client.py run -- …
    torchtriage-client watch -- torchrun --nproc-per-node 8 train.py   # the same, and says so while it hangs
    torchtriage-client report slurm-4711.out

`run` runs the command as it is; when it fails, what it and its ranks wrote goes to $TORCHTRIAGE_URL, and the verdict
is at the end of the job's log. A bundle that can't be delivered waits in a folder, the spool, for `flush` or the
next `run`. Nothing that goes wrong here changes the job's exit status: it is one line on standard error.
"""

from __future__ import annotations

import argparse
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
_CONNECTING = 5  # seconds, before a service counts as away
_SPOOLED = 2048 * MB  # bytes that a spool holds at most
_FILE = 64 * MB  # bytes sent of one file: its beginning, a quarter, and its end
_BETWEEN = 30  # seconds, after which the size of what ranks write is looked at again
_ABANDONED = 86400  # seconds, after which nobody writes on
_SAMPLE = 64 << 10
_TEXT = bytes(range(32, 256)) + b"\0\t\n\r\x0b\x0c\x1b\x08\x07"
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_LOG_NAME = re.compile(r"(\.(log|out|err|txt|jsonl?|std(out|err)|[oe]\d+)(\.\d+)?(\.gz|\.zst)?|/[^.]+)$", re.I)
_KINDS = ("explained", "unexplained", "healthy", "inconclusive")
_INCONCLUSIVE = 13
_RESTART = 10  # exit status
_DECIDED = {"stop": 11, "wait": 14}  # exit status; all others are restarts
_TOLD_TO_END = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP")
_NOT_FAILED = ("healthy", "inconclusive")  # as far as the log tells


def say(text: str) -> None:
    """Our own words, a line on standard error, whatever state that is in."""
    with contextlib.suppress(OSError, ValueError):
        print("torchtriage-client: " + text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- settings

_FIELDS = ("job_id", "job_name", "cluster", "scheduler", "user", "queue", "attempt", "node_rank", "nodes", "exit_code",
           "state", "started_at", "ended_at", "gpus", "image", "commit", "url")  # fmt: skip
Facts = Dict[str, str]


class Settings(NamedTuple):
    """Where to report, within which limits, and what its caller says about the job."""

    url: str
    token: str
    spool: str
    scratch: str  # folder for what is captured while a job runs
    wait: float  # seconds to wait for the verdict
    timeout: float  # seconds that reporting may take in all
    max_bytes: int
    tee: bool
    facts: Facts
    labels: list[str]
    gather: bool = True  # what the host knows of a command that failed


def settings_of(options: argparse.Namespace, timeout: float) -> Settings:
    """-> options, and where they say nothing the environment; raises ValueError with a sentence."""

    def given(name: str, default: str = "") -> str:
        return str(getattr(options, name, None) or os.environ.get("TORCHTRIAGE_" + name.upper(), "") or default)

    try:
        wait, limit = float(given("wait", "10")), float(given("timeout", str(timeout)))
        max_bytes = int(given("max_bytes", str(256 * MB)))
    except ValueError as error:
        raise ValueError(
            f"TORCHTRIAGE_WAIT, TORCHTRIAGE_TIMEOUT and TORCHTRIAGE_MAX_BYTES are numbers: {error}"
        ) from None
    url = given("url").rstrip("/")
    if url and not url.startswith(("http://", "https://")):
        raise ValueError("TORCHTRIAGE_URL: not a URL that begins with http:// or https://: " + url)
    names = {name: "job_" + name if name in ("url", "exit_code") else name for name in _FIELDS}
    facts = {name: text for name, key in names.items() if (text := given(key))}
    if getattr(options, "node", None) is not None:  # the only one of its run that reports
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
    """-> a folder in one that everybody may write to; nobody else can have put it there, or it has another name."""
    path = os.path.join(parent, f"torchtriage-{os.getuid()}")
    with contextlib.suppress(OSError):
        os.makedirs(path, 0o700, exist_ok=True)
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            return tempfile.mkdtemp(prefix="torchtriage-", dir=parent)
    return path


# ---------------------------------------------------------------- what is known of the job

# The scheduler is the first whose first variable is set; of each fact the first variable that is.
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
# What controllers put behind a job's name to name its pods: -worker-3, -node-0-3-x7k2p, -3-x7k2p, -x7k2p, -task-3
_POD_ENDING = re.compile(
    r"-(?:master|worker|chief|ps|launcher|evaluator)-\d+$|-[a-z0-9]+-\d+-\d+-[a-z0-9]{5}$|-\d+-[a-z0-9]{5}$|-[a-z0-9]{5}$|-[a-z0-9]+-\d+$"
)
_NUMBERS = ("attempt", "node_rank", "gpus", "nodes", "exit_code")


def facts_here() -> tuple[Facts, list[str]]:
    """-> what the environment says about this job, and labels."""
    scheduler, known = "", {}  # type: str, Dict[str, str]
    for name, mark, table in _SCHEDULERS:
        if os.environ.get(mark):
            scheduler, known = name, table
            break
    facts = {**_told_by(_ANYWHERE), **_told_by(known)}
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


def _told_by(table: dict[str, str]) -> Facts:
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
    facts.setdefault("attempt", "0")  # Slurm sets the variable from the first restart on
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
        facts["node_rank"] = os.environ["RANK"]  # a PyTorchJob numbers its pods so
        if os.environ.get("WORLD_SIZE", "").isdigit():
            facts.setdefault("nodes", os.environ["WORLD_SIZE"])
    facts.setdefault("job_name", _POD_ENDING.sub("", pod))
    facts.setdefault("job_id", os.environ.get("JOB_UID") or "/".join(filter(None, (space, facts["job_name"]))))
    labels += ["pod:" + pod, *(["namespace:" + space] if space else [])]
    if os.environ.get("NODE_NAME"):
        labels.append("node:" + os.environ["NODE_NAME"])


def _ray(facts: Facts) -> None:
    with contextlib.suppress(ValueError, AttributeError):
        told = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"]).get("metadata") or {}
        facts.update(job_id=str(told.get("job_submission_id", "")), job_name=str(told.get("job_name", "")))


def _gpus_here() -> str:
    """-> how many GPUs this host gives the job, as text; empty where it can't be told."""
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
    """-> the parameters of the request, in a form that the service takes; what its caller says counts most."""
    told = {**facts, **settings.facts}
    if not told.get("job_id"):
        told["job_id"] = f"{socket.gethostname()}-{int(time.time())}-{os.getpid()}"
    query = [(name, _plain(told[name])) for name in _FIELDS if told.get(name)]
    query = [(name, text) for name, text in query if name not in _NUMBERS or text.lstrip("-").isdigit()]
    return query + [
        ("label", _plain(label)) for label in [*labels, *settings.labels][:50] if label.split(":", 1)[1].strip()
    ]


def _plain(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)[:500]


# ---------------------------------------------------------------- bundles

Piece = Union[bytes, Tuple[str, int, int]]  # bytes, or from where to where in a file


class Member(NamedTuple):
    """One file of a bundle, in pieces."""

    name: str
    pieces: list[Piece]

    @property
    def size(self) -> int:
        return sum(map(_length, self.pieces))

    def within(self, limit: int) -> Member:
        """-> the same, or its beginning and its end where it is longer than `limit` bytes."""
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
    """-> a file of the disk from `start` on, as it is now; raises OSError."""
    size = os.stat(path).st_size
    return Member(name, [(path, start if start <= size else 0, size)])  # shorter than before: it was restarted


class Pieces(io.RawIOBase):
    """Reads a member; where a file turned out shorter than it was, line feeds stand for the rest."""

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
        file = open(piece[0], "rb")  # noqa: SIM115  its reader goes on with the next piece
        file.seek(piece[1])
        return file
    except OSError:
        return None


def sendable(members: Iterable[Member]) -> list[Member]:
    """-> those that have something in them and are text, or packed text; error.json, which tells less, comes last."""
    chosen = [member for member in members if member.size and _is_text(member)]
    return sorted(chosen, key=lambda member: member.name.endswith("error.json"))


def _is_text(member: Member) -> bool:
    sample = Pieces(list(_part(member.pieces, 0, _SAMPLE))).read(_SAMPLE)
    if sample.startswith(_PACKED):
        return bool(re.search(r"\.(gz|zst|tgz|zip)$", member.name))
    return len(sample.translate(None, _TEXT)) <= len(sample) * 0.05 and sample.strip(b"\0") != b""


def pack(members: list[Member], target: IO[bytes], max_bytes: int) -> None:
    """Writes a .tar.gz of the members, each within its share of `max_bytes`; raises OSError."""
    import tarfile

    share = min(_FILE, max(max_bytes // max(1, len(members)), 64 << 10)) if max_bytes < 2048 * MB else max_bytes
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        for member in members[:4000]:
            packed = member.name.endswith((".gz", ".zst", ".tgz", ".zip"))
            if packed and member.size > share:
                say(f"{member.name} is left out: it is packed and larger than {share} bytes")
                continue
            part = member if packed else member.within(share)
            info = tarfile.TarInfo(part.name.lstrip("/"))
            info.size, info.mtime = part.size, int(time.time())
            archive.addfile(info, Pieces(part.pieces))


# ---------------------------------------------------------------- the spool

# A bundle in the spool is one file: a line of JSON, the request's parameters, and behind it the .tar.gz. It gets its
# name by a rename when it is whole, is locked while it is sent, and goes when the service has said that it is kept.


class Undelivered(Exception):
    """Why a bundle could not be handed over; `final`: the service will never take it."""

    def __init__(self, reason: str, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def spools(settings: Settings) -> list[str]:
    """-> the folders for bundles, the best first: home may be full, which is why some jobs fail."""
    return [settings.spool, os.path.join(settings.scratch, "spool"), os.path.join(own_folder("/dev/shm"), "spool")]


def keep(
    settings: Settings,
    query: list[tuple[str, str]],
    members: list[Member],
    reading: Callable[[], ContextManager[None]] = contextlib.nullcontext,
) -> str:
    """Puts a bundle into the first spool that takes it -> its path. Raises OSError, of the last one.

    The members' files are read inside `reading`, the spool is written outside it.
    """
    problem = OSError(errno.ENOSPC, "every spool is full")
    for folder in spools(settings):
        part = ""
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            if sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()) > _SPOOLED:
                say(f"the spool {folder} is full: deliver it with `torchtriage-client flush`")
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
    """Sends one bundle -> the incident; None where another process sends it or has sent it. Raises Undelivered."""
    try:
        with open(path, "r+b") as file:  # NFS locks exclusively only what is open for writing
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    return None
                # A file system without locks: the service knows a bundle that it gets a second time.
            if os.fstat(file.fileno()).st_nlink == 0:
                return None
            query = [(str(name), str(text)) for name, text in json.loads(file.readline())]
            summaries = [text for name, text in query if name == _SUMMARY]
            answer = post(settings, [pair for pair in query if pair[0] != _SUMMARY], file, deadline, wait)
            os.unlink(path)
            for summary in summaries:
                left = min(_SUMMARY_SECONDS, deadline - time.monotonic() - 1)
                answer["since_good"] = tell_summary(settings, summary, str(answer["id"]), left) if left > 0 else None
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
    """Delivers what waits in the spools -> (how many were delivered, how many wait)."""
    recover(settings)
    delivered = left = 0
    for folder in spools(settings):
        for path in glob.glob(os.path.join(glob.escape(folder), "*.part")):  # a client was killed while it wrote
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
    """Sends the rest of `body` -> the incident as the service answers it. Raises Undelivered."""
    import urllib.parse

    left = max(1.0, deadline - time.monotonic())
    asked = urllib.parse.urlencode([*query, ("wait", f"{max(0, min(wait, left - 1)):g}")])
    size = os.fstat(body.fileno()).st_size - body.tell()
    headers = {"Content-Type": "application/gzip", "Content-Length": str(size)}
    found = _posted(settings, "/api/v1/incidents?" + asked, body, headers, left, "id")
    found.setdefault("url", "{}/incidents/{}".format(settings.url, found["id"]))  # a repeat for who may not read
    return found


def decision_of(settings: Settings, incident: dict[str, Any]) -> dict[str, Any]:
    """-> what the service decides about the attempt that an incident is of: stop, restart or wait, and with which hosts
    and checkpoint. Raises Undelivered."""
    body = json.dumps({"incident": incident["id"]}).encode()
    path = f"/api/v1/decision?wait={settings.wait:g}"
    return _posted(settings, path, body, {"Content-Type": "application/json"}, settings.wait + 30, "action")


def _posted(
    settings: Settings, path: str, body: Any, headers: dict[str, str], seconds: float, key: str
) -> dict[str, Any]:
    """-> the JSON object that the service answers, which has this key. Raises Undelivered."""
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
            raise Undelivered(f"{settings.url} does not answer as torchtriage does")
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
        reason = "it leads to {}; set TORCHTRIAGE_URL to that".format(error.headers.get("Location", "elsewhere"))
    return Undelivered(f"{url}: {error.code} {reason or error.reason}", final=error.code in (400, 413, 415, 422))


def _opener() -> Any:
    """-> an opener that gives up soon where nobody listens, and never takes the token to another address."""
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


# ---------------------------------------------------------------- what is known of a run at its end

_SUMMARY = "run_summary"  # among the parameters of a bundle; it is sent after the log
_SUMMARY_BYTES = 20_000  # of a summary
_SUMMARY_SECONDS = 5.0  # that telling of a run that worked may take
_MOST_LINES, _LONGEST_LINE, _LONGEST_VALUE = 200, 160, 200
_READ = 256 << 10  # bytes of a file, its beginning and its end, in which lines are looked for
_SECRET = re.compile(
    r"key|token(?!izer)|secret|passw|pwd$|passphrase|credential|auth|cookie|session|signature|cert|private|dsn|webhook"
    r"|connection_?str|proxy|salt|license",
    re.I,
)
_DULL = re.compile(
    r"^(SLURM|SRUN|PMI|KUBERNETES|RAY_JOB|SKYPILOT|SSH|XDG|DBUS|BASH|LS_COLORS|LESS|TERM|TORCHTRIAGE|TORCHELASTIC_ERROR_FILE|_$|PS\d)"
    r"|_(SERVICE|PORT)(_|$)|_TCP(_|$)"
)
# Words, numbers and paths, no drawn text: a part that mixes letters and digits over 16 characters may be a secret.
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
    """-> what later runs of this job are compared with, as JSON of 20 KB at most; where it were more, the lines
    are left out, then the variables."""
    told = dict(query)
    labels = dict(text.split(":", 1) for name, text in query if name == "label")
    hosts = [labels.get("nodes") or socket.gethostname()]
    found: dict[str, Any] = {name: told[name] for name in ("job_name", "cluster", "job_id") if told.get(name)}
    kept = ("image", "commit", "gpus", "queue", "cluster", "scheduler", "user")
    found["job"] = {name: told[name] for name in kept if told.get(name)}
    found.update(hosts=hosts, phases=phases, versions=versions_of(command))
    found.update(environment=plain_environment(os.environ), lines=first_lines(members))
    for name in ("lines", "environment", "versions"):  # a part of one would look as if the rest had gone
        if len(json.dumps(found)) > _SUMMARY_BYTES:
            found[name] = type(found[name])()
    return json.dumps(found)


def versions_of(command: Sequence[str]) -> dict[str, str]:
    """-> the versions of the packages that the command's Python has, by name, as their folders say; nothing is run."""
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
        if len(found) > 2:  # the Python that the command names first
            version = re.search(r"python(3\.\d+)", places[0]) if places else None
            return {**found, **({"python": version[1]} if version else {})}
    return found


def plain_environment(environment: Any) -> dict[str, str]:
    """-> the variables whose name speaks of no secret and whose value looks like none; not those that each run or shell
    has for itself."""
    return {
        name: value for name, value in sorted(environment.items())
        if len(value) <= _LONGEST_VALUE and len(name) <= 100 and _PLAIN_VALUE.match(value)
        and not (_SECRET.search(name) or _DULL.search(name) or _DRAWN.search(value) or "://" in value)
    }  # fmt: skip


def first_lines(members: Iterable[Member]) -> list[str]:
    """-> the first line of each form at the beginning and the end of what a run wrote, masked, in its order; none where
    there are too many forms."""
    found: dict[str, None] = {}
    for member in itertools.islice(members, 4):
        text = Pieces(member.within(_READ).pieces).read().decode("utf-8", "replace")
        for line in re.split(r"[\r\n]+", text):
            line = line[:2000]
            for form, mark in _MASKS:
                line = form.sub(mark, line)
            line = re.sub(r"[\x00-\x1f\x7f]", " ", line).strip()[:_LONGEST_LINE]
            if (
                len(found) < _MOST_LINES
                and re.search(r"[A-Za-z]{3}", line)
                and not line.startswith("[torchtriage-client")
            ):
                found.setdefault(line)
    return list(found)


def tell_summary(
    settings: Settings, summary: str, incident: str | None = None, seconds: float = _SUMMARY_SECONDS
) -> dict[str, Any] | None:
    """Hands over what is known of a run: of this incident, or of one that worked -> what changed since the job worked,
    where the service says so. A service that can't take it loses nothing but that."""
    body = json.dumps({**json.loads(summary), **({"incident": incident} if incident else {})}).encode()
    with contextlib.suppress(Undelivered):
        headers = {"Content-Type": "application/json"}
        found = _posted(settings, "/api/v1/run-summaries", body, headers, seconds, "since_good")
        changed = found["since_good"]
        return changed if isinstance(changed, dict) else None
    return None


# ---------------------------------------------------------------- the verdict


_MOST_STEPS = _MOST_CHANGES = 3
_LONGEST_COMMAND = 3  # lines; the page has longer ones


def told(incident: dict[str, Any]) -> list[str]:
    """-> the lines for people at the end of a job's log."""
    verdict = incident.get("verdict") or {}
    cause, action = verdict.get("root_cause") or {}, verdict.get("action") or {}
    outcome = verdict.get("outcome")
    if outcome not in _KINDS:
        waiting = {
            "failed": "failed: {}".format(incident.get("failure")),
            "triaged": "is done; this token may not read what others have reported",
        }.get(str(incident.get("state")), "is under way")
        return [f"The log is kept, the triage {waiting}", "  {}".format(incident.get("url"))]
    said = verdict.get("answer") or {}
    lines = [said.get("says") or _headline(outcome, cause)]
    if verdict.get("provisional"):
        lines.append("  state: provisional, as the job still runs; the report at its end replaces this one")
    lines += _nodes(incident.get("job") or {})
    where = _where(cause, said.get("values") or {})
    if where:
        lines.append("  where: " + where)
    evidence = (cause.get("evidence") or [{}])[0]
    if evidence.get("text"):
        lines.append("  why:   line {}: {}".format(evidence.get("line"), evidence["text"].strip()))
    steps = said.get("steps") or [
        {"do": fix.get("title"), "run": (fix.get("commands") or [None])[0]} for fix in (cause.get("fixes") or [])[:2]
    ]
    for number, step in enumerate(steps[:_MOST_STEPS], 1):
        lines.append("  {:6} {}. {}".format("do:" if number == 1 else "", number, step.get("do")))
        command = (step.get("run") or "").split("\n")
        if command[0] and len(command) <= _LONGEST_COMMAND:
            lines += ["            {}{}".format("  " if at else "$ ", line) for at, line in enumerate(command)]
    if outcome not in _NOT_FAILED:
        hosts = ", ".join(_hosts(action))
        advice = "{}{}".format(action.get("advice"), ": without " + hosts if hosts else "")
        lines.append("  retry: {} ({}). {}".format(action.get("retry"), advice, action.get("reason") or ""))
        known = "{} ({})".format(cause.get("confidence"), cause.get("entry"))
        lines.append("  sure:  " + (known if cause.get("entry") else "no entry names the cause"))
    if said.get("unknown"):
        lines.append("  not known: {}".format(said["unknown"]))
    changes = (incident.get("since_good") or {}).get("changes") or []
    for number, change in enumerate(changes[:_MOST_CHANGES]):
        lines.append("  {} {}".format("changed since it worked:" if not number else " " * 24, change["says"]["en"]))
    lines.append("  more:  {}".format(incident.get("url")))
    return [re.sub(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "", line)[:600] for line in lines]


def _nodes(job: dict[str, Any]) -> list[str]:
    """-> a line that says how many nodes the verdict rests on, where each reports for itself."""
    nodes, reported = job.get("nodes") or 1, len(job.get("reports") or ()) or 1
    more = "; the reports of the others will be added" if reported < nodes else ""
    return [f"  nodes: {reported} of {nodes} have reported{more}"] if nodes > 1 else []


def _where(cause: dict[str, Any], values: dict[str, Any]) -> str:
    """-> rank, host, time and the line of code, as far as the log tells them."""
    rank, several = cause.get("rank"), values.get("ranks")
    parts = [
        f"rank {rank}" if rank is not None else f"seen on ranks {several}" if several else "",
        cause.get("host"),
        re.sub(r"^--|\.\d+", "", cause.get("time") or "").replace("T", " "),
        values.get("where") or values.get("library_frame"),
    ]
    return " · ".join(str(part) for part in parts if part)


def _headline(outcome: str, cause: dict[str, Any]) -> str:
    if outcome == "healthy":
        return "Nothing in the log says why it failed"
    if outcome == "inconclusive":
        return "The log shows neither a failure nor a good end"
    if outcome == "unexplained":
        thrown = cause.get("exception") or {}
        return "Unexplained: %s" % (thrown.get("type") or "something failed that no entry names")
    return "{} ({}, {})".format(cause.get("title"), cause.get("entry"), cause.get("confidence"))


def show(lines: Sequence[str], stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        encoding = stream.encoding or "utf-8"
        text = "".join(f"torchtriage: {line}\n" for line in lines)
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()


def status_of(incident: dict[str, Any] | None) -> int | None:
    """-> 0 healthy, 10 a retry can help, 11 it must be fixed first, 12 unexplained, 13 inconclusive; None without a
    verdict."""
    verdict = (incident or {}).get("verdict") or {}
    if verdict.get("outcome") == "explained":
        return _RESTART if (verdict.get("action") or {}).get("retry") in ("yes", "once") else 11
    return {"healthy": 0, "unexplained": 12, "inconclusive": _INCONCLUSIVE}.get(str(verdict.get("outcome")))


def _hosts(action: dict[str, Any]) -> list[str]:
    """-> the hosts to leave out, as far as they have a host's name: a log is written by strangers."""
    form = r"[A-Za-z0-9_:][A-Za-z0-9_.:-]{0,252}"
    return [host for host in action.get("exclude_hosts") or [] if re.fullmatch(form, str(host))]


def restarts(decision: dict[str, Any]) -> bool:
    """-> whether the job is to be started again, and not in a dry run."""
    return decision.get("mode") == "enforce" and str(decision.get("action")).startswith("restart")


def hosts_of(decision: dict[str, Any]) -> list[str]:
    """-> the hosts that a decision leaves out."""
    return _hosts({"exclude_hosts": decision.get("hosts")})


def decided(decision: dict[str, Any]) -> str:
    """-> a decision as one line for people."""
    hosts = ",".join(hosts_of(decision))
    where = f" without {hosts}" if hosts else ""
    dry = " (dry run)" if decision.get("mode") != "enforce" else ""
    action = str(decision.get("action")).replace("-excluding", "").replace("-from-checkpoint", " from a checkpoint")
    return re.sub(r"[\x00-\x1f\x7f]", "", f"{action}{where}{dry}. {decision.get('reason')}")[:600]


def for_shell(incident: dict[str, Any], decision: dict[str, Any] | None = None) -> str:
    """-> the advice, and a decision where there is one, as variables for `eval`."""
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


# ---------------------------------------------------------------- run: what is captured

_MULTI_NODE = ("srun", "mpirun", "mpiexec", "pdsh", "clush")


class Capture:
    """A folder with everything that is needed to report this run, also by another process when this one is killed."""

    def __init__(self, settings: Settings, command: Sequence[str]) -> None:
        """Raises OSError."""
        os.makedirs(settings.scratch, 0o700, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix="run-", dir=settings.scratch)
        self.ranks = os.path.join(self.folder, "ranks")
        os.mkdir(self.ranks)
        self.many_hosts = os.path.basename(command[0]) in _MULTI_NODE
        facts, labels = facts_here()
        if self.many_hosts:  # one report, of all nodes
            nodes = facts.pop("nodes", "1")
            if facts.get("gpus"):
                facts["gpus"] = str(int(facts["gpus"]) * int(nodes))
        else:
            said = _said_to(command)
            facts = {**said, **facts, **({"nodes": said["nodes"]} if "nodes" in said else {})}
        facts["started_at"] = str(int(time.time()))
        self.told: dict[str, Any] = {
            "query": query_of(settings, facts, labels),
            "trees": [self.ranks, *_own_trees(command)],
            "host": "" if self.many_hosts else socket.gethostname(),
            "streams": {},
        }
        self._lock = open(os.path.join(self.folder, "job.json"), "w")  # noqa: SIM115  open, and so locked, as long as this process lives
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def environment(self, settings: Settings, command: Sequence[str], to_terminal: bool) -> dict[str, str]:
        """-> the command's environment, which makes torchrun keep what each rank writes; its user's own counts more."""
        added = {"TORCHTRIAGE_ACTIVE": "1", "TORCHELASTIC_ERROR_FILE": os.path.join(self.folder, "error.json")}
        said = any(re.match(r"(--(tee|redirects|log[-_]dir)\b|-[tr]\b)", word) for word in command)
        said = said or any(os.environ.get(name) for name in ("PET_TEE", "PET_REDIRECTS", "PET_LOG_DIR"))
        if self.many_hosts:
            del added["TORCHELASTIC_ERROR_FILE"]  # the folder is of this host
        elif not said:
            added["PET_LOG_DIR"] = self.ranks
        if settings.tee and not said and not to_terminal:  # progress bars on a terminal would no longer move
            added["PET_TEE"] = "3"
        return {**added, **os.environ}

    def write(self, **told: Any) -> None:
        """Keeps what is known, in place, as the file is locked."""
        self.told.update(told)
        self._lock.seek(0)
        json.dump(self.told, self._lock)
        self._lock.truncate()
        self._lock.flush()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


# What launchers of several nodes are told: how many there are, which one this is, and the id of the run.
_OF_NODES = {
    "--nnodes": "nodes", "--num-machines": "nodes", "--node-rank": "node_rank", "--machine-rank": "node_rank",
    "--rdzv-id": "job_id",
}  # fmt: skip


def _said_to(command: Sequence[str]) -> Facts:
    """-> what the options of a command say of how many nodes it is started on, and of this one of several."""
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
    """-> the folder that its user told torchrun to keep logs in."""
    found = [os.environ["PET_LOG_DIR"]] if os.environ.get("PET_LOG_DIR") else []
    for word, after in zip(command, [*command[1:], ""]):
        option, equals, value = word.partition("=")
        if option in ("--log-dir", "--log_dir"):
            found.append(value if equals else after)
    return [os.path.abspath(path) for path in found if path]


def captured(
    folder: str, evidence: list[Member] | None = None, beside: Iterable[Member] = ()
) -> tuple[list[tuple[str, str]], list[Member]]:
    """-> the parameters and the members of what a run left in its folder; of one that goes on, with this `evidence`; of
    one that failed, with what its host knows `beside`. Raises OSError, ValueError."""
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
        said = [piece for member in members if member.name == name for piece in member.pieces]
        members = [Member(name, [*said, line]), *(member for member in members if member.name != name)]
    members += evidence if evidence is not None else files_in(os.path.join(folder, "evidence"))
    members += beside
    prefix = known["host"] + "/" if known["host"] else ""
    query = [(str(name), str(text)) for name, text in known["query"]]
    return query, [Member(prefix + member.name, member.pieces) for member in members]


def files_in(folder: str, since: float = 0.0) -> Iterator[Member]:
    """Yields every file of a folder that was written after `since`, under its path inside."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_mtime >= since:
                    yield whole_file(os.path.relpath(path, folder), path)


def recover(settings: Settings) -> None:
    """Puts runs whose client was killed into the spool."""
    for folder in glob.glob(os.path.join(glob.escape(settings.scratch), "run-*")):
        with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, "job.json"), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink and os.fstat(file.fileno()).st_size:
                query, members = captured(folder)
                keep(settings, query, members)
                shutil.rmtree(folder, ignore_errors=True)


def punch(folder: str, head: int = 64 * MB, tail: int = 256 * MB) -> None:
    """Gives the disk back what stands between the beginning and the end of each file; file systems that can't, don't.

    torchrun reads these files as they grow: `tail` is how far it can lie behind.
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
                with open(path, "r+b") as file:  # 3: punch a hole, keep the size
                    fallocate(file.fileno(), 3, ctypes.c_int64(head), ctypes.c_int64(length))


class Ring:
    """A stream on disk in bounded space: its beginning, and two segments that take turns for its end."""

    HEAD, SEGMENT = 16 * MB, 24 * MB

    def __init__(self, folder: str, name: str) -> None:
        """Raises OSError."""
        self._path = os.path.join(folder, name)
        self._file: IO[bytes] | None = open(self._path + ".head", "wb", 0)  # noqa: SIM115
        self._room = self.HEAD
        self.skipped = 0

    def write(self, block: memoryview) -> None:
        """Where the disk is full it stops, and the stream goes on without it."""
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
    """-> what a Ring of this name has kept."""
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
    """Standard output, standard error, or both in one, of the command.

    A file is written by the command itself and read when it has failed; a terminal gets a pseudo-terminal in between,
    so that progress bars behave; anything else a pipe.
    """

    def __init__(self, fd: int, name: str, folder: str) -> None:
        """Raises OSError."""
        self.name, self.folder, self._target = name, folder, fd
        self.terminal = os.isatty(fd)
        self.child: int | None = None  # what the command writes to where it is not the target itself
        self.where = None if self.terminal else _readable(fd)
        self._source = -1
        self.seen: Callable[[bytes], None] | None = None  # is given what passes
        self.first_step = 0.0  # when a step was first seen to pass
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
                fcntl.fcntl(self._source, 1031, MB)  # F_SETPIPE_SZ, which Python 3.8 has no name for

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
        buffer = memoryview(bytearray(MB))  # the same one again and again: fresh memory costs more than the copy
        while True:
            try:
                block = buffer[: os.readv(self._source, [buffer])]
            except OSError:  # a pseudo-terminal ends so
                return
            if not block:
                return
            try:
                _write_all(self._target, block)
            except OSError:
                os.close(self._source)  # nobody reads on: the command gets to know it as it would without us
                return
            self._ring.write(block)
            if not self.first_step and step_in(bytes(block[-4096:])) is not None:
                self.first_step = time.time()
            if self.seen is not None:
                self.seen(bytes(block))
            self._wrote = time.monotonic()
            if len(block) < _SAMPLE and not self.terminal:
                time.sleep(0.01)  # lets the pipe fill: a wake-up for each line would cost the job's cores

    def finish(self) -> bool:
        """Waits for what is on its way -> whether the stream ended: what the command left behind may hold it."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.05)
            with contextlib.suppress(OSError, ValueError):
                if time.monotonic() - self._wrote > 0.5 and not select.select([self._source], [], [], 0)[0]:
                    return not self._thread.is_alive()
        return True

    def pass_on_alone(self) -> None:
        """Goes on until the stream ends, in a process of its own."""
        if os.fork() == 0:
            with contextlib.suppress(OSError):
                while True:
                    block = os.read(self._source, MB)
                    if not block:
                        break
                    _write_all(self._target, block)
            os._exit(0)


def _readable(fd: int) -> tuple[str, int] | None:
    """-> path and position of the regular file that a descriptor writes to, where it can be read again; else None."""
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
    """Lets bytes through as they are; the real terminal behind does what terminals do."""
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
    """-> the outputs of this process; what passes is kept in a folder. One where both lead to the same place, so that
    their order is kept. Raises OSError."""
    first, second = os.fstat(1), os.fstat(2)
    if (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev):
        return [Stream(1, "output.log", folder)]
    return [Stream(1, "stdout.log", folder), Stream(2, "stderr.log", folder)]


# ---------------------------------------------------------------- watch: whether a run hangs

# What a watchdog says first; the knowledge base's list `watchdog-first-words` is the master copy.
_WATCHDOG = re.compile(
    rb"Watchdog caught collective operation timeout|watchdog got stuck for \d|Heartbeat monitor timed out"
    rb"|Watchdog timeout \(|Did not get (?:initial|subsequent) heartbeat|hang detected"
)
_DIGITS = re.compile(rb"\d+|0x[0-9a-f]+")
_OWN_WORDS = re.compile(rb"(?m)^torchtriage(?:-client)?: .*\n?")  # what is said here of a run is no output of its own
# [rank3]: · [default3]: · 3: , as torch, torchrun and srun -l put it before a line
_RANK = re.compile(rb"(?m)^(?:\[(?:rank|default)(\d{1,6})\]:|(\d{1,6}): )")
# attempt_0/3/stdout.log, of torchrun · rank_3.log
_RANK_OF_FILE = re.compile(r"attempt_\d+/(\d{1,6})/std(?:out|err)\.log$|rank[_.-]?(\d{1,6})(?!.*rank)", re.I)
# step 120 · iteration: 120/1000 · 第 120 步; 'loss': 2.31 and 12%|#2   | 120/1000 [ show a step that is not counted
_STEP = re.compile(
    rb"(?i)(?:\b|_)(?:step|iter|iteration|update)s?['\"]?[ :=\[#/]{1,12}(\d{1,9})\b|\bloss['\"]?[ :=]{1,3}-?\d[\d.]*"
    rb"|\d%\|[^|\n]{0,200}\| ?\d{1,9}/\d{1,9} \[|" + "第 ?(\\d{1,9}) ?步".encode()
)


class Limits(NamedTuple):
    """After how many seconds a run counts as hanging: `silence` at least, `factor` times its usual pause, and
    `patience` where it is not known to be at its usual work."""

    silence: float = 90.0
    factor: float = 5.0
    patience: float = 600.0


class Pace:
    """How often something happens, by the clock of its caller, and for how long it may not.

    `form` is what the last output looked like. After a line that the run has often printed and gone on from, it is
    known what it needs. After one that says something new, it may save, evaluate or compile, and gets more time."""

    _FEW = 3  # pauses, from which on they are known
    _FORMS = 256

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits, self.last = limits, now
        self._form = b""
        self._pauses: list[float] = []  # the newest ones
        self._after: dict[bytes, tuple[int, float]] = {}  # by form: how many pauses, the longest
        self.usual: float | None = None  # seconds between two times; None while that is not known

    def happened(self, now: float, form: bytes = b"", usual: bool = True) -> None:
        """`usual`: the pause that ends tells how long others may be."""
        if now > self.last:
            count, longest = self._after.pop(self._form, (0, 0.0))
            self._after[self._form] = count + 1, max(longest, now - self.last if usual else 0.0)
            self._pauses = [*self._pauses[-100:], now - self.last]
            if len(self._pauses) >= self._FEW:
                self.usual = sorted(self._pauses)[len(self._pauses) // 2]
            if len(self._after) > self._FORMS:
                del self._after[next(iter(self._after))]
        self.last, self._form = now, form

    def knows(self, form: bytes) -> bool:
        """-> whether it has happened in this form before."""
        return form in self._after

    @property
    def limit(self) -> float:
        """Seconds from the last time on after which something is wrong."""
        count, longest = self._after.get(self._form, (0, 0.0))
        enough = max(self.limits.silence, self.limits.factor * (self.usual or 0.0), 1.5 * longest)
        return enough if count >= self._FEW else max(enough, self.limits.patience)


class News(NamedTuple):
    """What is told of a run that is watched. `kind`: silent (no output), stalled (output, but no step), watchdog (one
    spoke up, in `line`), resumed. `seconds`: how long without output, or step. `usual`: how long that usually is.
    `ranks`: how long each rank wrote nothing, the longest first."""

    kind: str
    seconds: float
    limit: float
    usual: float | None = None
    step: int | None = None
    ranks: tuple[tuple[float, tuple[int, ...]], ...] = ()
    line: str = ""

    @property
    def for_engine(self) -> str:
        """The line that tells it to the engine; empty where the log's own words do."""
        if self.kind not in ("silent", "stalled"):
            return ""
        what = "output" if self.kind == "silent" else "step"
        reached = "" if self.step is None else f"; reached {self.step}"  # no word that would count a step
        return f"torchtriage watch: no {what} for {self.seconds:.0f} s (limit {self.limit:.0f} s){reached}\n"


class Step(NamedTuple):
    """A step as a line shows it, and its number where it is counted."""

    shown: bytes
    number: int | None


class Watch:
    """What is known of a running job: little, however much it writes. Its caller brings the clock."""

    TAIL = 64 << 10  # bytes of new output in which forms, ranks and steps are looked for
    _MOST_RANKS = 1 << 16

    def __init__(self, limits: Limits, now: float, step_of: Callable[[bytes], Step | None] | None = None) -> None:
        """`step_of`: the last step that some lines show."""
        self.output = Pace(limits, now)
        self._steps = Pace(limits._replace(silence=max(limits.silence, limits.patience)), now)
        self.step: int | None = None  # the last one that was counted
        self._shown = b""  # the last step as it was printed
        self._step_of = step_of or step_in
        self._ranks: dict[int, float] = {}
        self._told = ""  # the kind of the last news, until the run goes on
        self._wrote = self._stepped = self._works = False
        self._form, self._word = b"", ""

    def took(self, block: bytes, now: float, rank: int | None = None) -> None:
        """Takes new output, in whole blocks; of `rank`, where its file tells."""
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
        # A line that torchrun passes on with a label stands without it in the rank's own file.
        self._wrote, self._form = True, _DIGITS.sub(b"0", _RANK.sub(b"", tail[last:][:200]).strip())
        for each in {rank} if rank is not None else {int(one[1] or one[2]) for one in _RANK.finditer(tail)}:
            if each in self._ranks or len(self._ranks) < self._MOST_RANKS:
                self._ranks[each] = now
        step = self._step_of(tail)
        if step is not None and step.shown != self._shown:
            self._shown, self._stepped = step.shown, True
            self.step = self.step if step.number is None else step.number
        if not self.output.knows(self._form):
            self._steps.last = now  # it does something else than to train, and goes on with that

    def look(self, now: float, at_work: Callable[[], bool] = bool) -> News | None:
        """-> what is to be told now, once each. `at_work`: whether the processes read or write files all the while."""
        wrote, stepped, word = self._wrote, self._stepped, self._word
        self._wrote, self._stepped, self._word = False, False, ""
        since, since_step = now - self.output.last, now - self._steps.last
        if wrote:
            self._works = False
            worked = since > self.output.limit and not self._told  # which is seen the next time, too
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

    def bear(self) -> None:
        """Has the silence that was told last be none, as the processes are at work: it may last for `patience`."""
        self._told, self._works = "", True

    def may_be_work(self, news: News) -> bool:
        """-> whether it is a silence that is none where the processes are at work."""
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
    """-> the last step that some lines show."""
    found = list(_STEP.finditer(tail[-4096:]))
    numbers = [one[1] or one[2] for one in found if one[1] or one[2]]
    shown = b" ".join(one[0] for one in found[-4:])  # a line can show several
    return Step(shown, int(numbers[-1]) if numbers else None) if found else None


def rank_of_file(path: str) -> int | None:
    found = _RANK_OF_FILE.search(path)
    return int(found[1] or found[2]) if found else None


class Followed:
    """A file that grows, is renamed and made anew, or is cut to nothing; only its place is kept, no descriptor."""

    _BLOCK, _MOST = MB, 64 * MB  # bytes read at once, and of what was written since the last time

    def __init__(self, path: str, position: int = 0) -> None:
        self.path, self._position, self._inode = path, position, 0
        self.gone = False

    def read(self) -> Iterator[bytes]:
        """Yields what was written since the last time, in blocks that end at a line where they can."""
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
            self._position = max(self._position, size - self._MOST)
            file.seek(self._position)
            while self._position < size:
                block = file.read(min(self._BLOCK, size - self._position))
                if not block:
                    return
                self._position += len(block)
                yield block

    def _renamed(self) -> str | None:
        """-> where the file is that was followed until now."""
        with contextlib.suppress(OSError), os.scandir(os.path.dirname(self.path) or ".") as entries:
            for entry in entries:
                if entry.inode() == self._inode and entry.is_file():
                    return entry.path
        return None


class Follower:
    """Files and folders that are followed, those too that come later; of what is there already only the end is read."""

    _MOST = 16384  # files
    _NAMES = 5.0  # seconds after which folders are listed again

    def __init__(self, paths: Sequence[str], now: float) -> None:
        self.paths = list(paths)
        self._files: dict[str, Followed] = {}
        self._listed = now - self._NAMES
        self._list(now, Watch.TAIL)

    def read(self, watch: Watch, now: float) -> None:
        """Gives a watch what was written since the last time."""
        self._list(now, None)
        for file in list(self._files.values()):
            for block in file.read():
                watch.took(block, now, rank_of_file(file.path))

    @property
    def gone(self) -> bool:
        """Whether there were files, and none of them is there."""
        return bool(self._files) and all(file.gone for file in self._files.values())

    def newest(self) -> float | None:
        """-> when something was last written, by the wall clock."""
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
            for name in itertools.islice(_logs_below(path), self._MOST) if os.path.isdir(path) else [path]:
                if name not in self._files and len(self._files) < self._MOST:
                    with contextlib.suppress(OSError):
                        size = os.stat(name).st_size
                        self._files[name] = Followed(name, 0 if tail is None else max(0, size - tail))


def _logs_below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            if _LOG_NAME.search("/" + name) and not name.endswith((".gz", ".zst", ".json")):
                yield os.path.join(place, name)


class Work:
    """Whether processes read or write files: those of a hanging job do not, those that save or evaluate do."""

    WINDOW = 10.0  # seconds that are looked at
    ENOUGH = 10 * MB  # bytes within them

    def __init__(self, processes: Callable[[], Iterable[int]], clock: Callable[[], float] = time.monotonic) -> None:
        self._processes, self._clock = processes, clock
        self._since = -self.WINDOW * 2
        self._before: dict[int, int] = {}
        self._busy = True

    def __call__(self) -> bool:
        """-> whether they did in the last window; True until the first one is over."""
        now = self._clock()
        if now - self._since < self.WINDOW:
            return self._busy
        counts = {pid: count for pid in self._processes() for count in [_io_of(pid)] if count is not None}
        if now - self._since < 2 * self.WINDOW:
            moved = sum(max(0, count - self._before.get(pid, count)) for pid, count in counts.items())
            self._busy = moved >= self.ENOUGH
        else:  # nobody asked for a while
            self._busy = True
        self._since, self._before = now, counts
        return self._busy


def _io_of(pid: int) -> int | None:
    """-> how many bytes a process has read and written; None where that is not told."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/io") as file:
        told = dict(line.split(": ") for line in file.read().splitlines())
        return int(told["rchar"]) + int(told["wchar"])
    return None


def tree_of(pid: int) -> list[int]:
    """-> a process and all below it, as far as /proc tells."""
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


# ---------------------------------------------------------------- watch: what shows why it hangs

_GATHERING = 30.0  # seconds that it may take in all
_ONE_ANSWER = 10.0  # seconds for each program that is asked
_AT_THE_END = 6.0  # seconds that it may take in all when the command has failed, of those for the report
_KERNEL_TAIL = 256 << 10  # bytes of the kernel's newest lines
_CLOCKS_APART = 120.0  # seconds by which the kernel's clock may be behind
_MOST_STACKS, _MOST_EVIDENCE = 256, 64 * MB
_MOVES_WITHIN, _MOST_LOOKED_AT = (
    8.0,
    16,
)  # seconds in which ranks at work come to another line; ranks that are looked at
OWN_FILE = "torchtriage-watch.log"
_STACKS = "TORCHTRIAGE_STACKS"
# What a flight recorder's dumps are called up to the rank, and the pipes that ask for one.
_DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DUMPS_ELSEWHERE = ("/tmp/nccl_trace_rank_", "~/.cache/torch/comm_lib_trace_rank_")
_DUMP_PIPES = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE")
# Stands before other modules of this name, and gives way to them. In ranks it has a signal that nobody else uses write
# the stacks into a file, whose name says which process it is of, and which descriptor it has.
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
    """-> an environment in which ranks that are Python register a signal for their stacks; as it is where that can't
    be."""
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
    """What was gathered, and in a sentence each what could not be. `silent`: lines for the engine about ranks that gave
    no stack for what their processes do."""

    files: list[Member]
    missing: list[str]
    silent: list[str]


def gather(pid: int, stacks: str, since: float, host: bool = True) -> Gathered:
    """Gathers stacks and dumps of the job that a process began at the time `since`, and what its `host` knows of it,
    within limits of time and size. Changes nothing of the job."""
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
    """Gathers what the host knows of a command that has failed: the kernel's newest lines, the state of GPUs, dumps
    newer than `since`. What the folder `have` holds already, of a hang before, is left out."""
    deadline = time.monotonic() + seconds
    found = Gathered([], [], [])
    _gather_kernel(found, since, deadline)
    _gather_gpus(found, deadline)
    _gather_dumps(found, since)
    return found._replace(files=[file for file in found.files if not os.path.exists(os.path.join(have, file.name))])


def _of_this_host(name: str) -> str:
    """-> the name of a file that a program of this host filled: `dmesg.gpu-021.txt`."""
    return "{}.{}.txt".format(name, socket.gethostname().split(".")[0])


def _gather_kernel(found: Gathered, since: float, deadline: float) -> None:
    """Takes what the kernel has logged since the job began, the newest of it. Where this user may not read it, nothing
    is said: that is usual."""
    for command in (
        ["dmesg", "--time-format", "iso"],
        ["dmesg", "-T"],
        ["journalctl", "-k", "-n", "2000", "-o", "short-iso"],
    ):
        tool = shutil.which(command[0])
        left = deadline - time.monotonic()
        if tool is None or left <= 0:
            continue
        told, problem = _output([tool, *command[1:]], min(_ONE_ANSWER, left))
        if problem:
            found.missing.append(f"{command[0]}: {problem}")
            return
        if told.strip():
            told = _newer(told, since - _CLOCKS_APART)[-_KERNEL_TAIL:]
            if len(told) == _KERNEL_TAIL:
                told = told[told.find(b"\n") + 1 :]
            if told:
                found.files.append(Member(_of_this_host("dmesg"), [told]))
            return


def _newer(told: bytes, since: float) -> bytes:
    """-> the kernel's lines from the first one on that is not older."""
    start = 0
    for line in told.splitlines(True):
        time_of = _kernel_time(line[:40].decode("ascii", "replace"))
        if time_of is not None and time_of >= since:
            return told[start:]
        start += len(line)
    return b""


def _kernel_time(line: str) -> float | None:
    """-> when it was, of `2026-05-01T09:05:01,440118+00:00 …` or `[Fri May  1 09:05:01 2026] …`."""
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
    for rank, process in sorted(ranks.items())[:_MOST_STACKS]:
        if time.monotonic() > deadline:
            found.missing.append("stacks of further ranks: no time left")
            return
        seconds = min(_ONE_ANSWER, deadline - time.monotonic())
        told = _stack_of(process, folder, seconds)
        if told:
            found.files.append(Member(f"stacks/rank_{rank}.txt", [told[: 4 * MB]]))
        else:
            why = _why_silent(process)
            found.missing.append(f"the stack of rank {rank}: {why}")
            if why.startswith("its process "):
                found.silent.append(f"[rank{rank}]: torchtriage watch: no stack: {why}\n")
    if not ranks:
        found.missing.append("stacks: no process has a rank")


def moving(pid: int, folder: str) -> list[int]:
    """-> the ranks below a process whose main thread comes to another line within some seconds: those of a hanging job
    stand still, save one that loops. Empty where no stack can be had."""
    ranks = dict(sorted(_ranks_below(pid).items())[:_MOST_LOOKED_AT])
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
    """-> the frames of the main thread, of what py-spy or faulthandler print of a process."""
    threads = re.split(rb"(?m)^(?:Current t|T)hread ", stacks)[1:]
    main = [thread for thread in threads if b'"MainThread"' in thread.partition(b"\n")[0]]
    main = main or [thread for thread in threads if b"<module>" in thread] or threads[-1:]
    return main[0].partition(b"\n")[2].strip() if main else b""


def _stack_of(process: int, folder: str, seconds: float) -> bytes:
    tool = shutil.which("py-spy")
    told, _ = _output([tool, "dump", "--pid", str(process)], seconds) if tool else (b"", "")
    return told or _by_signal(process, folder)


def _why_silent(pid: int) -> str:
    """-> why a process gives no stack."""
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
    """-> the processes below one that are ranks, by rank: those that have one which their parents have not."""
    own: dict[int, str] = {}
    found: dict[int, int] = {}
    for process in tree_of(pid):  # parents first
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
    """-> the stacks of a process that has registered the signal for them; empty where it is not sure that it has, as it
    would end of the signal, or where it does not answer."""
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
        told, until = b"", time.monotonic() + 2
        while time.monotonic() < until:
            time.sleep(0.05)
            with open(path, "rb") as answer:
                answer.seek(size)
                now = answer.read(4 * MB)
            if now and now == told:
                break
            told = now
        return told
    except (OSError, ValueError, IndexError, StopIteration):
        return b""


def _gather_gpus(found: Gathered, deadline: float) -> None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return
    told, problem = _output([tool, "-q"], min(_ONE_ANSWER, max(0.1, deadline - time.monotonic())))
    if told:
        found.files.append(Member(_of_this_host("nvidia-smi-q"), [told[: 4 * MB]]))
    if problem:
        found.missing.append(f"nvidia-smi: {problem}")


def _ask_for_dumps(found: Gathered) -> None:
    for variable in _DUMP_PIPES:
        for pipe in glob.glob(glob.escape(os.environ.get(variable, "")) + "*.pipe") if os.environ.get(variable) else []:
            try:
                handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # fails where nobody reads
                try:
                    if stat.S_ISFIFO(os.fstat(handle).st_mode):
                        os.write(handle, b"1\n")
                finally:
                    os.close(handle)
            except OSError as error:
                found.missing.append(f"{pipe}: {error.strerror}")


def _gather_dumps(found: Gathered, since: float) -> None:
    prefixes = [os.environ[name] for name in _DUMPS if os.environ.get(name)] or list(_DUMPS_ELSEWHERE)
    room = _MOST_EVIDENCE
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
                found.missing.append(f"{path}: more than {_MOST_EVIDENCE} bytes of dumps")
                continue
            room -= dump.size
            found.files.append(dump)


def _output(command: Sequence[str], seconds: float) -> tuple[bytes, str]:
    """-> what a program writes, and why that is not all; it is left alone where it does not even die."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        return b"", str(error.strerror)
    assert process.stdout is not None
    handle, told, until = process.stdout.fileno(), b"", time.monotonic() + seconds
    try:
        while len(told) < 16 * MB:
            if not select.select([handle], [], [], max(0.0, until - time.monotonic()))[0]:
                return told, f"no answer within {seconds:.0f} s"
            block = os.read(handle, MB)
            if not block:
                return told, ""
            told += block
        return told, "too much"
    finally:
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)


class Watching(NamedTuple):
    """That the command is watched, and after how many seconds of a hang it is told to end, if at all."""

    limits: Limits
    stop_after: float | None


class Watcher:
    """Watches the command while it runs: tells when it hangs, gathers what shows why, and reports that."""

    _STOPPING = 60.0  # seconds between being asked to end and being killed

    def __init__(self, settings: Settings, capture: Capture, watching: Watching | None) -> None:
        """Where it is None, nothing is watched."""
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
        self._hung_at: int | None = None  # the step

    def saw(self, block: bytes) -> None:
        """Takes what the command wrote."""
        with self._lock:
            self._watch.took(block, time.monotonic())

    def start(self, child: subprocess.Popen[bytes], outputs: Sequence[Stream]) -> None:
        if self._watching is None:
            return
        for stream in outputs:
            stream.seen = self.saw
        self._files = [Followed(*stream.where) for stream in outputs if stream.where]
        self._follower = Follower(self._capture.told["trees"], time.monotonic())
        self._thread = threading.Thread(target=self._look, args=(child,), daemon=True)
        self._thread.start()

    def end(self, status: int) -> None:
        """Comes when the command has ended; waits a moment for a report that is on its way, which is the older one."""
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
                        self._watch.bear()
                    say(at_work(news, works, self._limits.patience))
                    continue
            if news is not None:
                hangs_since = None if news.kind == "resumed" else hangs_since or now
                self._tell(news, child.pid)
            if self._stop_after is not None and hangs_since is not None and now - hangs_since >= self._stop_after:
                return self._stop(child)

    def _tell(self, news: News, pid: int) -> None:
        for line in told_of(news):
            say(line)
        if news.kind == "resumed" and news.step == self._hung_at:
            return  # what it prints may be how it fails of the hang
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
        except OSError as error:  # the report that is sent now has it all the same
            say(f"evidence is not kept for the report at the end: {error}")
            self._forget()
        self._post(found.files)

    def _forget(self) -> None:
        """Removes the evidence of a hang that is none any more."""
        shutil.rmtree(self._evidence, ignore_errors=True)

    def _post(self, evidence: list[Member]) -> None:
        """Reports the run as it is. What can't be delivered now is not kept: the report at the end has more."""
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
            show(told(incident), sys.stderr)

    def _announce_the_last(self) -> None:
        """Has the report at the end replace this one; also where the answer to this one gets lost on its way."""
        known = self._capture.told["query"]
        if ("provisional", "false") not in known:
            with contextlib.suppress(OSError, ValueError):
                self._capture.write(query=[*known, ("provisional", "false")])

    def _stop(self, child: subprocess.Popen[bytes]) -> None:
        say(f"it has hung for {self._stop_after:.0f} s: the command is told to end (--stop-after)")
        with contextlib.suppress(OSError), open(os.path.join(self._evidence, OWN_FILE), "a") as file:
            file.write(f"torchtriage watch: ended after {self._stop_after:.0f} s\n")  # by whom the engine can't see
        with contextlib.suppress(OSError):
            child.terminate()
        if not self._over.wait(self._STOPPING):
            for pid in reversed(tree_of(child.pid)):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def at_work(news: News, ranks: Sequence[int], patience: float) -> str:
    """-> the line that tells of a silence in which `ranks` work on."""
    shown = ",".join(map(str, ranks[:32]))
    who = f"rank{'s' if len(ranks) > 1 else ''} {shown}"
    return f"no output for {news.seconds:.0f} s, but the stack of {who} changes: no hang before {patience:.0f} s"


def told_of(news: News) -> Iterator[str]:
    """Yields what is told of a hang, a line each."""
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
    """A process that does nothing but see which signals reach our whole group: those the command has got already."""

    GRACE = 0.25  # seconds that a signal to a group takes at most from one process to the next

    def __init__(self) -> None:
        self._read = self.pid = -1
        self._seen: set[int] = set()
        if not hasattr(signal, "sigtimedwait"):  # macOS: every signal is passed on
            return
        self._asked = signal.SIGRTMIN
        self._read, write = os.pipe()
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {self._asked})
        self.pid = os.fork()
        if self.pid == 0:
            _die_with_parent(signal.SIGKILL)
            os.closerange(0, write)  # held here, a pipe would not end when it should
            os.closerange(write + 1, 4096)
            while os.getppid() == parent:
                seen = signal.sigtimedwait({*_FORWARDED, self._asked}, 5)
                if seen is not None:
                    os.write(write, bytes([seen.si_signo]))
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {self._asked})
        os.close(write)

    def saw(self, number: int) -> bool:
        """-> whether the signal that reached us reached the group.

        A busy machine may run the witness late, so it is asked: it takes the signals that wait for it by their numbers,
        and the one that asks has the highest."""
        asked = False
        while self.pid > 0 and number not in self._seen:
            if not asked and not select.select([self._read], [], [], self.GRACE)[0]:
                os.kill(self.pid, self._asked)
                asked = True
            told = os.read(self._read, 1)
            if told in (b"", bytes([self._asked])):
                return False
            self._seen.add(told[0])
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
    """What the service has answered so far: one incident at most, and one decision about it."""

    incidents: list[dict[str, Any]]
    decisions: list[dict[str, Any]]


class Ending(NamedTuple):
    """How `run` ends after a failure: with a status that tells the verdict (`exit_code`), or, where a decision is asked
    for too (`decide`), that one; `restart` is the status of a restart."""

    exit_code: bool = False
    decide: bool = False
    restart: int = _RESTART

    def status(self, told: Answers) -> int | None:
        """-> the status; None where the command keeps its own: no answer, a dry run, a verdict that says less."""
        if not self.exit_code:
            return None
        if self.decide:
            taken = [one for one in told.decisions if one.get("mode") == "enforce"]
            return _DECIDED.get(str(taken[0].get("action")), self.restart) if taken else None
        found = status_of(told.incidents[0] if told.incidents else None)
        return None if found in (0, _INCONCLUSIVE) else self.restart if found == _RESTART else found


def run(
    settings: Settings, command: list[str], ending: Ending, node: int | None, watching: Watching | None = None
) -> int:
    """-> the exit status of the command, which is reported where it failed, or where it was found hanging."""
    if _is_unreported(settings, node):
        return replace_by(command)
    global _prctl
    _prctl = _find_prctl()
    try:
        capture, outputs = _begun(settings, command)
    except OSError as error:
        say(f"nothing can be captured, the command runs unreported: {error}")
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
    threading.Thread(target=_beside, args=(settings, capture), daemon=True).start()
    status, signals = _wait(child, witness, outputs)
    witness.end()
    ended = [stream.finish() for stream in outputs]
    watcher.end(status)
    answers = Answers([], [])
    fine = status == 0 or (status in (-signal.SIGINT, 130, 1) and "SIGINT by group" in signals)
    if fine and not watcher.posted:
        _tell_good_run(settings, _summary(capture, command, outputs) if status == 0 else "")
        capture.remove()
    else:
        answers = _report_run(settings, capture, status, signals, _summary(capture, command, outputs), ending.decide)
    for stream, is_over in zip(outputs, ended):
        if not is_over:
            stream.pass_on_alone()
    advised = ending.status(answers) if status != 0 else None
    return status if advised is None else advised


def _begun(settings: Settings, command: list[str]) -> tuple[Capture, list[Stream]]:
    """-> where the report is gathered, and the streams that the command will write to. Raises OSError."""
    capture = Capture(settings, command)
    outputs = streams(capture.folder)
    capture.write(streams={stream.name: stream.where for stream in outputs}, since=time.time() - 2)
    return capture, outputs


def _is_unreported(settings: Settings, node: int | None) -> bool:
    """-> whether the command only runs: another client reports it, none can, or another node's does."""
    if os.environ.get("TORCHTRIAGE_ACTIVE") or not settings.url:
        if not settings.url:
            say("TORCHTRIAGE_URL is not set: the command runs unreported")
        return True
    return node is not None and facts_here()[0].get("node_rank", str(node)) != str(node)


def replace_by(command: list[str]) -> int:
    """Becomes the command; comes back only where that fails."""
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
    """-> the command's status, negative for a signal, and the signals that came meanwhile."""
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


def _beside(settings: Settings, capture: Capture) -> None:
    """Delivers what waits, and keeps what the ranks write within bounds, as long as the command runs."""
    delivered, _ = flush(settings)
    if delivered:
        say(f"delivered {delivered} reports of earlier runs")
    while True:
        time.sleep(_BETWEEN)
        punch(capture.ranks)


def _summary(capture: Capture, command: Sequence[str], outputs: Sequence[Stream]) -> str:
    """-> what is known of the run; empty where it has no job name, or nobody wants it."""
    query = capture.told["query"]
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


def _tell_good_run(settings: Settings, summary: str) -> None:
    """Hands over what is known of a run that worked, within seconds; whatever goes wrong is nobody's trouble."""
    if summary:
        thread = threading.Thread(target=tell_summary, args=(settings, summary), daemon=True)
        thread.start()
        thread.join(_SUMMARY_SECONDS)


def _report_run(
    settings: Settings, capture: Capture, status: int, signals: list[str], summary: str, decide: bool
) -> Answers:
    """Reports a failed run within its time -> what the service answered in time. A run that failed by itself can be
    decided about too; one that was told to end ends as it does without us."""
    shown = 128 - status if status < 0 else status
    ended = f"the command ended with exit status {shown}"
    if status < 0:  # as a shell tells it
        ended = f"line 1: {capture.told['pid']} {signal.strsignal(-status)}  the command"
    query = [*capture.told["query"], ("exit_code", str(shown)), ("ended_at", str(int(time.time())))]
    query += [("label", "signal:" + name.split()[0]) for name in signals[:1]]
    query += [(_SUMMARY, summary)] if summary else []
    if all(name != "commit" for name, _ in query):
        query += [("commit", commit) for commit in [_commit_here()] if commit]
    answers = Answers([], [])
    decide = decide and status != 0 and not any(name.split()[0] in _TOLD_TO_END for name in signals)

    def work() -> None:
        try:
            capture.write(query=query, ended=ended, killed=status < 0)
            path = keep(settings, *captured(capture.folder, beside=_of_the_host(settings, capture, status)))
        except (OSError, ValueError) as error:
            return say(f"the failure can't be reported: {error}")
        capture.remove()
        _ask(settings, path, deadline, decide, answers)

    deadline = time.monotonic() + settings.timeout
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.02)
        stopped = signal.sigtimedwait([signal.SIGINT, signal.SIGQUIT], 0) if hasattr(signal, "sigtimedwait") else None
        if stopped is not None or time.monotonic() > deadline:
            later = "the report is not delivered yet; `torchtriage-client flush` or the next run will"
            say("no decision came in time" if answers.incidents else later)
            break
    if answers.incidents and status != 0:
        decisions = ["  decision: " + decided(one) for one in answers.decisions]
        show([*told(answers.incidents[0]), *decisions], sys.stderr)
    return answers


def _ask(settings: Settings, path: str, deadline: float, decide: bool, answers: Answers) -> None:
    """Delivers a bundle and, where that is wanted, asks for a decision; adds the answers as they come."""
    try:
        answers.incidents.extend(filter(None, [deliver(settings, path, deadline, settings.wait)]))
    except Undelivered as error:
        return say(f"{error}; the report waits in {os.path.dirname(path)}")
    try:
        if decide:
            answers.decisions.extend(decision_of(settings, incident) for incident in answers.incidents)
    except Undelivered as error:
        say(f"no decision: {error}")


def _of_the_host(settings: Settings, capture: Capture, status: int) -> list[Member]:
    """-> what this host knows of a command that failed here; says in a line each what it should have."""
    if status == 0 or capture.many_hosts or not settings.gather:
        return []
    found = gather_at_end(
        os.path.join(capture.folder, "evidence"),
        float(capture.told.get("since", time.time())),
        min(_AT_THE_END, settings.timeout / 3),
    )
    for missing in found.missing:
        say("not gathered: " + missing)
    return found.files


def leave(status: int) -> None:
    """Ends this process as the command ended, by the same signal where it was one."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
        os.kill(os.getpid(), -status)
        status = 128 - status  # the first process of a container does not die of it
    os._exit(status)


# ---------------------------------------------------------------- report, flush


def report(settings: Settings, paths: Sequence[str], facts: Facts, labels: Sequence[str]) -> dict[str, Any]:
    """Reports what exists as one run -> the incident. Raises OSError, Undelivered, ValueError where there is no log."""
    members: list[Member] = []
    facts = {name: text for name, text in facts.items() if name != "nodes"}  # these are the logs of the whole run
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
    return deliver_now(settings, keep(settings, query_of(settings, facts, labels), members))


def deliver_now(settings: Settings, path: str) -> dict[str, Any]:
    """Sends a bundle that was just kept -> the incident. Raises Undelivered, which says where the report waits."""
    try:
        incident = deliver(settings, path, time.monotonic() + settings.timeout, settings.wait)
    except Undelivered as error:
        kept = "" if error.final else f"; the report waits in {os.path.dirname(path)}"
        raise Undelivered(str(error) + kept, error.final) from None
    if incident is None:
        raise Undelivered("another process delivers it")
    return incident


def answer(settings: Settings, incident: dict[str, Any], options: argparse.Namespace) -> int:
    """Prints the verdict in the form that was asked for, and what is decided -> the exit status. Raises Undelivered."""
    decision = decision_of(settings, incident) if options.decide else None
    if options.json:
        print(json.dumps(incident if decision is None else {**incident, "decision": decision}))
    elif options.shell:
        print(for_shell(incident, decision))
    else:
        lines = told(incident)
        show(lines if decision is None else [*lines, "  decision: " + decided(decision)], sys.stdout)
    if not options.exit_code:
        return 0
    if decision is not None:
        return _DECIDED.get(str(decision.get("action")), _RESTART)
    status = status_of(incident)
    return 1 if status is None else status


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """The options of everything that reports what exists."""
    add_options(parser)
    parser.add_argument(
        "--decide",
        action="store_true",
        help="ask whether to start the job again, too; --exit-code then gives 10 restart, 11 stop, 14 wait",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print the incident as JSON")
    how.add_argument("--shell", action="store_true", help="print the advice as variables, for eval")


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where to (else $TORCHTRIAGE_URL, $TORCHTRIAGE_TOKEN, …)")
    group.add_argument("--url", help="the service, as in https://triage.example.org")
    group.add_argument("--wait", metavar="SECONDS", help="how long to wait for the verdict (10; at most 60)")
    group.add_argument("--timeout", metavar="SECONDS", help="how long reporting may take in all (20; report: 300)")
    group.add_argument("--spool", metavar="DIR", help="where reports wait (~/.cache/torchtriage/spool)")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="the exit status tells the verdict: 10 a retry can help, 11 it must be fixed first, 12 unexplained, "
        "13 inconclusive, 0 healthy (run: both give the command's own)",
    )
    facts = parser.add_argument_group("what is known of the job (else $TORCHTRIAGE_JOB_ID, …, and its scheduler)")
    for name in _FIELDS:
        shown = "job_" + name if name in ("url", "exit_code") else name
        facts.add_argument("--" + shown.replace("_", "-"), metavar="…")
    facts.add_argument("--label", action="append", metavar="KEY:VALUE", help="can be given several times")


def _add_run(commands: Any, name: str, help_: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=help_, usage=f"torchtriage-client {name} [options] -- COMMAND [ARGUMENT…]"
    )
    add_options(made)
    made.add_argument(
        "--decide",
        action="store_true",
        help="ask whether to start the command again, too; --exit-code then gives 10 restart, 11 stop, 14 wait, and in "
        "a dry run the command's own status",
    )
    made.add_argument(
        "--restart-status", metavar="N", help="the exit status in place of 10, for those that want another"
    )
    made.add_argument("--node", type=int, metavar="N", help="report on this node of several only; elsewhere just run")
    made.add_argument("--no-tee", dest="tee", action="store_const", const="no", help="let torchrun print as it likes")
    return made


def watching_of(options: argparse.Namespace) -> Watching | None:
    """-> how the command is watched, if it is; raises ValueError with a sentence."""
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
    """-> how the command's failure ends; raises ValueError with a sentence."""
    if options.command not in ("run", "watch"):
        return Ending()
    text = options.restart_status or os.environ.get("TORCHTRIAGE_RESTART_STATUS", "") or str(_RESTART)
    if not text.isdecimal() or not 1 <= int(text) <= 255 or int(text) in _DECIDED.values():
        raise ValueError(f"--restart-status: not a number from 1 to 255, or one that means something else: {text}")
    return Ending(options.exit_code, options.decide, int(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchtriage-client", description="Reports failed training runs.")
    parser.add_argument("--version", action="version", version="torchtriage-client " + __version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands, "run", "run a command, and report it when it fails")
    made = _add_run(commands, "watch", "the same, and report it while it hangs")
    limits = Limits()
    for name, value, what in (
        ("silence", f"{limits.silence:g}", "minimum seconds without output that count as a hang"),
        ("factor", f"{limits.factor:g}", "multiple of the usual pause that counts as a hang"),
        (
            "patience",
            f"{limits.patience:g}",
            "seconds allowed at the start, after a new kind of line, and during file access",
        ),
        ("stop-after", "never", "end the command when it has hung for N seconds"),
    ):
        made.add_argument("--" + name, metavar="N", help=f"{what} ({value})")
    made = commands.add_parser("report", help="report logs that exist, as one run")
    add_report_options(made)
    made.add_argument("paths", nargs="+", metavar="FILE|DIR|-")
    made = commands.add_parser("flush", help="deliver what waits in the spool")
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
            parser.error(f"{options.command}: the command stands behind --, as in: run -- torchrun train.py")
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
        return answer(settings, report(settings, options.paths, *facts_here()), options)
    except (OSError, ValueError, Undelivered) as error:
        say(str(error))
        return 2 if isinstance(error, (FileNotFoundError, ValueError)) else 1


if __name__ == "__main__":
    sys.exit(main())
