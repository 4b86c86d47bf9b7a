"""Models of the answers for the OpenAPI document, derived from the dataclasses that are returned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from datetime import date, datetime
from functools import reduce
from operator import or_
from types import GenericAlias, NoneType
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, Field, create_model

from torchtriage.domain.access import AuditLine
from torchtriage.domain.dashboard import ClusterRecord, Cost, Dashboard
from torchtriage.domain.decision import Decision, DecisionRecord, Score
from torchtriage.domain.gathered_log import GatheredJob
from torchtriage.domain.group import Group, GroupIssue, GroupMark
from torchtriage.domain.incident import Feedback, Incident, Job, NodeReport, State, StoredFile, StoredLine, StoredLog
from torchtriage.domain.run_comparison import Change, RunComparison
from torchtriage.domain.run_summary import SinceGood
from torchtriage.domain.stats import BadHost, HostRecord, Precision, RetrySuccess, Stat
from torchtriage.storage.pagination import Page


def model_of(name: str, kind: Any, doc: str | None = None, leave_out: Collection[str] = (), **other: Any) -> Any:
    """Returns a model of a dataclass in which every field is required. `other` are fields that the answer adds or has
    in another form."""
    hints = get_type_hints(kind)
    known = {
        field.name: (hints[field.name], Field(description=field.metadata.get("description")))
        for field in fields(kind)
        if field.name not in leave_out
    }
    return _model(name, doc or kind.__doc__, known | other)


def given_model(name: str, kind: Any, doc: str, **other: Any) -> Any:
    """Returns a model of a dataclass whose JSON has only the values that were given: each field may be missing, and
    none is null. `other` are fields that the answer has in another form."""
    hints = get_type_hints(kind) | other
    missing = Field(default_factory=lambda: None)  # unlike a default, it does not stand in the document
    return _model(name, doc, {field.name: (_without_none(hints[field.name]), missing) for field in fields(kind)})


def page_model(name: str, item: Any, **cursors: Any) -> Any:
    """Returns the model of a page of a list."""
    return _model(name, None, {"items": _several(item), "next": str | None, **cursors})


def _model(name: str, doc: str | None, forms: dict[str, Any]) -> Any:
    """Returns a model of these fields. The type of a field may come with a description."""
    whole: dict[str, Any] = {field: form if isinstance(form, tuple) else (form, ...) for field, form in forms.items()}
    return create_model(name, __doc__=doc, __module__=__name__, **whole)


def _without_none(hint: Any) -> Any:
    kinds = get_args(hint)
    return reduce(or_, (kind for kind in kinds if kind is not NoneType)) if NoneType in kinds else hint


def _several(item: Any) -> GenericAlias:
    return GenericAlias(list, (item,))


FileForm = model_of("FileForm", StoredFile)
LogForm = model_of("LogForm", StoredLog, bytes=int, lines=int, files=_several(FileForm))
NodeReportForm = model_of("NodeReportForm", NodeReport)
JobForm = given_model(
    "JobForm",
    Job,
    "The job that failed and its owner, as the sender of the log gave them; what is unknown is missing. `provisional` "
    "is true if the job was still running when its log was sent. `nodes` is how many nodes send their own reports; "
    "`reports` are the reports received, by rank or host, if there are several.",
    reports=GenericAlias(dict, (str, NodeReportForm)),
)
GroupMarkForm = model_of("GroupMarkForm", GroupMark)
FeedbackForm = model_of("FeedbackForm", Feedback)
IncidentForm = model_of(
    "IncidentForm",
    Incident,
    "One failed run. `verdict` is null until `state` is `triaged`; `failure` is the reason if `state` is `failed`.",
    url=str,
    job=JobForm,
    log=LogForm,
    group=GroupMarkForm | None,
    feedback=_several(FeedbackForm),
)
ComparisonForm = model_of(
    "ComparisonForm",
    RunComparison,
    "What changed from the run of incident `before` to that of incident `now`. `same` counts the settings that did "
    "not change; `partly` is true if only the beginning and the end of a long log were compared.",
    before=str,
    now=str,
)
SinceGoodChangeForm = model_of(
    "SinceGoodChangeForm",
    Change,
    "One change; `says` describes it in a few words.",
    leave_out=("line", "file"),
    says=dict[str, str],
)
SinceGoodForm = model_of(
    "SinceGoodForm",
    SinceGood,
    "What changed since the last successful run with the same job name, the most relevant change first.",
    changes=_several(SinceGoodChangeForm),
)
OneIncidentForm = model_of(
    "OneIncidentForm",
    Incident,
    "An incident, and what changed since the last successful run of its job: null if no change is known.",
    url=str,
    job=JobForm,
    log=LogForm,
    group=GroupMarkForm | None,
    feedback=_several(FeedbackForm),
    since_good=SinceGoodForm | None,
)
IncidentsForm = page_model("IncidentsForm", IncidentForm, previous=str | None)


class RepeatForm(BaseModel):
    """An incident that already existed, for callers who may not read it."""

    id: str
    state: State


LineForm = model_of("LineForm", StoredLine)
LinesForm = _model(
    "LinesForm",
    "Lines of one file of the log, without secrets; `next` is the `from` of the following lines, null at the end.",
    {"file": str, "total": int, "lines": _several(LineForm), "next": int | None},
)
GroupForm = model_of(
    "GroupForm",
    Group,
    "Incidents with the same cause. `title` and `signature` are those of the latest incident.",
    leave_out=("provisional",),
    url=str,
)
GatheredJobForm = model_of("GatheredJobForm", GatheredJob, job=JobForm)
GatheredJobsForm = page_model("GatheredJobsForm", GatheredJobForm)
IssuesForm = page_model("IssuesForm", model_of("IssueForm", GroupIssue))
GroupsForm = page_model("GroupsForm", GroupForm, previous=str | None)
StatForm = model_of(
    "StatForm",
    Stat,
    "`value` is the value of the property `by`, null for incidents without one; `at` is in UTC.",
    at=datetime,
)
StatsForm = page_model("StatsForm", StatForm)
HostForm = model_of("HostForm", HostRecord)
HostsForm = page_model("HostsForm", HostForm)
RetriesForm = model_of("RetriesForm", RetrySuccess, unknown=int)
DashboardForm = model_of(
    "DashboardForm",
    Dashboard,
    "The tables have a row for each time, entry, cluster or host, as on the page `/dashboard`.",
    leave_out=("range", "hours", "bad_hosts", "before", "compared"),
    since=date,
    until=date,
    retries=RetriesForm,
    by_area=list[dict[str, str | int]],
    by_owner=list[dict[str, str | int]],
    causes=_several(model_of("CauseForm", Cost, leave_out=("name",), entry=str | None)),
    clusters=list[ClusterRecord],
    hosts=list[BadHost],
    precision=list[Precision],
    unlikely_hosts=list[dict[str, str | int | float | None]],
)
DecisionForm = model_of(
    "DecisionForm",
    Decision,
    "What to do about a failed attempt. Act on it only if `mode` is `enforce`. `grade` is null until the next "
    "attempt of the job is known; `graded_by` is the incident of that attempt, null if it succeeded. "
    "`evidence` are lines of the log.",
    leave_out=("because",),
    reason=str,
    url=str,
    **{name: hint for name, hint in get_type_hints(DecisionRecord).items() if name != "decision"},
)
DecisionsForm = page_model("DecisionsForm", DecisionForm)
ScoreForm = _model(
    "ScoreForm",
    "How decisions turned out, by action. `waiting` is how many have no next attempt yet.",
    {"items": list[Score], "latest": int},
)
ChangeForm = model_of("ChangeForm", AuditLine)
ChangesForm = page_model("ChangesForm", ChangeForm)


def page_of(page: Page[Any], base_url: str) -> dict[str, Any]:
    """Returns the answer for a page of a list."""
    return {"items": [item.as_dict(base_url) for item in page.items], "next": page.next, "previous": page.previous}
