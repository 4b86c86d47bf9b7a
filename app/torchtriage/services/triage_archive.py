"""Triages an archive of any number of logs. Each shard becomes a file of verdicts, one JSON object per line.

A shard is a group of consecutive logs. Its file's name identifies its first log, its contents and the knowledge. So the
file names are the checkpoint: a shard is done if its file exists, and a shard that was interrupted or has changed has
no file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from torchtriage.domain.entry import Language
from torchtriage.domain.json_form import fields_form
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import VERSION, Engine
from torchtriage.errors import BadInput, NotFound, TriageError
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import cache_folder, load
from torchtriage.queue.subprocess_calls import CallFailed, result_or_error
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.reading.sources import LogFile, Run
from torchtriage.reading.unpack import UnpackBudget, Upload, unpack
from torchtriage.storage.archive_results import ShardFolder
from torchtriage.storage.log_archive import Archive, ArchivedLog

Lost = tuple[type[BaseException], ...]

_NAME = 16  # characters of a digest: short enough for a name, long enough for 10^9 shards


@dataclass(frozen=True, slots=True)
class Work:
    """The options that all shards of a run share. Only texts, numbers and paths, so other processes can
    receive them."""

    source: str
    target: str
    knowledge_dirs: tuple[Path, ...] = ()
    lang: Language = "en"
    most_bytes: int | None = None  # maximum bytes of one unpacked log
    memory: int = 2**30  # bytes that all processes together may use
    match: str = "*"  # keys of logs match this pattern
    shard: int = 200  # logs per shard
    redacting: bool = True


@dataclass(frozen=True, slots=True)
class Shard:
    """Logs that are triaged together; `name` is the name of their file."""

    name: str
    logs: tuple[ArchivedLog, ...]


@dataclass(frozen=True)
class LogResult:
    """One log's line in a shard's file: its verdict, or why there is none."""

    key: str
    etag: str
    bytes: int
    verdict: Verdict | None = None
    error: Failure | None = None

    @classmethod
    def of(cls, log: ArchivedLog, answer: Verdict | TriageError) -> LogResult:
        if isinstance(answer, TriageError):
            return cls(log.key, log.etag, log.bytes, error=Failure(answer.code, answer.message, answer.detail))
        return cls(log.key, log.etag, log.bytes, answer)

    @property
    def kind(self) -> str:
        """The entry, or else the outcome, or else the code of the error."""
        if self.verdict is None:
            return f"error: {self.error.code if self.error else None}"
        root = self.verdict.root_cause
        return (root and root.entry) or self.verdict.outcome

    def to_json(self) -> dict[str, Any]:
        whole = fields_form(self)
        return {name: value for name, value in whole.items() if name != "error" or value is not None}


@dataclass(frozen=True)
class Failure:
    """Why there is no verdict, in the form of the API's errors."""

    code: str
    message: str
    detail: dict[str, Any]


@dataclass(slots=True)
class ArchiveProgress:
    """The progress of a run. `kinds` counts entries, outcomes and error codes, of this run only."""

    logs: int = 0
    shards: int = 0
    done_before: int = 0  # logs
    kinds: Counter[str] = field(default_factory=Counter)


def triage_archive(
    work: Work, executor: Executor, ahead: int, lost: Lost = (CallFailed,)
) -> Generator[ArchiveProgress]:
    """Yields the progress after each shard. At the end, the target contains one verdict per log and nothing else.

    Submits at most `ahead` shards to the executor at a time; `lost` are the exceptions that it raises if a process
    dies. Raises BadInput, KnowledgeError and StorageUnavailable. Finished shards stay, and the next run continues from
    there.
    """
    if _lies_in(work.target, work.source):
        raise BadInput(f"{work.target}: the folder for verdicts must be outside the folder of logs")
    archive, target = Archive(work.source), ShardFolder(work.target)
    knowledge = _engine(work.knowledge_dirs).knowledge.digest  # compiled once here; the processes find it in the cache
    one_by_one = partial(_one_by_one, work, executor, lost)
    progress, waiting = ArchiveProgress(), dict[Future[Counter[str]], Shard]()
    with target.alone():
        there, current = target.names(), set[str]()
        for shard in shards(archive, work, knowledge, {name.split("-")[0] for name in there}):
            current.add(shard.name)
            if shard.name in there:
                progress.done_before += len(shard.logs)
                continue
            if len(waiting) >= ahead:
                yield from _finished(waiting, progress, lost, one_by_one)
            waiting[executor.submit(triage_shard, work, shard)] = shard
        while waiting:
            yield from _finished(waiting, progress, lost, one_by_one)
        for name in there - current:
            target.remove(name)  # made with other knowledge, or from logs that were deleted
    yield progress


def shards(archive: Archive, work: Work, knowledge: str, known_digests: set[str]) -> Iterator[Shard]:
    """Yields the archive in shards. `begun` has digests of the first logs of existing shards. New shards begin at the
    same logs, so a log added in the middle of the archive changes only one shard."""
    logs: list[ArchivedLog] = []
    for log in archive.listed():
        if not fnmatchcase(log.key, work.match):
            continue
        if len(logs) == work.shard or (logs and _digest(log.key) in known_digests):
            yield _shard(logs, work, knowledge)
            logs = []
        logs.append(log)
    if logs:
        yield _shard(logs, work, knowledge)


def triage_shard(work: Work, shard: Shard) -> Counter[str]:
    """Triages the logs of a shard and writes its file. Returns the count of each kind. Runs in any process and can be
    repeated.

    Raises StorageUnavailable and KnowledgeError.
    """
    return _keep(work, shard, [triage_log(work, log) for log in shard.logs])


def triage_log(work: Work, log: ArchivedLog) -> LogResult:
    """Returns the result for one log. Runs in any process. Raises StorageUnavailable and KnowledgeError."""
    answer = _triaged(_engine(work.knowledge_dirs), Archive(work.source), log, work)
    return _redacted(work, LogResult.of(log, answer))


def _one_by_one(work: Work, executor: Executor, lost: Lost, shard: Shard) -> Counter[str]:
    """Triages each log of a shard separately after a process died. Only the log that ends its process again gets no
    verdict."""
    results = []
    for log, future in [(log, executor.submit(triage_log, work, log)) for log in shard.logs]:
        try:
            results.append(future.result())
        except lost as error:
            failure = error if isinstance(error, CallFailed) else CallFailed(f"its process died: {error}")
            results.append(_redacted(work, LogResult.of(log, failure)))
    return _keep(work, shard, results)


def _redacted(work: Work, result: LogResult) -> LogResult:
    return without_secrets(result) if work.redacting else result


def _keep(work: Work, shard: Shard, results: list[LogResult]) -> Counter[str]:
    lines = "".join(f"{json.dumps(result.to_json())}\n" for result in results)
    ShardFolder(work.target).write(shard.name, lines.encode())
    return Counter(result.kind for result in results)


def _triaged(engine: Engine, archive: Archive, log: ArchivedLog, work: Work) -> Verdict | TriageError:
    """Returns the verdict of a log, or why there is none. A log that cannot be read must not stop the others."""
    run = Run(log.key, lambda: _files(archive, log, work.most_bytes), several=True)
    triage = partial(engine.triage, redacting=work.redacting)
    answer = result_or_error(triage, (run, work.lang), work.memory)
    if isinstance(answer, Exception) and not isinstance(answer, BadInput | NotFound | CallFailed):
        raise answer
    return cast(Verdict | TriageError, answer)


def _files(archive: Archive, log: ArchivedLog, limit: int | None) -> Iterator[LogFile]:
    for inside in unpack(Upload(log.key, archive.chunks(log)), UnpackBudget(limit)):
        yield LogFile(inside.name, partial(iter, inside.chunks), inside.member)


def _finished(
    waiting: dict[Future[Counter[str]], Shard],
    progress: ArchiveProgress,
    lost: Lost,
    one_by_one: Callable[[Shard], Counter[str]],
) -> Iterator[ArchiveProgress]:
    """Waits until a shard is done, and removes the finished ones from `waiting`."""
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        shard = waiting.pop(future)
        try:
            kinds = future.result()
        except lost:
            kinds = one_by_one(shard)
        progress.kinds += kinds
        progress.logs += kinds.total()
        progress.shards += 1
        yield progress


def _shard(logs: list[ArchivedLog], work: Work, knowledge: str) -> Shard:
    content = [
        VERSION,
        knowledge,
        work.lang,
        str(work.most_bytes),
        f"redacting {work.redacting}",
        *(f"{log.key}\0{log.etag}" for log in logs),
    ]
    return Shard(f"{_digest(logs[0].key)}-{_digest(chr(0).join(content))}.jsonl", tuple(logs))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_NAME]


def _lies_in(inner: str, outer: str) -> bool:
    if "://" in inner or "://" in outer:
        return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")
    return Path(inner).resolve().is_relative_to(Path(outer).resolve())


@cache
def _engine(knowledge_dirs: tuple[Path, ...]) -> Engine:
    """Returns this process's engine. It is made for the process's first shard."""
    return Engine(load([BUILT_IN, *knowledge_dirs], cache_folder()), cache_folder())
