"""`/incidents/bulk`: one action on all incidents selected in the list. Actions that cannot be undone ask first."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.errors import BadInput
from torchtriage.services.incidents import MAX_INCIDENTS, forget_incidents, give_feedback_to, read_incidents
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import RetriageJobsDep, ServiceDep
from torchtriage.web.pages.incidents import FILTERS
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, incident_items
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address

router = APIRouter()


@dataclass(frozen=True, slots=True)
class ForgetPage:
    """The confirmation before incidents are deleted. `here` is the query of the list, `back` its URL."""

    items: tuple[IncidentItem, ...]
    here: str
    back: str


@router.post("/incidents/bulk")
def bulk(
    request: Request,
    service: ServiceDep,
    retriage_jobs: RetriageJobsDep,
    caller: Writer,
    incident: Annotated[list[str] | None, Form()] = None,
    action: Annotated[str, Form()] = "",
    here: Annotated[str, Form()] = "",
) -> Response:
    """`action` is retriage, right, wrong, delete (which asks for confirmation) or forget (the confirmation)."""
    chosen = list(dict.fromkeys(incident or []))[:MAX_INCIDENTS]
    back = {name: given for name, given in parse_qsl(here) if name in (*FILTERS, "cursor")}
    if not chosen:
        return _back(back, "nothing", 0)
    match action:
        case "retriage":
            retriage_jobs.start_preview(caller.name, chosen)
            return RedirectResponse("/retriage", HTTPStatus.SEE_OTHER)
        case "right" | "wrong":
            return _back(back, action, give_feedback_to(service, chosen, action, caller.name))
        case "delete":
            items = incident_items(read_incidents(service, chosen), service.knowledge, language(request))
            return render(request, "forget.html", ForgetPage(items, here, address("/incidents", back)))
        case "forget":
            back.pop("cursor", None)
            return _back(back, "deleted", forget_incidents(service, chosen, caller.name))
    raise BadInput("the action must be retriage, right, wrong or delete")


def _back(query: dict[str, str], said: str, count: int) -> Response:
    return RedirectResponse(address("/incidents", query | {"said": said, "n": str(count)}), HTTPStatus.SEE_OTHER)
