"""What answers look like, for the OpenAPI document: models made of the dataclasses that are answered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from datetime import date, datetime
from types import GenericAlias
from typing import Any, get_type_hints

from pydantic import BaseModel, Field, create_model

from torchtriage.domain.access import Change
from torchtriage.domain.dashboard import ClusterRecord, Cost, Dashboard
from torchtriage.domain.decision import Decision, DecisionRecord, Score
from torchtriage.domain.gathered_log import GatheredJob
from torchtriage.domain.group import Group, GroupIssue, GroupMark
from torchtriage.domain.incident import Feedback, Incident, State, StoredFile, StoredLine, StoredLog
from torchtriage.domain.run_comparison import Change as RunChange
from torchtriage.domain.run_comparison import RunComparison
from torchtriage.domain.run_summary import SinceGood
from torchtriage.domain.stats import BadHost, HostRecord, Precision, RetrySuccess, Stat
from torchtriage.storage.pagination import Page


def model_of(name: str, kind: Any, doc: str | None = None, leave_out: Collection[str] = (), **other: Any) -> Any:
    """-> the model of a dataclass, each field of which is always there. `other` are fields that the answer has besides,
    or in another form."""
    hints = get_type_hints(kind)
    known = {
        field.name: (hints[field.name], Field(description=field.metadata.get("description")))
        for field in fields(kind)
        if field.name not in leave_out
    }
    return _model(name, doc or kind.__doc__, known | other)


def page_model(name: str, item: Any, **cursors: Any) -> Any:
    """-> the model of a piece of a list."""
    return _model(name, None, {"items": _several(item), "next": str | None, **cursors})


def _model(name: str, doc: str | None, forms: dict[str, Any]) -> Any:
    """-> a model of these fields; a form may have a description beside it."""
    whole: dict[str, Any] = {field: form if isinstance(form, tuple) else (form, ...) for field, form in forms.items()}
    return create_model(name, __doc__=doc, __module__=__name__, **whole)


def _several(item: Any) -> GenericAlias:
    return GenericAlias(list, (item,))


FileForm = model_of("FileForm", StoredFile)
LogForm = model_of("LogForm", StoredLog, bytes=int, lines=int, files=_several(FileForm))
GroupMarkForm = model_of("GroupMarkForm", GroupMark)
FeedbackForm = model_of("FeedbackForm", Feedback)
IncidentForm = model_of(
    "IncidentForm",
    Incident,
    "One failed run. `verdict` is null until `state` is `triaged`; `failure` says why where it is `failed`.",
    url=str,
    job=dict[str, Any],
    log=LogForm,
    group=GroupMarkForm | None,
    feedback=_several(FeedbackForm),
)
ComparisonForm = model_of(
    "ComparisonForm",
    RunComparison,
    "What changed from the run of incident `before` to that of incident `now`. `same` counts the settings that both "
    "have alike; `partly` is true where only the beginning and the end of a long log were compared.",
    before=str,
    now=str,
)
SinceGoodChangeForm = model_of(
    "SinceGoodChangeForm",
    RunChange,
    "One thing that changed; `says` tells it in a few words.",
    leave_out=("line", "file"),
    says=dict[str, str],
)
SinceGoodForm = model_of(
    "SinceGoodForm",
    SinceGood,
    "What changed since the last run of the same job name that worked, the likeliest to matter first.",
    changes=_several(SinceGoodChangeForm),
)
OneIncidentForm = model_of(
    "OneIncidentForm",
    Incident,
    "An incident, and what changed since its job worked: null where nothing is known to differ.",
    url=str,
    job=dict[str, Any],
    log=LogForm,
    group=GroupMarkForm | None,
    feedback=_several(FeedbackForm),
    since_good=SinceGoodForm | None,
)
IncidentsForm = page_model("IncidentsForm", IncidentForm, previous=str | None)


class RepeatForm(BaseModel):
    """An incident that was there already, for who may not read."""

    id: str
    state: State


LineForm = model_of("LineForm", StoredLine)
LinesForm = _model(
    "LinesForm",
    "Lines of one file of the log, secrets taken out; `next` is the `from` of those after, null at the end.",
    {"file": str, "total": int, "lines": _several(LineForm), "next": int | None},
)
GroupForm = model_of(
    "GroupForm",
    Group,
    "Incidents that count as one. `title` and `signature` are the latest incident's.",
    leave_out=("provisional",),
    url=str,
)
GatheredJobForm = model_of("GatheredJobForm", GatheredJob, job=dict[str, Any])
GatheredJobsForm = page_model("GatheredJobsForm", GatheredJobForm)
IssuesForm = page_model("IssuesForm", model_of("IssueForm", GroupIssue))
GroupsForm = page_model("GroupsForm", GroupForm, previous=str | None)
StatForm = model_of(
    "StatForm",
    Stat,
    "`value` is that of what was asked for by `by`, null for incidents that have none; `at` is in UTC.",
    at=datetime,
)
StatsForm = page_model("StatsForm", StatForm)
HostForm = model_of("HostForm", HostRecord)
HostsForm = page_model("HostsForm", HostForm)
RetriesForm = model_of("RetriesForm", RetrySuccess, unknown=int)
DashboardForm = model_of(
    "DashboardForm",
    Dashboard,
    "The tables have a row for each time, entry, cluster or host, as the page `/dashboard` shows them.",
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
    "What to do about a failed attempt. Act on it only where `mode` is `enforce`. `grade` is null until the next "
    "attempt of the job is known; `graded_by` is the incident that it was, null for a run that worked. "
    "`evidence` are lines of the log.",
    leave_out=("because",),
    reason=str,
    url=str,
    **{name: hint for name, hint in get_type_hints(DecisionRecord).items() if name != "decision"},
)
DecisionsForm = page_model("DecisionsForm", DecisionForm)
ScoreForm = _model(
    "ScoreForm",
    "How decisions turned out, by action: `waiting` is how many have no next attempt yet.",
    {"items": list[Score], "latest": int},
)
ChangeForm = model_of("ChangeForm", Change)
ChangesForm = page_model("ChangesForm", ChangeForm)


def page_of(page: Page[Any], base_url: str) -> dict[str, Any]:
    """-> a list's answer."""
    return {"items": [item.as_dict(base_url) for item in page.items], "next": page.next, "previous": page.previous}
