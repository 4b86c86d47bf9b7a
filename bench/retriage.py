"""Times a retriage: `python -m bench.retriage [--logs 10000] [--workers 2] [--postgres]`.

Stores this many different incidents of 50 KB, with verdicts that were made by other knowledge. Then triages all of them
and stores what changed, as `torchtriage retriage --yes` does.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from sqlalchemy import update

from bench.service_load import logs
from tests import postgres as servers
from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.incidents import read_incident
from torchtriage.services.retriage import Retriage
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import order_of, triage_incident
from torchtriage.settings import Settings
from torchtriage.storage.tables import IncidentRow
from torchtriage.storage.verdict_json import to_stored


def fill(service: Service, count: int, changing: int) -> None:
    """Stores incidents and triages one. The others get its verdict; every `changing`th one names another entry."""
    ids = [
        accept(service, Job(job_id=str(number)), [Upload("log", iter([log]))]).incident_id
        for number, log in enumerate(itertools.islice(logs(), count))
    ]
    triage_incident(service, ids[0])
    known = read_incident(service, ids[0])
    assert known.verdict is not None
    assert known.root_cause is not None
    other = replace(known.verdict, root_cause=replace(known.root_cause, entry="python.exception"))
    with service.database.transaction() as session:
        for every, verdict in ((1, known.verdict), (changing, other)):
            those = IncidentRow.number % every == 0
            values = {"state": "triaged", "knowledge": "of old", "verdict": to_stored(verdict), "outcome": "explained"}
            values |= {"entry": verdict.root_cause and verdict.root_cause.entry}
            fingerprint = {"fingerprint": known.verdict.fingerprint}
            session.execute(update(IncidentRow).where(those).values(values | fingerprint))


def timed(what: str, count: int, work: Callable[[], object]) -> None:
    began, own = time.perf_counter(), time.process_time()
    work()
    seconds, own = time.perf_counter() - began, time.process_time() - own
    told = f"{seconds:.1f} s, {seconds / count * 1000:.2f} ms an incident"
    print(f"{what}: {told}, {own / count * 1000:.2f} ms of it this process's processor time, the rest the engine's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--changing", type=int, default=10, help="every so many gets another verdict (10)")
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
        fill(service, options.logs, options.changing)
        first = read_incident(service, "1")
        service.triager.run(order_of(first.log, first.job))  # starts the processes
        retriage = Retriage(service)
        timed("retriaged", options.logs, lambda: list(retriage.change("bench")))
        print(f"{retriage.looked_at} looked at, {retriage.changed} changed, {retriage.failed} failed")
        close_service(service)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"the engine's processes: {children.ru_utime + children.ru_stime:.1f} s of processor time, their start included"
    )


if __name__ == "__main__":
    main()
