"""What routes ask for."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from app.services.service import Service


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceDep = Annotated[Service, Depends(_service)]
