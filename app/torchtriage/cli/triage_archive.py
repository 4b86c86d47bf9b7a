"""`torchtriage triage-archive`: writes a verdict for every log of an archive, on this machine or on a Dask cluster."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torchtriage.cli.arguments import whole_number
from torchtriage.cli.progress import Progress, add_quiet
from torchtriage.errors import BadInput
from torchtriage.extras import require

if TYPE_CHECKING:
    from torchtriage.services.triage_archive import ArchiveProgress, Lost

_REPORT_EVERY = 10  # seconds between two progress lines if standard error is not a terminal
_AHEAD = 4  # number of shards queued per process or thread
_MIN_COUNT = 16  # minimum number of shards queued on a cluster, which may have no workers yet


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "triage-archive",
        help="triage an archive of logs in bulk",
        description="Triage every log of an archive and write the verdicts as JSON lines. Run it again to resume.",
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a folder or s3://BUCKET/PREFIX; each file in it is the log of one run"
    )
    parser.add_argument(
        "--out", metavar="TARGET", required=True, help="a folder or s3://BUCKET/PREFIX for the verdicts"
    )
    parser.add_argument(
        "--match", metavar="GLOB", default="*", help="only files whose path matches, such as '*.log*' (*)"
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    parser.add_argument(
        "--shard", type=whole_number(1, 100_000), metavar="N", default=200, help="logs per file of verdicts (200)"
    )
    parser.add_argument("--jobs", type=whole_number(1, 100_000), metavar="N", help="number of processes (one per CPU)")
    parser.add_argument("--no-redact", action="store_true", help="keep passwords and tokens of logs in the verdicts")
    parser.add_argument("--dask", metavar="ADDRESS", help="do the work on the Dask cluster with this scheduler")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Returns 0 when every log has a verdict or a reason why it has none.

    Raises BadInput, SettingError, KnowledgeError or StorageUnavailable. A second run continues after the finished
    shards.
    """
    from torchtriage.cli.triage import UNREDACTED
    from torchtriage.services.triage_archive import ArchiveProgress, Work, triage_archive
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
    done = ArchiveProgress()
    with Progress(options.quiet) as progress, executing as (executor, ahead, lost):
        show = _lines() if not (options.quiet or sys.stderr.isatty()) else progress.show
        for done in triage_archive(work, executor, ahead, lost):
            show(f"{done.logs} logs triaged, {done.done_before} done before")
    _print_summary(done)
    return 0


def _lines() -> Callable[[str], None]:
    """Returns a function that prints a text at most every ten seconds, for the output file of a batch job."""
    last = time.monotonic()

    def show(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > _REPORT_EVERY:
            last = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    return show


def _print_summary(done: ArchiveProgress) -> None:
    for kind, count in done.kinds.most_common():
        print(f"{count:>9} × {kind}")
    print(f"{done.logs} logs triaged in {done.shards} shards; {done.done_before} were done before")


@contextmanager
def _processes(jobs: int, memory: int) -> Iterator[tuple[Executor, int, Lost]]:
    from torchtriage.queue.process_pool import process_pool
    from torchtriage.queue.subprocess_calls import CallFailed

    with process_pool(jobs, memory) as pool:
        yield pool, jobs * _AHEAD, (CallFailed,)


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int, Lost]]:
    """Yields the executor of a Dask cluster. Its workers need this version of torchtriage, the same knowledge folders,
    and access to the source and the target."""
    require("dask", "`triage-archive --dask`")
    from distributed import Client, KilledWorker

    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise BadInput(f"--dask {address}: cannot connect to a scheduler: {error}") from None
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor, max(_MIN_COUNT, sum(client.nthreads().values()) * _AHEAD), (KilledWorker,)
        finally:
            executor.shutdown(wait=False)  # gives up the shards that no worker has started
