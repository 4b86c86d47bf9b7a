"""What routes ask for."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from app.knowledge.cache import cache_folder, load_index
from app.knowledge.search import SearchIndex
from app.services.service import Service


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceDep = Annotated[Service, Depends(_service)]


def _search_index(request: Request) -> SearchIndex:
    """Made when the first question comes: it takes a second where the user's cache has none yet."""
    state = request.app.state
    if not hasattr(state, "search_index"):
        state.search_index = load_index(_service(request).knowledge, cache_folder())
    return cast(SearchIndex, state.search_index)


SearchDep = Annotated[SearchIndex, Depends(_search_index)]
