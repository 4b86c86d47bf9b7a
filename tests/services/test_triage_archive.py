"""An archive of logs in bulk: nothing lost, nothing double, whatever happens in between."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services.logs import OUT_OF_MEMORY
from torchtriage.engine import Engine
from torchtriage.errors import BadInput, TriageError
from torchtriage.queue.process_pool import ProcessPool, process_pool
from torchtriage.reading.redaction.redact import redact
from torchtriage.services.triage_archive import ArchiveProgress, Shard, Work, triage_archive
from torchtriage.storage.archive_results import ShardFolder
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.log_archive import Archive


class Here(Executor):
    """Works at once, in this thread; keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[Shard] = []

    def submit(self, function: Any, *arguments: Any, **_: Any) -> Future[Any]:  # type: ignore[override]
        self.given.append(arguments[1])
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except TriageError as error:
            future.set_exception(error)
        return future


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Ten logs of three kinds, in folders, in shards of three."""
    logs = tmp_path / "logs"
    for number in range(8):
        path = logs / f"day-{number % 3}" / f"{number}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(OUT_OF_MEMORY if number % 2 else b"step 1\nstep 2\n")
    (logs / "day-0" / "z.log.gz").write_bytes(gzip.compress(OUT_OF_MEMORY))
    (logs / "day-0-more.log").write_bytes(b"\x00\x01\x02" * 1000)
    return Work(str(logs), str(tmp_path / "out"), shard=3)


def done(work: Work) -> dict[str, dict[str, Any]]:
    """Returns the line of each log; a log with two is a failure."""
    lines = [json.loads(line) for path in Path(work.target).glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    return {line["key"]: line for line in lines}


def triage(work: Work, executor: Executor | None = None) -> ArchiveProgress:
    return [*triage_archive(work, executor or Here(), 4)][-1]


def test_every_log_has_its_line(work: Work) -> None:
    told = triage(work)
    lines = done(work)
    assert set(lines) == {log.key for log in Archive(work.source).listed()}
    assert len(lines) == 10
    assert lines["day-1/1.log"]["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert lines["day-0/z.log.gz"]["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert lines["day-0/0.log"]["verdict"]["outcome"] == "healthy"
    assert lines["day-0-more.log"]["verdict"] is None
    assert lines["day-0-more.log"]["error"]["code"] == "unreadable_log"
    assert told.kinds == {"cuda.oom": 5, "healthy": 4, "error: unreadable_log": 1}
    assert (told.logs, told.shards, told.done_before) == (10, 4, 0)


def test_a_second_run_does_nothing(work: Work) -> None:
    triage(work)
    before = {path.name: path.stat().st_mtime_ns for path in Path(work.target).iterdir()}
    told = triage(work)
    assert (told.logs, told.done_before) == (0, 10)
    assert {path.name: path.stat().st_mtime_ns for path in Path(work.target).iterdir()} == before


def test_a_run_that_stopped_continues_where_it_was(work: Work) -> None:
    running = triage_archive(work, Here(), 1)
    next(running)
    running.close()
    begun = set(done(work))
    assert 0 < len(begun) < 10
    executor = Here()
    told = triage(work, executor)
    assert told.done_before == len(begun)
    assert len(done(work)) == 10
    assert not {log.key for shard in executor.given for log in shard.logs} & begun


def test_new_changed_and_removed_logs_change_their_shard_only(work: Work) -> None:
    triage(work)
    logs = Path(work.source)
    (logs / "day-0" / "00.log").write_bytes(OUT_OF_MEMORY)
    executor = Here()
    triage(work, executor)
    assert len(executor.given) == 2  # the shard that it is in, and what it pushed out of that
    assert done(work)["day-0/00.log"]["verdict"]["outcome"] == "explained"

    (logs / "day-2" / "2.log").write_bytes(OUT_OF_MEMORY * 2)
    executor = Here()
    triage(work, executor)
    assert len(executor.given) == 1
    assert done(work)["day-2/2.log"]["verdict"]["outcome"] == "explained"

    for path in (logs / "day-1").iterdir():
        path.unlink()
    triage(work)
    assert set(done(work)) == {log.key for log in Archive(work.source).listed()}


@pytest.mark.slow
def test_other_knowledge_triages_all_again(work: Work, tmp_path: Path) -> None:
    triage(work)
    own = tmp_path / "own" / "site"
    own.mkdir(parents=True)
    (own / "steps.yaml").write_text(
        "id: site.steps\nkind: cause\ntitle: {en: Steps, zh: 步}\narea: site\nowner: user\n"
        "signs:\n  - text: 'SiteError: the steps are out'\nexplains: []\naction: {advice: fix-first, retry: no}\n"
        "causes: [{en: a, zh: b}]\nfixes: [{title: {en: a, zh: b}}]\nreferences: []\n"
        "asks: [{en: steps, zh: 步}]\nexamples: {match: ['SiteError: the steps are out'], no_match: []}\n"
    )
    told = triage(replace(work, knowledge_dirs=(own.parent,)))
    assert (told.logs, told.done_before) == (10, 0)
    assert len({line["verdict"]["knowledge"] for line in done(work).values() if line["verdict"]}) == 1


def test_storage_that_fails_loses_nothing(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        real, calls = ShardFolder.write, iter(range(100))

        def failing(folder: ShardFolder, name: str, data: bytes) -> None:
            if next(calls) == 2:
                raise StorageUnavailable("the disk is full")
            real(folder, name, data)

        patched.setattr(ShardFolder, "write", failing)
        with pytest.raises(StorageUnavailable):
            triage(work)
    assert len(done(work)) < 10
    triage(work)
    assert len(done(work)) == 10


def test_a_log_that_the_engine_rejects_blocks_no_other(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, why in (
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "more memory than the limit of 1024 MiB"),
    ):
        with monkeypatch.context() as patched:
            real = Engine.triage

            def broken(
                engine: Engine, run: Any, *more: Any, error: BaseException = error, real: Any = real, **named: Any
            ) -> Any:
                if run.name == "day-1/1.log":
                    raise error
                return real(engine, run, *more, **named)

            patched.setattr(Engine, "triage", broken)
            triage(replace(work, target=f"{work.target}-{type(error).__name__}"))
        lines = done(replace(work, target=f"{work.target}-{type(error).__name__}"))
        assert lines["day-1/1.log"]["error"]["code"] == "triage_failed"
        assert why in lines["day-1/1.log"]["error"]["message"]
        assert len([line for line in lines.values() if line["verdict"]]) == 8


def test_a_log_that_changes_meanwhile_is_reported_and_triaged_next_time(work: Work) -> None:
    changed = Path(work.source) / "day-2" / "5.log"

    class Changing(Here):
        def submit(self, *arguments: Any, **more: Any) -> Future[Any]:
            changed.write_bytes(OUT_OF_MEMORY + b"and more\n")
            return super().submit(*arguments, **more)

    triage(work, Changing())
    assert "changed" in done(work)["day-2/5.log"]["error"]["message"]
    triage(work)
    assert done(work)["day-2/5.log"]["verdict"]["outcome"] == "explained"


def test_only_matching_keys_are_triaged(work: Work) -> None:
    triage(replace(work, match="day-0/*.log*"))
    assert set(done(work)) == {"day-0/0.log", "day-0/3.log", "day-0/6.log", "day-0/z.log.gz"}


def test_wrong_places_are_refused(work: Work, tmp_path: Path) -> None:
    for wrong in (replace(work, source=str(tmp_path / "none")), replace(work, target=f"{work.source}/out")):
        with pytest.raises(BadInput):
            triage(wrong)
    with pytest.raises(BadInput, match="outside the folder of logs"):
        triage(Work("s3://bucket/logs", "s3://bucket/logs/out"))


def test_two_runs_do_not_write_to_one_folder(work: Work) -> None:
    running = triage_archive(work, Here(), 1)
    next(running)
    with pytest.raises(BadInput, match="another run"):
        triage(work)
    running.close()
    triage(work)


def test_the_order_of_a_folder_is_that_of_its_keys(work: Work) -> None:
    keys = [log.key for log in Archive(work.source).listed()]
    assert keys == sorted(keys)
    assert keys[0] == "day-0-more.log"


def test_a_folder_that_leads_back_to_itself_and_names_that_are_no_text(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "again").symlink_to(logs)
    Path(os.fsdecode(os.fsencode(logs) + b"/caf\xe9.log")).write_bytes(OUT_OF_MEMORY)
    os.mkfifo(logs / "pipe")
    work = Work(str(logs), str(tmp_path / "out"))
    triage(work)
    (line,) = done(work).values()
    assert os.fsencode(line["key"]) == b"caf\xe9.log"
    assert line["verdict"]["outcome"] == "explained"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_at_most_so_many_shards_wait(work: Work, threads: ThreadPoolExecutor) -> None:
    class Counting(Here):
        most = 0
        open: int = 0

        def submit(self, *arguments: Any, **more: Any) -> Future[Any]:
            self.open += 1
            self.most = max(self.most, self.open)
            future: Future[Any] = threads.submit(*arguments, **more)
            future.add_done_callback(self.closed)
            return future

        def closed(self, _: Future[Any]) -> None:
            self.open -= 1

    counting = Counting()
    for _ in triage_archive(replace(work, shard=1), counting, 2):
        pass
    assert counting.most <= 2
    assert len(done(work)) == 10


class Deadly(Executor):
    """SubprocessPool of which each that meets the log of day-1/4 dies, as of a fault in what is no Python."""

    def __init__(self, pool: ProcessPool) -> None:
        self._pool = pool

    def submit(self, function: Any, *arguments: Any, **_: Any) -> Future[Any]:  # type: ignore[override]
        return self._pool.submit(dying, function, arguments)


def dying(function: Any, arguments: tuple[Any, ...]) -> Any:
    logs = getattr(arguments[1], "logs", arguments[1:])
    if any(log.key == "day-1/4.log" for log in logs):
        os.kill(os.getpid(), signal.SIGSEGV)
    return function(*arguments)


@pytest.mark.slow
def test_a_log_that_kills_its_process_has_an_error_line_and_blocks_no_other(work: Work) -> None:
    with process_pool(2, 2**30) as pool:
        told = triage(work, Deadly(pool))
    lines = done(work)
    assert len(lines) == told.logs == 10
    assert lines["day-1/4.log"]["error"]["message"] == "the triage process was killed by SIGSEGV"
    assert {key for key, line in lines.items() if line["verdict"] is None} == {"day-0-more.log", "day-1/4.log"}
    assert told.kinds["error: triage_failed"] == 1


def test_verdicts_hold_no_secret_unless_that_was_asked_for(tmp_path: Path) -> None:
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    logs = tmp_path / "logs"
    logs.mkdir()
    frame = f'Traceback (most recent call last):\n  File "/job/x.py", line 3, in f\n    login("{token}")\nOSError: x\n'
    (logs / f"{token}.log").write_text(frame)
    (logs / "broken.gz").write_bytes(b"\x1f\x8b" + token.encode())
    lines = {}
    for redacting in (True, False):
        work = Work(str(logs), str(tmp_path / "out"), redacting=redacting)
        for told in triage_archive(work, Here(), 4):
            done = told.logs
        assert done == 2  # what was done in the other way is done again
        lines[redacting] = "".join(path.read_text() for path in (tmp_path / "out").glob("*.jsonl"))
    assert token not in lines[True]
    assert f"{redact(token)}.log" in lines[True]
    assert lines[False].count(token) > 2
