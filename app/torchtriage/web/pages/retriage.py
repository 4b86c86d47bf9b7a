"""`/retriage`: what today's knowledge would change in verdicts that are kept, and the button that changes it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.errors import BadInput
from torchtriage.services.retriage_job import Progress
from torchtriage.web.authentication import Admin, Writer
from torchtriage.web.dependencies import RetriageJobsDep
from torchtriage.web.pages.rendering import render

router = APIRouter()


@dataclass(frozen=True, slots=True)
class RetriagePage:
    """How far it is; `left` counts the differences and failures that are not shown one by one."""

    progress: Progress
    left: int


@router.get("/retriage")
def retriage(request: Request, retriage_jobs: RetriageJobsDep) -> Response:
    progress = retriage_jobs.progress
    return render(
        request, "retriage.html", RetriagePage(progress, progress.found + progress.failed - len(progress.differences))
    )


@router.post("/retriage/all")
def begin(retriage_jobs: RetriageJobsDep, caller: Admin) -> Response:
    """Looks at every incident whose verdict is of other knowledge."""
    retriage_jobs.start_preview(caller.name)
    return _there()


@router.post("/retriage")
def end(retriage_jobs: RetriageJobsDep, caller: Writer, action: Annotated[str, Form()] = "") -> Response:
    """`action`: apply keeps what was found, discard forgets it."""
    match action:
        case "apply":
            retriage_jobs.apply(caller.name)
        case "discard":
            retriage_jobs.discard()
        case _:
            raise BadInput("the action must be apply or discard")
    return _there()


def _there() -> Response:
    return RedirectResponse("/retriage", HTTPStatus.SEE_OTHER)
