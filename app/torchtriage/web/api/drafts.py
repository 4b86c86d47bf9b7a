"""/api/v1/drafts: drafts of entries."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from torchtriage.domain.back_test import BackTest
from torchtriage.domain.draft import MAX_STEPS, Draft, DraftCheck, DraftState, DraftStep, StoredDraft
from torchtriage.domain.entry import Language, Text
from torchtriage.domain.json_form import fields_form
from torchtriage.services import draft_approval, drafts
from torchtriage.web.api.response_models import model_of
from torchtriage.web.authentication import Reader, Writer
from torchtriage.web.dependencies import BackTestsDep, ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer
from torchtriage.web.pages.error_texts import problem_text

router = APIRouter(prefix="/api/v1/drafts", tags=["drafts"])
_Typed = Annotated[str, Field(max_length=drafts.MAX_TEXT)]


class StepBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    en: _Typed = ""
    zh: _Typed = ""
    run: _Typed = ""


class DraftBody(BaseModel):
    """An entry of one case, complete or not. The keys are those of an entry's file."""

    model_config = ConfigDict(extra="forbid")

    entry: _Typed = Field("", description="The entry's id, `area.name`")
    title_en: _Typed = ""
    title_zh: _Typed = ""
    kind: Literal["cause", "consequence"] = "cause"
    owner: Literal["user", "framework", "platform", "hardware"] = "user"
    sign: _Typed = ""
    search_in: Literal["exception", "line", "any"] = "exception"
    says_en: _Typed = ""
    says_zh: _Typed = ""
    steps: Annotated[list[StepBody], Field(max_length=MAX_STEPS)] = []
    retry: Literal["no", "yes", "once"] = "no"
    source: _Typed = ""
    example: _Typed = ""
    near_miss: _Typed = ""

    def draft(self) -> Draft:
        steps = tuple(DraftStep(step.en, step.zh, step.run) for step in self.steps)
        others = self.model_dump(exclude={"steps", "incident", "revision"})
        return Draft(**others, steps=(*steps, *[DraftStep()] * (MAX_STEPS - len(steps))))


class NewDraftBody(DraftBody):
    incident: Annotated[str | None, Field(max_length=20, description="The incident that the draft is based on")] = None


class ChangedDraftBody(DraftBody):
    revision: int = Field(ge=1, description="`revision` of the draft that was read; another one is refused with 409")


class StateBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    state: DraftState
    revision: int = Field(ge=1, description="`revision` of the draft that was read; another one is refused with 409")


class CheckQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    lang: Language = Field("en", description="The language of the messages")
    whole: bool = Field(
        False, description="Also prove the other cases of the entry that a case is added to, as an approval does"
    )


class ProblemForm(BaseModel):
    """`field` is a key of the draft, or `step1_en`, `step1_zh`, `step1_run` and so on. A `warning` does not prevent
    approval."""

    field: str
    message: str
    warning: bool


class CheckForm(BaseModel):
    """`says` and `steps` are the draft's answer to its example; null and empty if the draft does not match it. `known`
    are the slots that the example fills."""

    problems: list[ProblemForm]
    says: Text | None
    steps: list[Text]
    known: list[str]


BackTestForm = model_of("BackTestForm", BackTest)
DraftForm = model_of("DraftForm", StoredDraft)
CheckedDraftForm = model_of("CheckedDraftForm", StoredDraft, problems=list[ProblemForm])


class DraftsForm(BaseModel):
    items: list[DraftForm]  # type: ignore[valid-type]
    next: str | None


@router.get("", responses={200: {"model": DraftsForm}, **error_responses(422)})
def list_drafts(service: ServiceDep, _: Reader) -> Response:
    """List all drafts of entries, latest change first."""
    return Answer({"items": list(map(fields_form, drafts.list_drafts(service))), "next": None})


@router.post(
    "", status_code=201, responses={201: {"model": CheckedDraftForm}, **error_responses(400, 404, 409, 413, 422)}
)
def create_draft(body: NewDraftBody, service: ServiceDep, caller: Writer) -> Response:
    """Store a new draft, even if it has problems; `problems` lists them."""
    stored, checked = drafts.create_draft(service, body.draft(), body.incident, caller.name)
    return Answer(_draft_form(stored, checked), 201, {"Location": f"/api/v1/drafts/{stored.id}"})


@router.post("/check", responses={200: {"model": CheckForm}, **error_responses(413, 422)})
def check_draft(body: DraftBody, query: Annotated[CheckQuery, Query()], service: ServiceDep, _: Writer) -> Response:
    """Check a draft by the rules of `torchtriage kb check`. Each problem names its field. Nothing is stored."""
    checked = drafts.check(service, body.draft(), query.whole)
    return Answer(fields_form(checked) | {"problems": _problems(checked, query.lang)})


@router.get("/{draft}", responses={200: {"model": DraftForm}, **error_responses(404, 422)})
def read_draft(draft: str, service: ServiceDep, _: Reader) -> Response:
    """Read one draft."""
    return Answer(fields_form(drafts.read_draft(service, draft)))


@router.put("/{draft}", responses={200: {"model": CheckedDraftForm}, **error_responses(400, 404, 409, 413, 422)})
def change_draft(draft: str, body: ChangedDraftBody, service: ServiceDep, caller: Writer) -> Response:
    """Change a draft. Answers 409 if somebody else changed it after `revision`."""
    stored, checked = drafts.change_draft(service, draft, body.revision, body.draft(), caller.name)
    return Answer(_draft_form(stored, checked))


@router.put("/{draft}/state", responses={200: {"model": DraftForm}, **error_responses(400, 404, 409, 422)})
def move_draft(draft: str, body: StateBody, service: ServiceDep, caller: Writer) -> Response:
    """Track a draft (it counts new incidents that match it, and gives no answers), approve it (it is used like any
    other entry), or take it back. If logins are required, somebody other than its author must approve it."""
    return Answer(fields_form(draft_approval.move_draft(service, draft, body.revision, body.state, caller.name)))


@router.post(
    "/{draft}/back-test",
    status_code=202,
    responses={202: {"model": BackTestForm}, **error_responses(400, 404, 409, 422)},
)
def start_back_test(draft: str, service: ServiceDep, back_tests: BackTestsDep, caller: Writer) -> Response:
    """Start running a draft on the stored incidents, one at a time. `GET` returns the progress and the results."""
    back_tests.start(draft, caller.name)
    return Answer(fields_form(back_tests.progress(draft)), 202)


@router.get("/{draft}/back-test", responses={200: {"model": BackTestForm}, **error_responses(404, 422)})
def read_back_test(draft: str, service: ServiceDep, back_tests: BackTestsDep, _: Reader) -> Response:
    """Read the progress and the results of a draft's back-test."""
    drafts.read_draft(service, draft)
    return Answer(fields_form(back_tests.progress(draft)))


@router.delete("/{draft}/back-test", status_code=204, responses=error_responses(404, 422))
def cancel_back_test(draft: str, service: ServiceDep, back_tests: BackTestsDep, _: Writer) -> Response:
    """Cancel a draft's back-test. Its results so far can still be read."""
    drafts.read_draft(service, draft)
    back_tests.cancel(draft)
    return Response(status_code=204)


def _draft_form(stored: StoredDraft, checked: DraftCheck) -> dict[str, Any]:
    return fields_form(stored) | {"problems": _problems(checked, "en")}


def _problems(checked: DraftCheck, lang: Language) -> list[dict[str, Any]]:
    return [fields_form(problem) | {"message": problem_text(lang, problem.message)} for problem in checked.problems]
