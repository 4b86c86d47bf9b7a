"""The models of requests: validate queries and bodies and convert them to domain values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from starlette.datastructures import QueryParams

from torchtriage.answer.brief.token_count import MAX_TOKENS, MIN_TOKENS, TOKENS
from torchtriage.decision.history import History, read_history
from torchtriage.domain.decision import AttemptRecord, DecisionAction
from torchtriage.domain.entry import Language
from torchtriage.domain.group import GroupFilter, GroupOrder, GroupStatus
from torchtriage.domain.incident import IncidentFilter, Job, State
from torchtriage.domain.verdict import Outcome
from torchtriage.storage.decisions import DecisionFilter

_MAX_LABELS = 50
_MAX_HISTORY_LENGTH = 200_000  # characters
_FIRST_YEAR, _LAST_YEAR = 2, 9998  # leaves room to convert the time to another time zone or add a day
# Fields that are not passed on to Job as they are.
_NOT_OF_JOB = frozenset({"wait", "label", "started_at", "ended_at", "history", "lang"})
_UNKNOWN = ("", "unknown", "none", "n/a", "null")  # what schedulers write for an unknown time


def _given(value: Any) -> Any:
    """Treats an empty text, such as an empty variable of a script, as not given."""
    return None if isinstance(value, str) and not value.strip() else value


def _time(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in _UNKNOWN else value


def _utc(value: datetime | None) -> datetime | None:
    """Converts a time to UTC. A time without a zone is in UTC."""
    if value is None:
        return None
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise ValueError("no such time")
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("no such time") from None


def _web_address(value: str | None) -> str | None:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("not a URL that begins with http:// or https://")
    return value


def _label(value: str) -> str:
    name, colon, text = value.partition(":")
    if not (name.strip() and colon and text.strip()):
        raise ValueError("a label has the form key:value")
    return value


def _history(value: str) -> str:
    read_history(value)
    return value


_Longer = Annotated[str, Field(max_length=_MAX_HISTORY_LENGTH), AfterValidator(_history)]
_Plain = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Word = Annotated[_Plain | None, BeforeValidator(_given)]
Moment = Annotated[datetime | None, BeforeValidator(_time), AfterValidator(_utc)]
Count = Annotated[Annotated[int, Field(ge=0, le=2**31 - 1)] | None, BeforeValidator(_given)]


class SubmitQuery(BaseModel):
    """What the sender knows about the failed job, and how long to wait for the verdict."""

    job_id: Word = Field(None, description="The job's id in the scheduler")
    job_name: Word = Field(None, description="The job's name")
    cluster: Word = Field(None, description="The cluster it ran on")
    scheduler: Word = Field(None, description="The scheduler, such as slurm or kubernetes")
    user: Word = Field(None, description="The job's owner")
    queue: Word = Field(None, description="The queue or partition")
    attempt: Count = Field(None, description="The attempt of the job, counted from 0")
    node_rank: Count = Field(None, description="The node's rank, if each node reports by itself")
    nodes: Count = Field(None, description="How many nodes the run has, if each node reports by itself")
    exit_code: Annotated[Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None, BeforeValidator(_given)] = None
    state: Word = Field(None, description="The job's final state as the scheduler calls it, such as FAILED")
    started_at: Moment = Field(None, description="ISO 8601, or seconds since 1970; without a zone it is UTC")
    ended_at: Moment = Field(None, description="When the job ended, in the same format")
    gpus: Count = Field(None, description="GPUs of the whole job")
    image: Word = Field(None, description="The container image")
    commit: Word = Field(None, description="The commit of the training code")
    url: Annotated[Word, AfterValidator(_web_address)] = None
    provisional: Annotated[bool | None, BeforeValidator(_given)] = Field(
        None,
        description="true: the run has not ended. A later report of the same job, attempt and node replaces this one "
        "if it sets this to true or false",
    )
    label: list[Annotated[_Plain, AfterValidator(_label)]] = Field(
        [], max_length=_MAX_LABELS, description="key:value; repeat it for several labels"
    )
    wait: float = Field(10, ge=0, le=60, description="Seconds to wait for the verdict")

    @classmethod
    def of(cls, query: bytes) -> SubmitQuery:
        """Parses the query of a request as FastAPI would. Raises pydantic's ValidationError."""
        params = QueryParams(query)
        given: dict[str, Any] = dict(params)  # if a parameter is repeated, the last value counts
        if "label" in given:
            given["label"] = params.getlist("label")
        return cls.model_validate(given)

    def job(self) -> Job:
        given = {name: getattr(self, name) for name in self.model_fields_set - _NOT_OF_JOB}
        labels = dict(label.split(":", 1) for label in self.label)
        return Job(**given, started_at=_iso(self.started_at), ended_at=_iso(self.ended_at), labels=labels)


class DecideQuery(SubmitQuery):
    """The parameters of SubmitQuery, for a failed attempt about which a decision is requested."""

    wait: float = Field(30, ge=0, le=60, description="Seconds to wait for the verdict")
    history: Annotated[_Longer | None, BeforeValidator(_given)] = Field(
        None,
        description="The attempts before, as a JSON list; without it, the incidents of the same job",
    )
    lang: Language = Field("en", description="Language of the reason")

    def earlier(self) -> tuple[AttemptRecord, ...] | None:
        return None if self.history is None else read_history(self.history)


class DecideBody(BaseModel):
    """The incident about which a decision is requested."""

    model_config = ConfigDict(extra="forbid")

    incident: Annotated[str, Field(min_length=1, max_length=100)]
    attempt: Count = Field(None, description="The attempt of the job, counted from 0; without it, that of the job")
    history: History | None = Field(None, description="The attempts before; without it, the incidents of the same job")
    lang: Language = "en"

    def earlier(self) -> tuple[AttemptRecord, ...] | None:
        return None if self.history is None else tuple(form.record() for form in self.history)


class PageQuery(BaseModel):
    """A page of a list. Unknown parameters are refused, because a misspelled filter would otherwise be ignored."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1, le=200)
    cursor: Word = Field(None, description="`next` of the previous page")


class IncidentsQuery(PageQuery):
    q: Word = Field(None, description="Words that must all occur, in English or Chinese")
    entry: Word = None
    outcome: Outcome | None = None
    cluster: Word = None
    user: Word = None
    host: Word = Field(None, description="The host that failed first")
    state: State | None = None
    group: Word = None
    since: Moment = Field(None, description="Received at this time or later")
    until: Moment = Field(None, description="Received before this time")

    def wanted(self) -> IncidentFilter:
        return IncidentFilter(**self.model_dump(exclude={"limit", "cursor"}))


class DecisionsQuery(PageQuery):
    incident: Word = None
    job_id: Word = None
    action: DecisionAction | None = None
    grade: Literal["right", "wrong", "unknown", "waiting"] | None = Field(
        None, description="How the decision turned out; `waiting`: the next attempt is not known"
    )
    lang: Language = "en"

    def wanted(self) -> DecisionFilter:
        return DecisionFilter(**self.model_dump(exclude={"limit", "cursor", "lang"}))


class GroupsQuery(PageQuery):
    status: GroupStatus | None = None
    entry: Word = None
    outcome: Literal["explained", "unexplained"] | None = None
    q: Word = Field(None, description="Words of title, signature, entry, owner or note")
    sort: GroupOrder = Field(GroupOrder.SEEN, description="What comes first")

    def wanted(self) -> GroupFilter:
        return GroupFilter(**self.model_dump(exclude={"limit", "cursor", "q"}), words=self.q)


class LogQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    start: int = Field(
        1, ge=1, le=10**15, alias="from", description="Number of the first line to return; lines count from 1"
    )
    lines: int = Field(200, ge=1, le=2000)
    file: Annotated[str, Field(max_length=500)] | None = Field(
        None, description="A name in `log.files`; default: the first"
    )


class BriefQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    lang: Language = "en"
    tokens: int = Field(TOKENS, ge=MIN_TOKENS, le=MAX_TOKENS, description="The maximum number of tokens of the brief")


class GroupChangeBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: GroupStatus | None = None
    owner: Annotated[_Plain | None, Field(description="Empty removes the owner")] = None
    note: Annotated[str | None, Field(max_length=5000)] = None
    mute_days: Annotated[
        float | None, Field(ge=0, le=365, description="Days for which alerts of this group are muted; 0 unmutes it")
    ] = None


class IssueBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    channel: Annotated[
        _Plain, Field(description="The name of the tracker: `github`, `jira`, or one of the routes file")
    ]


class MergeBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    groups: Annotated[list[_Plain], Field(min_length=1, max_length=100)]


class SplitBody(BaseModel):
    """Either the groups whose merge is undone, or a property of incidents and its value."""

    model_config = ConfigDict(extra="forbid")

    groups: Annotated[list[_Plain], Field(max_length=100)] = []
    by: Literal["cluster", "user", "host", "fingerprint"] | None = None
    value: Word = None

    @model_validator(mode="after")
    def _one(self) -> SplitBody:
        if bool(self.groups) == bool(self.by) or bool(self.by) != bool(self.value):
            raise ValueError("give either groups, or by and value")
        return self


class FeedbackBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    verdict: Literal["right", "wrong"]
    entry: Word = Field(None, description="What it should have been")
    note: Annotated[str | None, Field(max_length=5000)] = None


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None
