"""`/v1/logs`: accepts log records from an OpenTelemetry Collector over OTLP/HTTP. Also lists the logs that are being
gathered."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from torchtriage.domain.byte_sizes import limit_text
from torchtriage.domain.json_form import fields_form
from torchtriage.errors import BadInput, LogTooLarge, TriageError
from torchtriage.reading.unpack import Upload
from torchtriage.services import gathered_logs
from torchtriage.services.gathered_logs import keep_pieces
from torchtriage.services.otlp_records import sort_records
from torchtriage.services.service import Service
from torchtriage.web.api.otlp_decoding import JSON, PROTOBUF, failure, resources, success
from torchtriage.web.api.request_body import with_uploads
from torchtriage.web.api.response_models import GatheredJobsForm
from torchtriage.web.authentication import Reader, Submitter, Writer
from torchtriage.web.dependencies import IntakeDep, ServiceDep
from torchtriage.web.errors import RETRY_AFTER, ErrorBody, UnsupportedBody, error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(tags=["OpenTelemetry"])

_MAX_BYTES = 20 << 20  # maximum bytes of a request, compressed or not; the OTLP specification recommends this limit
_NO_JOB = (
    "no attribute names a job: set torchtriage.job.id, or one of k8s.job.name, slurm.job.id, service.name and others; "
    "or it is a record that torchtriage sent"
)
_SEVERAL = "an OTLP request has one body"
_PASSING = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_REFUSED: dict[str, Any] = {"content": {PROTOBUF: {}}, "description": "A Status"}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An ExportLogsServiceRequest; may be compressed by gzip",
        "content": {JSON: {"schema": {"type": "object"}}, PROTOBUF: {"schema": {"type": "string", "format": "binary"}}},
    }
}


class StatusForm(BaseModel):
    """The OTLP error answer, with the reason as text."""

    message: str


class EndedForm(BaseModel):
    """The incident that was made from a gathered log."""

    incident: str


@router.post(
    "/v1/logs",
    openapi_extra=_BODY,
    responses={
        200: {
            "content": {JSON: {}, PROTOBUF: {}},
            "description": "An ExportLogsServiceResponse; with `partialSuccess` if records name no job",
        },
        **error_responses(),
        **{status: _REFUSED | {"model": StatusForm} for status in (400, 408, 413, 415)},
        **{status: _REFUSED | {"model": StatusForm | ErrorBody} for status in _PASSING},
    },
)
async def take_logs(request: Request, service: ServiceDep, intake: IntakeDep, _: Submitter) -> Response:
    """Accept log records from an OpenTelemetry Collector. They are stored durably before the answer, and become one
    incident per job when the job ends or is silent."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    try:
        if kind not in (JSON, PROTOBUF):
            raise UnsupportedBody(f"unsupported Content-Type; use {PROTOBUF} or {JSON}", content_type=kind[:100])
        rejected = await with_uploads(request, intake, _MAX_BYTES, partial(_take, service, kind))
    except TriageError as problem:
        return _refused(problem, kind if kind == PROTOBUF else JSON)
    return Response(success(kind, rejected, _NO_JOB), media_type=kind)


@router.get("/api/v1/gathered-logs", responses={200: {"model": GatheredJobsForm}, **error_responses()})
def list_gathered(service: ServiceDep, _: Reader) -> Response:
    """List the jobs whose logs are being gathered: first those that ended, then those without output for the longest
    time."""
    found = gathered_logs.list_gathered(service)
    return Answer({"items": [fields_form(job) | {"job": job.job.to_json()} for job in found], "next": None})


@router.post(
    "/api/v1/gathered-logs/{job}/end",
    status_code=201,
    responses={201: {"model": EndedForm}, **error_responses(400, 403, 404, 422)},
)
def end(job: str, service: ServiceDep, caller: Writer) -> Response:
    """Make an incident from a gathered log now."""
    incident = gathered_logs.end_gathering(service, job, caller.name)
    return Answer({"incident": incident}, 201, {"Location": f"/api/v1/incidents/{incident}"})


def _take(service: Service, kind: str, uploads: Iterator[Upload]) -> int:
    """Stores the records. Returns how many were rejected."""
    bodies = [b"".join(_unpacked(upload)) for upload in uploads]
    if len(bodies) != 1:
        raise BadInput(_SEVERAL)
    come = sort_records(resources(bodies[0], kind), service.knowledge.vocabulary)
    if come.pieces:
        keep_pieces(service, come)
    return come.rejected


def _unpacked(upload: Upload) -> Iterator[bytes]:
    """Yields the body, decompressed. Raises LogTooLarge or BadInput."""
    unpacker, size = None, 0
    for at, chunk in enumerate(upload.chunks):
        if at == 0 and chunk.startswith(b"\x1f\x8b"):
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            piece = unpacker.decompress(chunk, _MAX_BYTES + 1) if unpacker else chunk
        except zlib.error as error:
            raise BadInput(f"the body is not valid gzip: {error}") from None
        size += len(piece)
        if size > _MAX_BYTES:
            raise LogTooLarge(f"the request is larger than the limit of {limit_text(_MAX_BYTES)}", limit=_MAX_BYTES)
        yield piece
    if unpacker and not unpacker.eof:
        raise BadInput("the body is not valid gzip: it is incomplete")
    if unpacker and unpacker.unused_data:
        raise BadInput("the body is not valid gzip: bytes follow its end")


def _refused(problem: TriageError, kind: str) -> Response:
    headers = {}
    if problem.status in _PASSING:
        headers["Retry-After"] = str(problem.detail.get("retry_after", RETRY_AFTER))
    return Response(failure(kind, problem.message), problem.status, headers, kind)
