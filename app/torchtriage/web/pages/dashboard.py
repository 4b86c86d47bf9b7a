"""`/dashboard`: failures over time, their cost, hosts to take out of use, and whether advice was right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request, Response

from torchtriage.answer.localized_verdict import title_of
from torchtriage.domain.dashboard import OTHERS, Dashboard
from torchtriage.errors import NotFound
from torchtriage.services.dashboard import cluster_names, dashboard
from torchtriage.services.drain_commands import commands
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.charts import Drawn, drawn
from torchtriage.web.pages.csv_export import csv_answer
from torchtriage.web.pages.date_range import asked_range
from torchtriage.web.pages.groups import Choice
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BAD = 2  # failures of its own after which a host is proposed to be taken out


@dataclass(frozen=True, slots=True)
class DashboardPage:
    """`titles` are the titles of entries in the reader's language. `drain` has the commands to drain the hosts in
    `drained`. `csv` has the URL of each table. `before` is about the same number of days before, or None if the data
    for them is incomplete."""

    board: Dashboard
    by_area: Drawn
    by_owner: Drawn
    titles: dict[str, str]
    drain: dict[str, str]
    drained: int
    before: int | None
    hours_before: float | None
    causes_before: dict[str | None, int] | None
    least: int
    ranges: tuple[Choice, ...]
    clusters: tuple[str, ...]
    cluster: str
    since: str
    until: str
    incidents: dict[str, str]
    csv: dict[str, str]
    json: str


@router.get("/dashboard")
def show(request: Request, service: ServiceDep) -> Response:
    asked, cluster = asked_range(request), value(request, "cluster")
    board = dashboard(service, asked.range, cluster or None)
    lang = language(request)
    bad = [known.host for known in board.bad_hosts if known.hardware >= _BAD]
    before = board.before
    entries = {cost.name for cost in board.causes} | {one.entry for one in board.precision}
    kept = {"cluster": cluster}
    query = asked.query | kept
    page = DashboardPage(
        board=board,
        by_area=drawn(board.by_area, partial(_link, "area", board)),
        by_owner=drawn(board.by_owner, partial(_link, "owner", board)),
        titles={entry: title_of(entry, service.knowledge, lang) or entry for entry in entries if entry},
        drain=commands(bad),
        drained=len(bad),
        before=before.count if before else None,
        hours_before=before.gpu_hours_lost if before else None,
        causes_before=before.causes if before else None,
        least=_BAD,
        ranges=asked.choices("/dashboard", kept),
        clusters=tuple(cluster_names(service)),
        cluster=cluster,
        since=board.range.first.isoformat(),
        until=board.range.last.isoformat(),
        incidents=_days(board) | kept,
        csv={name: address("/dashboard.csv", {"table": name} | query) for name in board.tables()},
        json=address("/api/v1/dashboard", _days(board) | kept),
    )
    return render(request, "dashboard.html", page)


@router.get("/dashboard.csv")
def as_csv(request: Request, service: ServiceDep) -> Response:
    """Returns one of the page's tables, for the same filters."""
    name = value(request, "table")
    tables = dashboard(service, asked_range(request).range, value(request, "cluster") or None).tables()
    if name not in tables:
        raise NotFound("no such table", table=name)
    return csv_answer(name, tables[name])


def _link(name: str, board: Dashboard, time: str, part: str) -> str:
    """Returns the URL of the list of incidents that a bar counts. An empty time or part means all."""
    when = {"day": time} if time else _days(board)
    if not part:
        return address("/incidents", when | {"outcome": "failed", "cluster": board.cluster})
    parts = board.by_area.rest if part == OTHERS else (part,)
    return address("/incidents", when | {name: ",".join(parts), "cluster": board.cluster})


def _days(board: Dashboard) -> dict[str, str]:
    return {"since": board.range.first.isoformat(), "until": board.range.last.isoformat()}
