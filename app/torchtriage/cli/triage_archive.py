"""`torchtriage triage-archive`: verdicts for an archive of logs, on this machine or on a Dask cluster."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torchtriage.errors import BadInput

if TYPE_CHECKING:
    from torchtriage.services.triage_archive import Lost, Told

_TOLD_EVERY = 10  # seconds
_AHEAD = 4  # shards that are given out for each that is worked on
_FEWEST = 16  # of them on a cluster that has no workers yet


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("triage-archive", help="triage an archive of logs in bulk, resumably")
    parser.add_argument(
        "source", metavar="SOURCE", help="a folder or s3://BUCKET/PREFIX; each file in it is a run's log"
    )
    parser.add_argument(
        "--out", metavar="PLACE", required=True, help="folder or s3://… for the verdicts, as JSON lines"
    )
    parser.add_argument("--match", metavar="GLOB", default="*", help="only files whose whole key fits, as in '*.log*'")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of causes and fixes")
    parser.add_argument("--shard", type=_count, metavar="N", default=200, help="logs in one file of verdicts (200)")
    parser.add_argument("--jobs", type=_count, metavar="N", help="processes (as many as processors)")
    parser.add_argument("--no-redact", action="store_true", help="leave secrets in the verdicts")
    parser.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster that does the work")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """-> 0 when every log has its verdict, or the reason why there is none.

    Raises BadInput, SettingError, KnowledgeError, StorageUnavailable: run it again to go on.
    """
    from torchtriage.cli.triage import UNREDACTED
    from torchtriage.services.triage_archive import Told, Work, triage_archive
    from torchtriage.settings import Settings

    settings = Settings.from_environment(os.environ)
    work = Work(
        options.source,
        options.out,
        settings.knowledge_dirs,
        options.lang,
        settings.max_log_bytes,
        settings.triage_memory,
        options.match,
        options.shard,
        not options.no_redact,
    )
    if options.no_redact:
        print(UNREDACTED, file=sys.stderr, flush=True)
    jobs = options.jobs or os.cpu_count() or 1
    executing = _cluster(options.dask) if options.dask else _processes(jobs, settings.triage_memory)
    told, last = Told(), time.monotonic()
    with executing as (executor, ahead, lost):
        for told in triage_archive(work, executor, ahead, lost):
            if time.monotonic() - last > _TOLD_EVERY:
                last = time.monotonic()
                print(f"{told.logs} logs triaged, {told.done_before} done before", file=sys.stderr, flush=True)
    _report(told)
    return 0


def _report(told: Told) -> None:
    for kind, count in told.kinds.most_common():
        print(f"{count:>9} × {kind}")
    print(f"{told.logs} logs triaged in {told.shards} shards; {told.done_before} were done before")


@contextmanager
def _processes(jobs: int, memory: int) -> Iterator[tuple[Executor, int, Lost]]:
    from torchtriage.queue.process_pool import process_pool
    from torchtriage.queue.subprocess_calls import CallFailed

    with process_pool(jobs, memory) as pool:
        yield pool, jobs * _AHEAD, (CallFailed,)


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int, Lost]]:
    """The workers need torchtriage of this version, the same knowledge folders, and to reach source and target."""
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise BadInput("--dask needs the extra: pip install 'torchtriage[dask]'") from None
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise BadInput(f"--dask {address}: there is no scheduler: {error}") from None
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor, max(_FEWEST, sum(client.nthreads().values()) * _AHEAD), (KilledWorker,)
        finally:
            executor.shutdown(wait=False)  # gives up what still waits


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError("not a whole number from 1 to 100000")
    return int(text)
