"""`/connect`: how jobs report to this server, with its URL filled in, and whether a report has arrived."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import JSONResponse

from torchtriage.domain.access import Scope
from torchtriage.domain.entry import Language, Text
from torchtriage.domain.incident_summary import SenderReport
from torchtriage.errors import BadInput
from torchtriage.services import tokens
from torchtriage.services.incidents import newest_by_sender
from torchtriage.services.service import Service
from torchtriage.web.authentication import Admin
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.groups import Choice
from torchtriage.web.pages.guides import guide_page
from torchtriage.web.pages.language import language
from torchtriage.web.pages.relative_time import ago
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import value

router = APIRouter()
_LIFETIME = timedelta(days=365)
_PLACEHOLDER = "tt_…"


@dataclass(frozen=True, slots=True)
class Step:
    """A sentence that says what to do, and the command for it."""

    says: str
    run: str


@dataclass(frozen=True, slots=True)
class ConnectPage:
    """`kind` is the sender of reports that the page is about. `more` are pages of docs/, by name and title. `report` is
    the newest report of this sender, or None. `guarded`: a token is needed. `secret` is a new token, which is shown
    only once. `loopback` is the URL in the commands if only this machine can reach it."""

    kind: str
    kinds: tuple[Choice, ...]
    steps: tuple[Step, ...]
    more: tuple[tuple[str, str], ...]
    report: SenderReport | None
    lit: frozenset[str]
    guarded: bool
    secret: str | None
    loopback: str | None


@router.get("/connect")
def connect(request: Request, service: ServiceDep) -> Response:
    kind = value(request, "from")
    return render(request, "connect.html", _page(service, language(request), kind if kind in _guides() else "slurm"))


@router.post("/connect")
def make_token(request: Request, service: ServiceDep, caller: Admin, kind: Annotated[str, Form()] = "") -> Response:
    """Creates a token for these reports and shows it in the commands, once."""
    if kind not in _guides():
        raise BadInput(f"the sender must be one of {', '.join(_guides())}")
    scopes = [Scope.SUBMIT, Scope.READ]
    secret, _ = tokens.create(service.database, f"connect: {kind}", scopes, _LIFETIME, caller.name)
    answer = render(request, "connect.html", _page(service, language(request), kind, secret))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.get("/connect/light")
def light(request: Request, service: ServiceDep) -> Response:
    """Returns whether a report from the sender `from` has arrived: its incident, and how long ago that was."""
    report = newest_by_sender(service).get(value(request, "from"))
    content = {"incident": report.incident, "ago": ago(language(request), report.at)} if report else {"incident": None}
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


def _page(service: Service, lang: Language, kind: str, secret: str | None = None) -> ConnectPage:
    guide, reports, guarded = _guides()[kind], newest_by_sender(service), service.settings.auth != "none"
    filled = _values(service.settings.base_url, (secret or _PLACEHOLDER) if guarded else None)
    return ConnectPage(
        kind=kind,
        kinds=tuple(Choice(name, f"/connect?from={name}", name == kind) for name in _guides()),
        steps=tuple(
            Step(Text(step["en"], step["zh"]).in_(lang), _command(step["run"], filled)) for step in guide["steps"]
        ),
        more=tuple((name, guide_page(name, lang).title) for name in guide["more"]),
        report=reports.get(kind),
        lit=frozenset(reports),
        guarded=guarded,
        secret=secret,
        loopback=service.settings.base_url if is_loopback(service.settings.base_url) else None,
    )


def is_loopback(url: str) -> bool:
    """Returns whether a URL is reachable only from the machine itself, or not at all, such as 0.0.0.0."""
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _values(url: str, token: str | None) -> dict[str, str]:
    """Returns the values for the commands. Without a token, the commands contain none."""
    variables = {"TORCHTRIAGE_URL": url} | ({"TORCHTRIAGE_TOKEN": token} if token else {})
    return {
        "url": url,
        "token": token or "none",
        "bearer": f" -H 'Authorization: Bearer {token}'" if token else "",
        "exports": "export " + " ".join(f"{name}={_quoted(given)}" for name, given in variables.items()),
        "envs": "\n".join(f"  {name}: {given}" for name, given in variables.items()),
        "sky_envs": " ".join(f"--env {name}={_quoted(given)}" for name, given in variables.items()),
        "runtime_env": json.dumps({"env_vars": variables}, ensure_ascii=False),
    }


def _quoted(given: str) -> str:
    return given if given == _PLACEHOLDER else shlex.quote(given)


def _command(template: str, values: dict[str, str]) -> str:
    """Fills in a command. Does not use format(), because commands contain braces."""
    for name, given in values.items():
        template = template.replace(f"{{{name}}}", given)
    return template.strip()


@cache
def _guides() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
