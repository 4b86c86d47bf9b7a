"""`/settings`: for administrators: tokens, channels, retention, knowledge, retriage, and all options."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.domain.access import Scope, Token
from torchtriage.errors import NotFound
from torchtriage.services import tokens as access
from torchtriage.services.knowledge_reload import FolderState
from torchtriage.services.outbox import count_outbox, send_test
from torchtriage.services.retriage_job import RetriageJobs
from torchtriage.services.service import Service
from torchtriage.services.service_info import About, about
from torchtriage.settings.options import PREFIX
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.web.authentication import Admin
from torchtriage.web.dependencies import RetriageJobsDep, ServiceDep
from torchtriage.web.pages.audit_log import ChangeLine, change_lines
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
SCOPES = tuple(scope.value for scope in Scope)
LIFETIMES = (7, 30, 90, 365)  # days
_MAX_NAME_LENGTH = 100
_CHANGES = 8


@dataclass(frozen=True, slots=True)
class Made:
    """A token that was just created. Its secret is shown only once."""

    token: Token
    secret: str


@dataclass(frozen=True, slots=True)
class TypedToken:
    """What was typed into the form of a new token. `wrong` has the fields that cannot be used, each with the name of
    the sentence that says why."""

    name: str = ""
    scopes: frozenset[str] = frozenset()
    days: int = 90
    wrong: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """A channel for alerts, and the number of its messages in the outbox by state."""

    name: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """`alive` are the valid tokens, `ended` the others. `tested` is the channel to which a test was sent, with the
    problem if there was one. `folders` is the state of the knowledge folders. `stage` is the stage of the retriage, and
    `older` the number of incidents that it would check. `sentences` describe the options by variable, in a language
    other than English. `changes` are the latest. `held_back` says why incidents or logs that are
    due are not removed."""

    about: About
    alive: tuple[Token, ...]
    ended: tuple[Token, ...]
    scopes: tuple[str, ...]
    lifetimes: tuple[int, ...]
    guarded: bool
    retention_days: int
    held_back: dict[str, str]
    channels: tuple[ChannelLine, ...]
    changes: tuple[ChangeLine, ...]
    stage: str
    older: int
    sentences: dict[str, str]
    typed: TypedToken
    made: Made | None = None
    tested: str = ""
    problem: str = ""
    folders: FolderState | None = None


@router.get("/settings")
def settings(request: Request, service: ServiceDep, retriage_jobs: RetriageJobsDep, _: Admin) -> Response:
    tested = value(request, "tested")
    found = service.folders.current_state() if value(request, "check") else None
    return render(request, "settings.html", _page(request, service, retriage_jobs, tested=tested, folders=found))


@router.post("/settings/tokens")
def make_token(
    request: Request,
    service: ServiceDep,
    retriage_jobs: RetriageJobsDep,
    caller: Admin,
    name: Annotated[str, Form()] = "",
    scope: Annotated[list[str] | None, Form()] = None,
    days: Annotated[int, Form(ge=0, le=3650)] = 0,
) -> Response:
    """Creates a token and shows its secret once. With 0 days, it does not expire."""
    name = " ".join(name.split())
    scopes = [Scope(given) for given in scope or [] if given in SCOPES]
    wrong = {"name": "token_needs_name"} if not name or len(name) > _MAX_NAME_LENGTH else {}
    wrong |= {} if scopes else {"scope": "token_needs_scope"}
    if wrong:
        typed = TypedToken(name, frozenset(scopes), days, wrong)
        page = _page(request, service, retriage_jobs, typed=typed)
        return render(request, "settings.html", page, HTTPStatus.BAD_REQUEST)
    lifetime = timedelta(days=days) if days else None
    secret, token = access.create(service.database, name, scopes, lifetime, caller.name)
    answer = render(request, "settings.html", _page(request, service, retriage_jobs, made=Made(token, secret)))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post("/settings/tokens/{token_id}/revoke")
def revoke(service: ServiceDep, caller: Admin, token_id: str) -> Response:
    access.revoke(service.database, token_id, caller.name)
    return RedirectResponse("/settings#tokens", HTTPStatus.SEE_OTHER)


@router.post("/settings/test")
def try_channel(
    request: Request,
    service: ServiceDep,
    retriage_jobs: RetriageJobsDep,
    caller: Admin,
    channel: Annotated[str, Form()] = "",
) -> Response:
    """Sends a test message to a channel immediately, and shows the result."""
    try:
        send_test(service, channel, caller.name)
    except (Undelivered, NotFound) as problem:
        page = _page(request, service, retriage_jobs, tested=channel, problem=problem.message)
        found = problem.status if isinstance(problem, NotFound) else HTTPStatus.BAD_GATEWAY
        return render(request, "settings.html", page, found)
    return RedirectResponse(address("/settings", {"tested": channel}) + "#chats", HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    service: Service,
    retriage_jobs: RetriageJobs,
    made: Made | None = None,
    typed: TypedToken | None = None,
    tested: str = "",
    problem: str = "",
    folders: FolderState | None = None,
) -> SettingsPage:
    now, tokens = datetime.now(UTC), access.listed(service.database)
    alive = [token for token in tokens if token.revoked_at is None and (not token.expires_at or token.expires_at > now)]
    changes = access.changes(service.database, ChangeFilter(), _CHANGES)
    counts = count_outbox(service)
    names = {name: {state: count for (channel, state), count in counts.items() if channel == name}
             for name in service.channels.senders}  # fmt: skip
    return SettingsPage(
        about=about(service),
        alive=tuple(alive),
        ended=tuple(token for token in tokens if token not in alive),
        scopes=SCOPES,
        lifetimes=LIFETIMES,
        guarded=service.settings.auth != "none",
        retention_days=service.settings.retention_days,
        held_back=service.counters.held_back.copy(),
        channels=tuple(ChannelLine(name, known) for name, known in sorted(names.items())),
        changes=change_lines(changes.items, language(request)),
        stage=retriage_jobs.progress.stage.value,
        older=retriage_jobs.older,
        sentences=option_sentences() if language(request) == "zh" else {},
        typed=typed or TypedToken(),
        made=made,
        tested=tested if tested in names else "",
        problem=problem,
        folders=folders or (service.folders.last if service.folders.last.problems else None),
    )


@cache
def option_sentences() -> dict[str, str]:
    """Returns the Chinese description of each option, by variable. The English one is in the declaration of the
    option."""
    sentences = tomllib.loads(Path(__file__).with_name("option_descriptions.toml").read_text("utf-8"))
    return {f"{PREFIX}{name.upper()}": sentence for name, sentence in sentences.items()}
