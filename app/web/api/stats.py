"""/api/v1/stats and /api/v1/hosts"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.domain.stats import StatsFilter
from app.services import stats
from app.web.access import Reader
from app.web.answers import Answer
from app.web.api.questions import Moment, Word
from app.web.deps import ServiceDep
from app.web.errors import told

router = APIRouter(prefix="/api/v1", tags=["stats"])


class CountedQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: Moment = Field(None, description="Received at this time or later")
    until: Moment = Field(None, description="Received before this time")
    cluster: Word = None

    def wanted(self) -> StatsFilter:
        return StatsFilter(self.since, self.until, self.cluster)


class StatsQuery(CountedQuery):
    by: Literal["entry", "cluster", "host", "outcome", "user"] = "entry"
    bucket: Literal["hour", "day"] = "day"


class HostsQuery(CountedQuery):
    limit: int = Field(100, ge=1, le=1000)


class StatForm(BaseModel):
    """`value` is that of what was asked for by `by`, null for incidents that have none; `at` is in UTC."""

    at: datetime
    value: str | None
    count: int
    gpu_hours_lost: float | None


class StatsForm(BaseModel):
    items: list[StatForm]
    next: str | None


class HostForm(BaseModel):
    """`hardware` of `count` failures were the host's own; `entries` counts them by cause."""

    host: str
    count: int
    hardware: int
    jobs: int
    first_seen: datetime
    last_seen: datetime
    gpu_hours_lost: float | None
    entries: dict[str, int]


class HostsForm(BaseModel):
    items: list[HostForm]
    next: str | None


@router.get("/stats", responses={200: {"model": StatsForm}, **told(422)})
def count(query: Annotated[StatsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """Incidents received and GPU hours lost, for each day or hour and value of `by`; the oldest first."""
    items = stats.count(service, query.wanted(), query.by, query.bucket)
    return Answer({"items": [item.as_dict() for item in items], "next": None})


@router.get("/hosts", responses={200: {"model": HostsForm}, **told(422)})
def hosts(query: Annotated[HostsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """Hosts on which runs failed first, over all jobs; those with the most failures of their own come first."""
    items = stats.hosts(service, query.wanted(), query.limit)
    return Answer({"items": [item.as_dict() for item in items], "next": None})
