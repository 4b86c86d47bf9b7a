"""What routes ask for."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request
from starlette.datastructures import State

from app.knowledge.cache import cache_folder, load_index
from app.knowledge.search import SearchIndex
from app.services.service import Service


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceDep = Annotated[Service, Depends(_service)]


def search_index(state: State, service: Service) -> SearchIndex:
    """Made when the first question comes: it takes a second where the user's cache has none yet."""
    if not hasattr(state, "search_index"):
        state.search_index = load_index(service.knowledge, cache_folder())
    return cast(SearchIndex, state.search_index)


def _index(request: Request) -> SearchIndex:
    return search_index(request.app.state, _service(request))


SearchDep = Annotated[SearchIndex, Depends(_index)]
