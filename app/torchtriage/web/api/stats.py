"""/api/v1/stats, /api/v1/hosts and /api/v1/dashboard: counts of incidents."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from torchtriage.domain.dashboard import Range
from torchtriage.domain.json_form import json_form
from torchtriage.domain.stats import StatsFilter
from torchtriage.services import stats
from torchtriage.services.dashboard import dashboard
from torchtriage.web.api.request_models import Moment, Word
from torchtriage.web.api.response_models import DashboardForm, HostsForm, StatsForm
from torchtriage.web.authentication import Reader
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

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
    cursor: Word = Field(None, description="`next` of the previous page")


class HostsQuery(CountedQuery):
    limit: int = Field(100, ge=1, le=1000)
    host: Word = Field(None, description="Prefix of the host names")

    def wanted(self) -> StatsFilter:
        return StatsFilter(self.since, self.until, self.cluster, self.host)


class DashboardQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: date | None = Field(None, ge=date(1971, 1, 1), le=date(9000, 1, 1), description="The first day (UTC)")
    until: date | None = Field(
        None, ge=date(1971, 1, 1), le=date(9000, 1, 1), description="The last day (UTC); default: today"
    )
    cluster: Word = None

    def range(self) -> Range:
        """Returns the days to show: at most three years, and one month if there is no first day."""
        last = self.until or datetime.now(UTC).date()
        first = min(self.since or last - timedelta(days=29), last)
        return Range(max(first, last - timedelta(days=1100)), last)


@router.get("/dashboard", responses={200: {"model": DashboardForm}, **error_responses(422)})
def told_dashboard(query: Annotated[DashboardQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """Read all data of the dashboard, by whole days (UTC): failures over time, cost, hosts, retries, precision."""
    return Answer(dashboard(service, query.range(), query.cluster).as_dict())


@router.get("/stats", responses={200: {"model": StatsForm}, **error_responses(400, 422)})
def count(query: Annotated[StatsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """Count incidents and lost GPU hours per day or hour and value of `by`, oldest first.

    One answer contains whole days, as many as fit. If there are more, `next` is the cursor for them.
    """
    page = stats.count(service, query.wanted(), query.by, query.bucket, query.cursor)
    return Answer({"items": json_form(page.items), "next": page.next})


@router.get("/hosts", responses={200: {"model": HostsForm}, **error_responses(422)})
def hosts(query: Annotated[HostsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """List the hosts on which runs failed first, over all jobs. Hosts with the most failures of their own come
    first."""
    items = stats.hosts(service, query.wanted(), query.limit)
    return Answer({"items": json_form(items), "next": None})
