"""`/docs`: the HTTP API from its OpenAPI document: routes, parameters, answers and curl commands. GET routes can be
tried."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.entry import Language
from torchtriage.errors import NotFound
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.api_descriptions import described, purpose
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.translations import word

router = APIRouter()
_LOG = "text/plain"  # the body of a route that takes a log has this type, besides others
_UNBOUNDED = (1 << 31) - 1  # the most that a column of the database takes, and no bound to speak of
_FIRST = ("incidents", "triage")  # the tags of what most callers need
_PLAIN = "Successful Response"  # what the document says where a route says nothing
_ERROR = "400"  # the first status code of errors
_SLOT = re.compile(r"\{(\w+)\}")
_SENTENCE = re.compile(r"\. |。")  # a sentence's end, in English or Chinese


@dataclass(frozen=True, slots=True)
class Parameter:
    """`where`: path, query or body. `kind`: its type, and what bounds it, as `integer, 1 to 200`."""

    name: str
    where: str
    kind: str
    required: bool
    default: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path; `command` is a curl line for it. `results` are its answers that are no errors, each a
    status code and what it means; `errors` are the others."""

    id: str
    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    media_types: tuple[str, ...]
    results: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]
    command: str

    @property
    def summary(self) -> str:
        """Returns the first sentence of the description, without its full stop."""
        return _SENTENCE.split(self.description, maxsplit=1)[0].rstrip(".")

    @property
    def details(self) -> str:
        """Returns the other sentences."""
        return "".join(_SENTENCE.split(self.description, maxsplit=1)[1:])

    @property
    def can_be_tried(self) -> bool:
        """Returns whether a call of this operation changes nothing."""
        return self.method == "GET"


@dataclass(frozen=True, slots=True)
class ApiPage:
    """The operations by their tag: first what most callers need, then in the order of the tags' names."""

    groups: dict[str, tuple[Operation, ...]]
    guarded: bool
    base_url: str


@router.get("/docs")
def reference(request: Request, service: ServiceDep) -> Response:
    guarded = service.settings.auth != "none"
    found = operations(request.app.openapi(), service.settings.base_url, guarded, language(request))
    ordered = dict(sorted(found.items(), key=lambda group: (group[0] not in _FIRST, group[0].casefold())))
    return render(request, "api_reference.html", ApiPage(ordered, guarded, service.settings.base_url))


@router.get("/docs/try/{operation_id}")
def open_operation(request: Request, service: ServiceDep, operation_id: str) -> Response:
    """Redirects to the answer of a GET route, with its path and query filled in from the query of this request."""
    found = operations(request.app.openapi(), "", False)
    operation = next((one for group in found.values() for one in group if one.id == operation_id), None)
    if operation is None or not operation.can_be_tried:
        raise NotFound("no such GET route")
    asked = {name: value for name, value in request.query_params.multi_items() if value}
    path = _SLOT.sub(lambda slot: quote(asked.pop(slot[1], ""), safe=""), operation.path)
    query = urlencode(asked)
    return RedirectResponse(f"{path}?{query}" if query else path, HTTPStatus.SEE_OTHER)


def operations(
    document: Mapping[str, Any], base_url: str, guarded: bool, lang: Language = "en"
) -> dict[str, tuple[Operation, ...]]:
    """Returns the operations of an OpenAPI document by tag. If `guarded`, the commands contain a token."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            parameters = (*_parameters(told, document, lang), *_fields(told, document, lang))
            media_types = tuple(told.get("requestBody", {}).get("content", ()))
            answers = {code: answer.get("description", "") for code, answer in told["responses"].items()}
            made = Operation(
                told["operationId"], method.upper(), path,
                described(lang, " ".join(told.get("description", "").split())), parameters, media_types,
                tuple((code, _result(lang, text)) for code, text in answers.items() if code < _ERROR),
                tuple((code, described(lang, text)) for code, text in answers.items() if code >= _ERROR),
                _command(method.upper(), base_url + path, parameters, media_types, guarded and "security" in told),
            )  # fmt: skip
            groups.setdefault(next(iter(told.get("tags", ())), ""), []).append(made)
    return {tag: tuple(made) for tag, made in groups.items()}


def _result(lang: Language, text: str) -> str:
    return "OK" if text == _PLAIN else described(lang, text)


def _parameters(told: Mapping[str, Any], document: Mapping[str, Any], lang: Language) -> Iterator[Parameter]:
    for one in told.get("parameters", ()):
        schema = one.get("schema", {})
        default = schema.get("default")
        yield Parameter(
            one["name"], one["in"], _kind(schema, document, lang), one.get("required", False),
            None if default in (None, "", []) else str(default), purpose(lang, one["name"], one.get("description", "")),
        )  # fmt: skip


def _fields(told: Mapping[str, Any], document: Mapping[str, Any], lang: Language) -> Iterator[Parameter]:
    """Yields the fields of a JSON body."""
    schema = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    named = _resolved(schema, document)
    for name, field in named.get("properties", {}).items():
        required = name in named.get("required", ())
        about = purpose(lang, name, field.get("description", ""))
        yield Parameter(name, "body", _kind(field, document, lang), required, None, about)


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema, or the one to which its `$ref` points."""
    named: str = schema.get("$ref", "")
    return document["components"]["schemas"][named.rpartition("/")[2]] if named else schema


def _kind(schema: Mapping[str, Any], document: Mapping[str, Any], lang: Language) -> str:
    """Returns the type of a value in a few words: `integer, 1 to 200`, `open, resolved or ignored`, `list of
    string`."""
    schema = _resolved(schema, document)
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if choices:
        return word(lang, "api_or").join(_kind(one, document, lang) for one in choices)
    if "enum" in schema:
        *others, last = map(str, schema["enum"])
        listed = word(lang, "api_comma").join(others)
        return f"{listed}{word(lang, 'api_or')}{last}" if others else last
    if schema.get("type") == "array":
        return word(lang, "api_list_of", kind=_kind(schema.get("items", {}), document, lang))
    kind = str(schema.get("format") or schema.get("type") or schema.get("const") or "any")
    bounds = [schema.get("minimum"), schema.get("maximum")]
    if bounds[0] is not None and bounds[1] is not None and bounds[1] < _UNBOUNDED:
        return word(lang, "api_within", kind=kind, least=bounds[0], most=bounds[1])
    return kind


def _command(
    method: str, address: str, parameters: tuple[Parameter, ...], media_types: tuple[str, ...], guarded: bool
) -> str:
    """Returns a curl command for a route. Values to fill in are in capitals."""
    address = _SLOT.sub(lambda slot: slot[1].upper(), address)
    required = [(one.name, one.name.upper()) for one in parameters if one.where == "query" and one.required]
    words = ["curl"] if method in ("GET", "POST") else ["curl", "-X", method]
    if guarded:
        words.append('-H "Authorization: Bearer $TORCHTRIAGE_TOKEN"')
    if _LOG in media_types:
        words.append("--data-binary @run.log")
    elif "application/json" in media_types:
        fields = [one for one in parameters if one.where == "body"]
        wanted = [one for one in fields if one.required] or fields[:1]
        body = ", ".join(f'"{one.name}": …' for one in wanted)
        words += ["-H 'Content-Type: application/json'", f"-d '{{{body}}}'"]
    elif method == "POST":
        words += ["-X", "POST"]
    return " ".join([*words, shlex.quote(address + (f"?{urlencode(required)}" if required else ""))])
