"""/api/v1/run-summaries: summaries of runs, for finding what changed before a failure."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from torchtriage.answer.comparison_wording import sentence
from torchtriage.domain.access import Scope
from torchtriage.domain.json_form import fields_form
from torchtriage.domain.run_comparison import Change
from torchtriage.domain.run_summary import RunSummary, SinceGood
from torchtriage.reading.slurm_nodelist import hosts
from torchtriage.services import run_summaries
from torchtriage.web.api.request_models import Word
from torchtriage.web.api.response_models import SinceGoodForm
from torchtriage.web.authentication import Submitter
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1/run-summaries", tags=["incidents"])

_Name = Annotated[str, Field(max_length=200)]
_Text = Annotated[str, Field(max_length=500)]
_MAX_CHARACTERS = 60_000  # maximum characters of all texts together


class RunSummaryBody(BaseModel):
    """What the client reports about a run at its end: a run of an incident, or else a successful run."""

    model_config = ConfigDict(extra="forbid")

    incident: Word = Field(None, description="The incident of the run; without it, the run succeeded")
    job_name: Word = Field(None, description="Required without an incident")
    cluster: Word = None
    job_id: Word = Field(None, description="The job's id, which must match that of the incident")
    job: Annotated[dict[_Name, _Text], Field(max_length=30)] = Field({}, description="image, commit, gpus …")
    versions: Annotated[dict[_Name, _Text], Field(max_length=2000)] = {}
    environment: Annotated[dict[_Name, _Text], Field(max_length=1000)] = {}
    hosts: Annotated[list[_Text], Field(max_length=1000)] = Field([], description="Names, or node lists of Slurm")
    phases: Annotated[dict[_Name, Annotated[float, Field(ge=0, le=1e9)]], Field(max_length=20)] = Field(
        {}, description="Seconds by phase"
    )
    lines: Annotated[list[_Text], Field(max_length=500)] = Field([], description="The first line of each masked form")

    @model_validator(mode="after")
    def _complete(self) -> RunSummaryBody:
        if not self.incident and not self.job_name:
            raise ValueError("give incident, or job_name for a successful run")
        pairs = [text for part in (self.job, self.versions, self.environment) for pair in part.items() for text in pair]
        if sum(map(len, (*pairs, *self.hosts, *self.lines))) > _MAX_CHARACTERS:
            raise ValueError(f"a summary has at most {_MAX_CHARACTERS} characters")
        return self

    def summary(self) -> RunSummary:
        named = tuple(dict.fromkeys(name for text in self.hosts for name in hosts(text)))
        return RunSummary(self.job, self.versions, self.environment, named, self.phases, tuple(self.lines))


class KeptForm(BaseModel):
    """What changed since the last successful run of the job. Null for a successful run, and for a token without the
    scope `read`."""

    since_good: SinceGoodForm | None


@router.post("", responses={200: {"model": KeptForm}, **error_responses(400, 403, 404, 413, 422)})
def keep(summary: RunSummaryBody, service: ServiceDep, caller: Submitter) -> Response:
    """Store the summary of a run at its end. That of a successful run is stored by job name, for later comparison; that
    of a failed run with its incident. The answer says what changed since the last successful run."""
    if summary.incident is None:
        run_summaries.keep_good_run(service, summary.job_name or "", summary.cluster, summary.job_id, summary.summary())
        return Answer({"since_good": None})
    incident = run_summaries.keep_failed_run(service, summary.incident, summary.job_id, summary.summary())
    found = run_summaries.since_good(service, incident) if caller.may(Scope.READ) else None
    return Answer({"since_good": since_good_form(found)})


def since_good_form(found: SinceGood | None) -> dict[str, Any] | None:
    """Returns the JSON form. Each change has a sentence in both languages."""
    return fields_form(found) | {"changes": [_change_form(change) for change in found.changes]} if found else None


def _change_form(change: Change) -> dict[str, Any]:
    fields = {name: value for name, value in fields_form(change).items() if name not in ("line", "file")}
    return fields | {"says": {"en": sentence(change, False), "zh": sentence(change, True)}}
