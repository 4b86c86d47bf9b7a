"""Measures how fast pages and API respond with a database of a million incidents. Creates the database if it does not
exist.

.venv/bin/python -m bench.million --folder /tmp/million [--postgres] [--count 1000000] [--rounds 3] [--only dashboard]

The CPU time is that of this process and, with Postgres, of its server. On a busy machine it is more reliable than the
wall time.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import event, text

from bench.kept_postgres import kept_postgres
from bench.many_incidents import fill
from bench.million_pages import asked
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.storage.database import Database
from torchtriage.storage.schema_upgrade import upgrade
from torchtriage.web.app import create_app

GOAL = 300  # milliseconds
_ROW = re.compile(r'<tr|<li class="(?:row|item)')


@dataclass(slots=True)
class Watched:
    """The database queries since `clear`, and their seconds."""

    database: Database
    seconds: float = 0.0
    began: float = 0.0
    statements: list[tuple[str, Any]] = field(default_factory=list)

    def watch(self) -> None:
        event.listen(self.database.engine, "before_cursor_execute", self._before)
        event.listen(self.database.engine, "after_cursor_execute", self._after)

    def clear(self) -> None:
        self.seconds, self.statements = 0.0, []

    def busy(self) -> float:
        """Returns the CPU seconds used by this process and by the server for our connections."""
        return time.process_time() + sum(map(_processor, self._servers()))

    def scans(self) -> list[str]:
        """Returns the plans of these queries that scan all incidents or their words."""
        explain = "EXPLAIN QUERY PLAN" if self.database.is_sqlite else "EXPLAIN"
        found = []
        with self.database.engine.connect() as connection:
            for statement, parameters in self.statements:
                if statement.lstrip().startswith("SELECT"):
                    plan = connection.exec_driver_sql(f"{explain} {statement}", parameters)
                    found += [line for row in plan if _is_scan(line := str(row[-1]))]
        return found

    def _servers(self) -> list[int]:
        if self.database.is_sqlite:
            return []
        with self.database.engine.connect() as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            return [pid for (pid,) in connection.exec_driver_sql(query)]

    def _before(self, *_: Any) -> None:
        self.began = time.perf_counter()

    def _after(self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        self.seconds += time.perf_counter() - self.began
        self.statements.append((statement, parameters))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the data is, or is to be")
    parser.add_argument("--postgres", action="store_true", help="on a Postgres of its own, with its data in the folder")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="pages whose names begin so")
    parser.add_argument("--plans", action="store_true", help="tell which plans go through all incidents")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with _address(options) as url:
        settings = Settings(data_dir=options.folder, database_url=url, workers=0)
        _build(settings, options.count)
        with TestClient(create_app(settings), headers={"accept": "text/html"}) as client:
            slow = _ask_all(client, options)
    raise SystemExit(1 if slow else 0)


@contextmanager
def _address(options: argparse.Namespace) -> Iterator[str]:
    if options.postgres:
        with kept_postgres(options.folder / "postgres") as url:
            yield url
    else:
        yield ""


def _build(settings: Settings, count: int) -> None:
    upgrade(settings.database)
    database = Database(settings.database)
    with database.reading() as session:
        known = session.execute(text("SELECT count(*) FROM incidents")).scalar_one()
    if not known:
        began = time.perf_counter()
        fill(database, count)
        print(f"{count} incidents in {time.perf_counter() - began:.0f} s")
    database.close()


def _ask_all(client: TestClient, options: argparse.Namespace) -> int:
    service = client.app.state.service  # type: ignore[attr-defined]
    assert isinstance(service, Service)
    watched = Watched(service.database)
    watched.watch()
    with service.database.reading() as session:
        group = session.execute(text("SELECT number FROM groups ORDER BY count DESC LIMIT 1")).scalar_one()
        common = "SELECT entry FROM counts WHERE entry <> '' GROUP BY entry ORDER BY sum(count) DESC LIMIT 1"
        entry = session.execute(text(common)).scalar_one()
    print(
        "| page | time | rows | KB | wall, ms | processor, ms | database, ms | statements |\n|---|---|---|---|---|---|---|---|"
    )
    slow = 0
    for page, span, address in asked(entry, group):
        if page.startswith(options.only):
            slow += _ask(client, watched, page, span, address, options.rounds)
            for scan in watched.scans() if options.plans else ():
                print(f"|  | | | | | | | {scan} |")
    return slow


def _ask(client: TestClient, watched: Watched, page: str, span: str, address: str, rounds: int) -> bool:
    took: list[tuple[float, float, float]] = []
    for _ in range(rounds + 1):
        busy = watched.busy()
        watched.clear()
        began = time.perf_counter()
        answer = client.get(address)
        wall = time.perf_counter() - began
        database, statements = watched.seconds, list(watched.statements)
        took.append((wall, watched.busy() - busy, database))
        watched.statements = statements
        assert answer.status_code == 200, (address, answer.status_code)
    wall, busy, database = (statistics.median(times) * 1000 for times in zip(*took[1:], strict=True))
    rows = len(_ROW.findall(answer.text)) if answer.text.startswith("<") else len(answer.json()["items"])
    told = [page, span, rows, f"{len(answer.content) / 1000:.0f}", f"{wall:.0f}{' ←' * (wall > GOAL)}",
            f"{busy:.0f}", f"{database:.0f}", len(watched.statements)]  # fmt: skip
    print("|", " | ".join(map(str, told)), "|", flush=True)
    return bool(wall > GOAL)


def _processor(process: int) -> float:
    """Returns the CPU seconds of another process."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        return 0.0


def _is_scan(line: str) -> bool:
    told = line.upper()
    if "PARALLEL" in told:
        return True
    if "SCAN INCIDENTS" in told:
        return "USING" not in told
    return "SEQ SCAN ON INCIDENT" in told


if __name__ == "__main__":
    main()
