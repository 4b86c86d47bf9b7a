"""Times back-tests of drafts: `python -m bench.back_test [--logs 10000] [--workers 2] [--postgres]`.

Stores this many different incidents of 50 KB and runs two drafts over them: the sign of one is in every hundredth log;
the words of the other are in every log, so all are triaged.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import update

from bench.service_load import logs
from tests import postgres as servers
from torchtriage.domain.back_test import BackTestStage
from torchtriage.domain.draft import Draft
from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.back_test import BackTestJobs
from torchtriage.services.drafts import create_draft
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings
from torchtriage.storage.tables import IncidentRow

_RARE = b"ourdata.shards.ShardTooShort: shard 3 of '/data/a.idx' ends after 3005 records\n"
SIGNS = {"in one log of 100": r"ShardTooShort: shard \d+ of '[^'\n]+' ends after \d+", "in every log": r"CUDA out of"}


def fill(service: Service, count: int) -> None:
    """Stores incidents that count as triaged and unexplained."""
    for number, log in enumerate(itertools.islice(logs(), count)):
        accept(service, Job(job_id=str(number)), [Upload("log", iter([log, *[_RARE][: number % 100 == 0]]))])
    with service.database.transaction() as session:
        session.execute(update(IncidentRow).values({"state": "triaged", "outcome": "unexplained", "fingerprint": "x"}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = ""
        if options.postgres:
            programs = servers.find_programs()
            assert programs is not None, servers.MISSING
            url = stack.enter_context(stack.enter_context(servers.PostgresServer(programs)).database())
        settings = Settings(data_dir=folder, database_url=url, workers=options.workers)
        service = open_service(settings, lambda *_: None, working=False)
        fill(service, options.logs)
        jobs = BackTestJobs(service)
        for number, (name, sign) in enumerate(SIGNS.items()):
            draft, _ = create_draft(service, Draft(f"bench.sign-{number}", sign=sign), None, "bench")
            began = time.perf_counter()
            jobs.start(draft.id, "bench")
            jobs.wait()
            told = jobs.progress(draft.id)
            assert told.stage is BackTestStage.DONE, told.problem
            print(
                f"{name}: {time.perf_counter() - began:.1f} s, {told.looked_at} looked at, {told.counts}, {told.failed} failed"
            )
        close_service(service)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = [f"{one.ru_utime + one.ru_stime:.1f} s" for one in used]
    print(f"processor time, storing the logs included: {seconds[0]} here, {seconds[1]} in the engine's processes")


if __name__ == "__main__":
    main()
