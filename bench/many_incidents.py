"""Fills a database with incidents whose verdicts are the engine's for the knowledge base's own examples: many users,
hosts and clusters over a year, mostly a few kinds of failures, and jobs that are retried. The same seed gives the same
data."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert

from torchtriage.domain.entry import Kind, KnowledgeBase
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import cache_folder, load
from torchtriage.reading.sources import from_bytes
from torchtriage.services.engine_runner import summary_of
from torchtriage.storage import full_text_search
from torchtriage.storage.database import Database, connect
from torchtriage.storage.planner_statistics import refresh
from torchtriage.storage.recount import recount
from torchtriage.storage.tables import FeedbackRow, FileRow, FingerprintRow, GroupRow, IncidentRow

CLUSTERS = {"blue": 0.55, "green": 0.3, "tokyo": 0.15}
HOSTS, USERS, KINDS, DAYS = 2000, 300, 150, 365
_HOST = "gpu-0000"
_BATCH_SIZE = 10_000
_UNKNOWN = 'Traceback (most recent call last):\n  File "/work/train.py", line 7, in step\n    widget()\nwidgets.{}: part {} is stuck\n'


@dataclass(slots=True)
class Failure:
    """One kind of failure: a verdict with the host _HOST, and its groups."""

    verdict: str
    summary: Any
    words: str
    advice: str
    weight: float
    groups: list[int] = field(default_factory=list)


def fill(database: Database, count: int, seed: int = 7, until: datetime | None = None) -> None:
    """Adds `count` incidents, received in the year before `until` (default: now), to an empty database."""
    dice = random.Random(seed)
    kinds = _kinds(dice)
    groups = _groups(kinds, max(len(kinds), count // 40))
    incidents = _Incidents(dice, kinds, groups, count, until or datetime.now(UTC))
    if count > 50_000:
        _indices(database, make=False)
    for piece in incidents.pieces():
        with _writing(database) as connection:
            _put(database, connection, piece)
    with _writing(database) as connection:
        # The totals of the groups are known only now. The incidents already have the groups' numbers.
        known = [row | incidents.totals[row["number"]] for row in groups if row["number"] in incidents.totals]
        connection.execute(insert(GroupRow), known)
        connection.execute(
            insert(FingerprintRow),
            [{"fingerprint": f"v1:{row['number']:08x}", "group_number": row["number"]} for row in known],
        )
        connection.execute(insert(FeedbackRow), incidents.feedback)
    if count > 50_000:
        _indices(database, make=True)
    with database.transaction(durable=False) as session:
        recount(session)
    if not database.is_sqlite:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM")
    refresh(database)


@contextmanager
def _writing(database: Database) -> Iterator[Any]:
    """A transaction that does not check foreign keys."""
    engine = connect(database.engine.url.render_as_string(hide_password=False), foreign_keys=False)
    with engine.connect().execution_options(writing=True, durable=False) as connection, connection.begin():
        if not database.is_sqlite:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        yield connection
    engine.dispose()


def _kinds(dice: random.Random) -> list[Failure]:
    knowledge = load([BUILT_IN], cache_folder())
    engine = Engine(knowledge, cache_folder())
    entries = [entry for entry in knowledge.entries.values() if entry.kind is Kind.CAUSE and entry.match_examples]
    hard = [entry for entry in entries if entry.action.exclude_hosts]
    chosen = dice.sample(entries, KINDS - 40) + dice.sample(hard, min(20, len(hard)))
    logs = [entry.match_examples[0] for entry in chosen]
    logs += [_UNKNOWN.format(f"Widget{name}Error", name) for name in "ABCDEFGHIJKLMNOPQRST"]
    kinds = [
        kind
        for rank, log in enumerate(dict.fromkeys(logs), 1)
        if (kind := _kind(engine, knowledge, log, 1 / rank**0.9))
    ]
    dice.shuffle(weights := [kind.weight for kind in kinds])
    for kind, weight in zip(kinds, weights, strict=True):
        kind.weight = weight
    return kinds


def _kind(engine: Engine, knowledge: KnowledgeBase, log: str, weight: float) -> Failure | None:
    verdict = engine.triage(from_bytes(f"{log}\n".encode()))
    if verdict.root_cause is None:
        return None
    told = verdict.as_dict()
    told["root_cause"] |= {"host": _HOST} | {
        name: [] for name in ("causes", "fixes", "checks", "prevent", "references")
    }  # the page takes these from the entry
    summary = summary_of(verdict, knowledge)
    return Failure(
        json.dumps(told), summary, " ".join(sorted(full_text_search.words(summary.text))), verdict.action.advice, weight
    )


def _groups(kinds: list[Failure], count: int) -> list[dict[str, Any]]:
    """Returns the rows of the groups, distributed over the kinds. Several groups of one kind differ in the code around
    the failure."""
    rows = []
    for number in range(1, count + 1):
        kind = kinds[number % len(kinds)]
        kind.groups.append(number)
        found = kind.summary
        rows.append({
            "number": number, "status": "open" if number % 7 else "resolved", "signature": f"{found.signature} in step_{number}",
            "title": found.title, "entry": found.entry, "outcome": found.outcome,
        })  # fmt: skip
    return rows


class _Incidents:
    """The rows of incidents in the order of receipt, and their counts."""

    def __init__(
        self, dice: random.Random, kinds: list[Failure], groups: list[dict[str, Any]], count: int, until: datetime
    ) -> None:
        self._dice, self._kinds, self._count, self._until = dice, kinds, count, until
        self._weights = [kind.weight for kind in kinds]
        self.totals: dict[int, dict[str, Any]] = {}
        self.feedback: list[dict[str, Any]] = []
        self._hosts = {
            name: [f"{name}-gpu-{number:04d}" for number in range(int(HOSTS * share))]
            for name, share in CLUSTERS.items()
        }

    def pieces(self) -> Iterator[list[tuple[dict[str, Any], str, str]]]:
        """Yields pieces of (row, verdict, words)."""
        piece = []
        step = timedelta(days=DAYS) / self._count
        begin = self._until - timedelta(days=DAYS)
        for number in range(1, self._count + 1):
            piece.append(self._one(number, begin + step * number))
            if len(piece) == _BATCH_SIZE:
                yield piece
                piece = []
        if piece:
            yield piece

    def _one(self, number: int, at: datetime) -> tuple[dict[str, Any], str, str]:
        dice = self._dice
        (kind,) = dice.choices(self._kinds, self._weights)
        found = kind.summary
        (cluster,) = dice.choices(list(CLUSTERS), list(CLUSTERS.values()))
        hosts = self._hosts[cluster]
        # A few hosts are worse than others, if the host is the cause.
        host = hosts[min(int(dice.expovariate(1 / 40)), len(hosts) - 1)] if found.hardware else dice.choice(hosts)
        user, hours = (
            f"user{int(dice.paretovariate(0.6)) % USERS:03d}",
            round(dice.choice((8, 64, 512)) * dice.expovariate(1), 4),
        )
        job, attempt = str(number // 3), number % 3
        group = kind.groups[min(int(dice.expovariate(8 / len(kind.groups))), len(kind.groups) - 1)]
        given = {
            "job_id": job,
            "job_name": f"train-{number % 97}",
            "cluster": cluster,
            "user": user,
            "attempt": attempt,
            "gpus": 64,
        }
        verdict = kind.verdict.replace(_HOST, host)
        row = {
            "number": number, "request": f"{number:064x}", "received_at": at, "state": "triaged", "tries": 1, "job": json.dumps(given),
            "job_id": job, "attempt": attempt, "cluster": cluster, "user": user, "log_sha256": f"{number:064x}", "triaged_at": at,
            "outcome": found.outcome, "entry": found.entry, "host": host, "advice": kind.advice,
            "hardware": found.hardware, "gpu_hours": hours, "knowledge": "1 sha256:bench", "fingerprint": f"v1:{group:08x}", "group_number": group,
        }  # fmt: skip
        self._count_it(row)
        return row, verdict, f"{kind.words} {user} {cluster} train {number % 97} {job}"

    def _count_it(self, row: dict[str, Any]) -> None:
        at, hours = row["received_at"], row["gpu_hours"]
        total = self.totals.setdefault(row["group_number"], {"count": 0, "gpu_hours": 0.0, "first_seen": at})
        total["count"] += 1
        total["gpu_hours"] += hours
        total["last_seen"] = at
        if row["number"] % 300 == 0:
            said = "right" if row["number"] % 1500 else "wrong"
            self.feedback.append(
                {"incident_number": row["number"], "about": row["entry"], "verdict": said, "by": row["user"], "at": at}
            )


def _put(database: Database, connection: Any, piece: list[tuple[dict[str, Any], str, str]]) -> None:
    names = ["number", *[name for name in piece[0][0] if name != "number"], "verdict"]
    rows = [(*[row[name] for name in names[:-1]], verdict) for row, verdict, _ in piece]
    files = [(row["number"], 0, "log.txt", row["log_sha256"], 1000, 20) for row, _, _ in piece]
    words = [(row["number"], text) for row, _, text in piece]
    for table, columns, values in (
        ("incidents", names, rows),
        ("incident_files", ["incident_number", "position", "name", "sha256", "bytes", "lines"], files),
        (full_text_search.TABLE, ["rowid", "words"], words),
    ):
        listed = ", ".join(f'"{name}"' if name != "rowid" else name for name in columns)
        raw = connection.connection.driver_connection
        if database.is_sqlite:
            plain = [
                tuple(value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value for value in row)
                for row in values
            ]
            raw.executemany(f"INSERT INTO {table} ({listed}) VALUES ({', '.join('?' * len(columns))})", plain)
        else:
            with raw.cursor().copy(f"COPY {table} ({listed}) FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)


def _indices(database: Database, make: bool) -> None:
    with database.engine.connect().execution_options(writing=True) as connection, connection.begin():
        for index in (*IncidentRow.__table__.indexes, *FileRow.__table__.indexes):  # type: ignore[attr-defined]
            if make:
                index.create(connection)
            else:
                index.drop(connection)
