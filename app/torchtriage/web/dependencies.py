"""Dependencies of routes. They are `async` unless they block, because FastAPI runs others in a thread, which costs
more."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request
from starlette.datastructures import State

from torchtriage.knowledge.cache import cache_folder, load_index
from torchtriage.knowledge.symptom_search import SearchIndex
from torchtriage.services.attribution import NamedLogs
from torchtriage.services.back_test import BackTestJobs
from torchtriage.services.retriage_job import RetriageJobs
from torchtriage.services.service import Service
from torchtriage.web.api.upload_lanes import Intake


async def service_of(request: Request) -> Service:
    return cast(Service, request.app.state.service)


async def intake_of(request: Request) -> Intake:
    return cast(Intake, request.app.state.intake)


async def _named_logs(request: Request) -> NamedLogs:
    return cast(NamedLogs, request.app.state.named_logs)


ServiceDep = Annotated[Service, Depends(service_of)]
IntakeDep = Annotated[Intake, Depends(intake_of)]
NamedLogsDep = Annotated[NamedLogs, Depends(_named_logs)]


def search_index(state: State, service: Service) -> SearchIndex:
    """Returns the search index of the knowledge base. Builds it once per knowledge base, which takes a second if it is
    not in the user's cache."""
    knowledge = service.knowledge
    if getattr(state, "search_index_of", None) is not knowledge:
        state.search_index, state.search_index_of = load_index(knowledge, cache_folder()), knowledge
    return cast(SearchIndex, state.search_index)


def _retriage_jobs(request: Request) -> RetriageJobs:
    return cast(RetriageJobs, request.app.state.retriage_jobs)


def _back_tests(request: Request) -> BackTestJobs:
    return cast(BackTestJobs, request.app.state.back_tests)


def _index(request: Request) -> SearchIndex:
    return search_index(request.app.state, cast(Service, request.app.state.service))


SearchDep = Annotated[SearchIndex, Depends(_index)]
BackTestsDep = Annotated[BackTestJobs, Depends(_back_tests)]
RetriageJobsDep = Annotated[RetriageJobs, Depends(_retriage_jobs)]
