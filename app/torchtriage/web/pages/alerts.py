"""`/alerts`: which messages were sent to which channel, and whether they arrived. Failed ones can be sent again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.notice import OutboxItem, SendState
from torchtriage.services.outbox import count_outbox, list_outbox, send_again
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.groups import Choice
from torchtriage.web.pages.list_items import IncidentItem, rows_of
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.translations import catalogue
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BATCH_SIZE = 50
_SOON = timedelta(minutes=1)  # a nearer try needs no time


@dataclass(frozen=True, slots=True)
class AlertLine:
    """A message; `kind` names the words for why it is sent, None where this version has none. `next_try` is None if
    the message is not tried again, or within a minute."""

    item: OutboxItem
    kind: str | None
    next_try: datetime | None

    @property
    def retrying(self) -> bool:
        return self.item.state is SendState.READY and self.item.tries > 0


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """`rows` are the incidents that they are about, `states` links to the messages of one state, each with how many
    there are in `counts`; `channels` are where this service sends to; `kept_days` is for how long what ended is known;
    `newer` and `older` are addresses."""

    items: tuple[AlertLine, ...]
    rows: dict[str, IncidentItem]
    states: tuple[Choice, ...]
    counts: dict[str, int]
    channels: tuple[str, ...]
    kept_days: int
    newer: str | None
    older: str | None


@router.get("/alerts")
def show(request: Request, service: ServiceDep) -> Response:
    """Raises BadCursor."""
    asked = value(request, "state")
    state = SendState(asked) if asked in set(SendState) else None
    found = list_outbox(service, state, _BATCH_SIZE, value(request, "cursor") or None)
    counts: dict[str, int] = {}
    for (_, of_state), count in count_outbox(service).items():
        counts[of_state] = counts.get(of_state, 0) + count
    names = ("", SendState.SENT, SendState.READY, SendState.WAITING, SendState.FAILED)
    page = AlertsPage(
        items=tuple(AlertLine(item, _kind(item), _next_try(item)) for item in found.items),
        rows=rows_of(request, service, [item.incident for item in found.items if item.incident]),
        states=tuple(
            Choice(name or "all", address("/alerts", {"state": name}), name == (state or "")) for name in names
        ),
        counts=counts | {"all": sum(counts.values())},
        channels=tuple(sorted(service.channels.senders)),
        kept_days=service.settings.outbox_days,
        newer=_at(state, found.previous),
        older=_at(state, found.next),
    )
    return render(request, "alerts.html", page)


@router.post("/alerts/{notice_id}/again")
def again(service: ServiceDep, caller: Writer, notice_id: str) -> Response:
    """Sends a message again. Raises NotFound."""
    send_again(service, notice_id, caller.name)
    return RedirectResponse("/alerts", HTTPStatus.SEE_OTHER)


def _kind(item: OutboxItem) -> str | None:
    named = f"alert_{item.kind.replace(' ', '_')}"
    return named if named in catalogue() else None


def _next_try(item: OutboxItem) -> datetime | None:
    return item.due_at if item.state is SendState.READY and item.due_at > datetime.now(UTC) + _SOON else None


def _at(state: SendState | None, cursor: str | None) -> str | None:
    return address("/alerts", {"state": state, "cursor": cursor}) if cursor else None
