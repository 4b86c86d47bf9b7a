"""How long pages and API answer on a database of a million incidents: builds it where it is not there, asks, tells.

.venv/bin/python -m bench.million --folder /tmp/million [--postgres] [--count 1000000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi.testclient import TestClient
from sqlalchemy import text

from app.settings import Settings
from app.storage.database import Database
from app.storage.upgrade import upgrade
from app.web.app import create_app
from bench.many_incidents import fill

GOAL = 300  # milliseconds
_DAY = (datetime.now(UTC) - timedelta(days=200)).date().isoformat()
ASKED = {
    "list, newest": "/incidents",
    "list, one entry": "/incidents?entry={entry}",
    "list, one host": "/incidents?host=blue-gpu-0003",
    "list, outcome, user and cluster": "/incidents?outcome=explained&user=user007&cluster=tokyo",
    "list, days half a year ago": f"/incidents?since={_DAY}&until={_DAY}",
    "list, entry on a host": "/incidents?entry={entry}&host=green-gpu-0001",
    "list, one group": "/incidents?group={group}",
    "search, a word of many": "/incidents?q=error",
    "search, two words of many": "/incidents?q=cuda+error",
    "search, a user": "/incidents?q=user299",
    "search, a rare word": "/incidents?q=user299+tokyo+widgetgerror",
    "search, nothing": "/incidents?q=zzzqq",
    "search and filters": "/incidents?q=cuda&cluster=tokyo&user=user042",
    "groups, last seen": "/groups",
    "groups, by cost": "/groups?sort=cost&status=open",
    "groups, by count": "/groups?sort=count",
    "group, the greatest": "/groups/{group}",
    "unexplained": "/unexplained",
    "dashboard, 30 days": "/dashboard",
    "dashboard, 90 days": "/dashboard?days=90",
    "dashboard, a year": "/dashboard?days=365",
    "dashboard, a year of one cluster": "/dashboard?days=365&cluster=tokyo",
    "hosts, 30 days": "/hosts",
    "hosts, 90 days": "/hosts?days=90",
    "hosts, a year": "/hosts?days=365",
    "host": "/hosts/blue-gpu-0003",
    "stats by entry, 90 days": "/api/v1/stats?by=entry&since={quarter}",
    "stats by cluster, a year": "/api/v1/stats?by=cluster",
    "API, list": "/api/v1/incidents",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the data is, or is to be")
    parser.add_argument(
        "--postgres", action="store_true", help="on a Postgres of its own, which ends with this program"
    )
    parser.add_argument("--database-url", default="", help="on a Postgres that runs")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with _address(asked) as url:
        settings = Settings(data_dir=asked.folder, database_url=url, workers=0)
        _build(settings, asked.count)
        with TestClient(create_app(settings), headers={"accept": "text/html"}) as client:
            slow = _ask(client, settings, asked.rounds)
    raise SystemExit(1 if slow else 0)


@contextmanager
def _address(asked: argparse.Namespace) -> Iterator[str]:
    if not asked.postgres:
        yield asked.database_url
        return
    from tests.postgres import PostgresServer, find_programs

    programs = find_programs()
    assert programs is not None
    with PostgresServer(programs) as server, server.database() as url:
        yield url


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


def _ask(client: TestClient, settings: Settings, rounds: int) -> int:
    database = Database(settings.database)
    with database.reading() as session:
        group = session.execute(text("SELECT number FROM groups ORDER BY count DESC LIMIT 1")).scalar_one()
        common = "SELECT entry FROM daily_counts WHERE entry <> '' GROUP BY entry ORDER BY sum(count) DESC LIMIT 1"
        entry = session.execute(text(common)).scalar_one()
    database.close()
    quarter = (datetime.now(UTC) - timedelta(days=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    slow = 0
    # On SQLite the last column holds all the work; on a busy machine it tells more than the wall does.
    print("| | first, ms | median, ms | processor, ms |\n|---|---|---|---|")
    for name, address in ASKED.items():
        path = address.format(group=group, entry=entry, quarter=quarter)
        took, worked = [], []
        for _ in range(rounds + 1):
            began, busy = time.perf_counter(), time.process_time()
            answer = client.get(path)
            took.append((time.perf_counter() - began) * 1000)
            worked.append((time.process_time() - busy) * 1000)
            assert answer.status_code == 200, (path, answer.status_code)
        middle = statistics.median(took[1:])
        slow += middle > GOAL
        print(
            f"| {name} | {took[0]:.0f} | {middle:.0f}{' ←' if middle > GOAL else ''} | {statistics.median(worked[1:]):.0f} |",
            flush=True,
        )
    return slow


if __name__ == "__main__":
    main()
