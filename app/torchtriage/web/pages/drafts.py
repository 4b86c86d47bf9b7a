"""`/drafts`: entries that people write on these pages, usually from an unexplained failure: the list and the form."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.answer.localized_verdict import title_of
from torchtriage.domain.access import ANYONE
from torchtriage.domain.back_test import BackTest
from torchtriage.domain.draft import Draft, DraftCheck, DraftState, FieldProblem, StoredDraft
from torchtriage.domain.entry import Text
from torchtriage.errors import BadInput, NotFound
from torchtriage.knowledge.added_cases import file_of, split_id
from torchtriage.knowledge.drafted_entry import yaml_of
from torchtriage.knowledge.git_patch import new_file_patch
from torchtriage.knowledge.new_entry import is_entry_id
from torchtriage.services import drafts
from torchtriage.services.back_test import KINDS, is_stale
from torchtriage.services.draft_approval import (
    can_undo,
    history_of,
    may_approve,
    move_draft,
    to_retriage,
    tracking_of,
    undo,
)
from torchtriage.services.groups import latest_incidents, read_group
from torchtriage.services.service import Service
from torchtriage.storage.drafts import EditedMeanwhile
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import BackTestsDep, RetriageJobsDep, ServiceDep
from torchtriage.web.pages.audit_log import ChangeLine, change_lines
from torchtriage.web.pages.back_test_rows import BackTestRow, Finding, back_test_rows, finding
from torchtriage.web.pages.draft_form import MAX_LENGTH, Differing, differing, draft_of_form, values_of
from torchtriage.web.pages.form_data import read_form
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import rows_of
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import value

router = APIRouter()
_HISTORY = 20  # changes of a draft that are shown
_KINDS_OF_ENTRY = ("explains", "takes", "alarms", "beside")
_KINDS_OF_CASE = ("refines", "overrides", "explains", "takes", "alarms")
_STATES = {"track": DraftState.TRACKING, "approve": DraftState.APPLIED, "take-back": DraftState.DRAFT}


@dataclass(frozen=True, slots=True)
class DraftsPage:
    """All drafts, the last changed one first, and their latest back-tests by draft id."""

    drafts: tuple[StoredDraft, ...]
    tests: dict[str, BackTest]


@dataclass(frozen=True, slots=True)
class Stage:
    """The state of a stored draft. `others`: somebody other than the caller must approve it. `stale`: it was changed
    after its back-test. `retriage` is the number of incidents that a retriage would check. `undoes`: the last change
    can be undone."""

    sound: bool
    others: bool
    tracking: BackTest
    tested: BackTest
    stale: bool
    retriage: int
    history: tuple[ChangeLine, ...]
    undoes: bool


@dataclass(frozen=True, slots=True)
class DraftPage:
    """The form. `stored` is None until the draft is saved. `values` and `problems` are by field. `slots` are values
    from the log. `theirs` are the fields that another person changed meanwhile. `problem` belongs to no single
    field."""

    values: dict[str, str]
    checked: DraftCheck | None = None
    stored: StoredDraft | None = None
    incident: str | None = None
    slots: dict[str, str] = field(default_factory=dict)
    revision: int = 0
    theirs: tuple[Differing, ...] = ()
    problem: str | None = None
    saved: bool = False
    stage: Stage | None = None

    @property
    def problems(self) -> dict[str, list[FieldProblem]]:
        found: defaultdict[str, list[FieldProblem]] = defaultdict(list)
        for problem in self.checked.problems if self.checked else ():
            found[problem.field].append(problem)
        return dict(found)

    @property
    def more_steps(self) -> bool:
        """Whether a step after the first is filled in."""
        return any(text for name, text in self.values.items() if name.startswith(("step2_", "step3_")))

    @property
    def known(self) -> tuple[str, ...]:
        """Returns the slots that the example fills. Before a check, these are the slots whose value occurs in its
        text."""
        if self.checked is not None:
            return tuple(self.checked.known)
        example = self.values["example"]
        return tuple(name for name, parts in self.slots.items() if all(part in example for part in parts.split(":")))

    @property
    def says(self) -> Text | None:
        return self.checked.says if self.checked else None


@dataclass(frozen=True, slots=True)
class BackTestPage:
    """The progress of a draft's back-test. `titles` are the titles of the entries shown. `stale`: the draft was changed
    after the back-test started. `kinds` are what is counted, and `rows` the incidents shown, by kind. `finding` is the
    result in a sentence, once the back-test has ended."""

    stored: StoredDraft
    test: BackTest
    titles: dict[str, str]
    stale: bool
    kinds: tuple[str, ...]
    rows: dict[str, tuple[BackTestRow, ...]]
    finding: Finding | None


@router.get("/drafts")
def all_drafts(request: Request, service: ServiceDep, back_tests: BackTestsDep) -> Response:
    found = tuple(drafts.list_drafts(service))
    return render(request, "drafts.html", DraftsPage(found, {one.id: back_tests.progress(one.id) for one in found}))


@router.get("/drafts/new")
def new(request: Request, service: ServiceDep, _: Writer) -> Response:
    """Shows the form, filled in from an incident or from the latest one of a group. If a draft was started from it,
    continues that."""
    incident, as_case = value(request, "incident") or _latest(service, value(request, "group")), value(request, "case")
    begun = drafts.draft_of(service, incident)
    if begun is not None and ("/" in begun.draft.entry) == bool(as_case):
        return RedirectResponse(f"/drafts/{begun.id}", HTTPStatus.SEE_OTHER)
    proposed = drafts.propose(service, incident, bool(as_case))
    page = DraftPage(values_of(proposed.draft), incident=proposed.incident, slots=proposed.slots)
    return render(request, "draft.html", page)


@router.post("/drafts")
async def create(request: Request, service: ServiceDep, caller: Writer) -> Response:
    """`action` is check, which reports problems and stores nothing, or save, which stores the draft even with
    problems."""
    given = await read_form(request, MAX_LENGTH)
    return await to_thread.run_sync(_taken, request, service, given, caller.name, None)


@router.get("/drafts/{draft_id}.yaml")
def as_yaml(service: ServiceDep, draft_id: str) -> Response:
    """Returns the entry's file, as it belongs in a folder of entries."""
    stored = drafts.read_draft(service, draft_id)
    headers = {"Content-Disposition": f'attachment; filename="{_file_name(stored)}.yaml"'}
    return Response(yaml_of(stored.draft, stored.expect), media_type="application/yaml", headers=headers)


@router.get("/drafts/{draft_id}.patch")
def as_patch(service: ServiceDep, draft_id: str) -> Response:
    """Returns the same file as a patch for `git am`, to propose it to the repository."""
    stored = drafts.read_draft(service, draft_id)
    entry = stored.draft.entry
    if not is_entry_id(split_id(entry)[0]):
        raise BadInput("give the draft a valid id first")
    path = f"knowledge_base/{file_of(entry)}"
    subject = f"Explain: {stored.draft.title_en or entry}"
    text = new_file_patch(path, yaml_of(stored.draft, stored.expect), subject, stored.changed_by, stored.changed_at)
    headers = {"Content-Disposition": f'attachment; filename="{_file_name(stored)}.patch"'}
    return Response(text, media_type="text/x-patch", headers=headers)


@router.get("/drafts/{draft_id}")
def draft(request: Request, service: ServiceDep, back_tests: BackTestsDep, draft_id: str) -> Response:
    stored = drafts.read_draft(service, draft_id)
    page = _page(
        service, stored, stored.draft, drafts.check(service, stored.draft), saved="saved" in request.query_params
    )
    stage = _stage(request, service, back_tests.progress(stored.id), stored, page.checked)
    return render(request, "draft.html", replace(page, stage=stage))


@router.post("/drafts/{draft_id}")
async def change(request: Request, service: ServiceDep, draft_id: str, caller: Writer) -> Response:
    """Like `create`, for a stored draft. `revision` is the one that the form was made from. `action` may also be
    delete."""
    given = await read_form(request, MAX_LENGTH)
    return await to_thread.run_sync(_taken, request, service, given, caller.name, draft_id)


@router.post("/drafts/{draft_id}/state")
def move(
    service: ServiceDep,
    draft_id: str,
    caller: Writer,
    action: Annotated[str, Form()] = "",
    revision: Annotated[int, Form()] = 0,
) -> Response:
    """`action` is track, approve, take-back, or undo for the last change."""
    match action:
        case "undo":
            undo(service, draft_id, revision, caller.name)
        case "track" | "approve" | "take-back":
            move_draft(service, draft_id, revision, _STATES[action], caller.name)
        case _:
            raise BadInput("the action must be track, approve, take-back or undo")
    return RedirectResponse(f"/drafts/{draft_id}", HTTPStatus.SEE_OTHER)


@router.post("/drafts/{draft_id}/retriage")
def preview(
    service: ServiceDep, back_tests: BackTestsDep, retriage_jobs: RetriageJobsDep, draft_id: str, caller: Writer
) -> Response:
    """Starts a preview of the verdicts that the draft changes, now that it is in use or was taken back. `/retriage`
    shows and applies it."""
    stored = drafts.read_draft(service, draft_id)
    chosen = to_retriage(service, stored, back_tests.progress(draft_id), tracking_of(service, draft_id))
    if not chosen:
        raise BadInput("no incident to re-triage")
    retriage_jobs.start_preview(caller.name, chosen)
    return RedirectResponse("/retriage", HTTPStatus.SEE_OTHER)


@router.get("/drafts/{draft_id}/back-test")
def back_test(request: Request, service: ServiceDep, back_tests: BackTestsDep, draft_id: str) -> Response:
    """Shows what the draft would change in the stored incidents that were checked so far."""
    stored, test = drafts.read_draft(service, draft_id), back_tests.progress(draft_id)
    named = {shown.entry for shown in (*test.takes, *test.refines, *test.overrides, *test.beside) if shown.entry}
    titles = {entry: title_of(entry, service.knowledge, language(request)) or entry for entry in named}
    adds, items = "/" in stored.draft.entry, rows_of(request, service, _shown_ids(test))
    kinds = _KINDS_OF_CASE if adds else _KINDS_OF_ENTRY
    rows = {kind: back_test_rows(getattr(test, kind), items) for kind in kinds}
    page = BackTestPage(stored, test, titles, is_stale(test, stored), kinds, rows, finding(test, adds))
    return render(request, "back_test.html", page)


@router.post("/drafts/{draft_id}/back-test")
def run_back_test(
    back_tests: BackTestsDep, draft_id: str, caller: Writer, action: Annotated[str, Form()] = ""
) -> Response:
    """`action` is start or cancel."""
    match action:
        case "start":
            back_tests.start(draft_id, caller.name)
        case "cancel":
            back_tests.cancel(draft_id)
        case _:
            raise BadInput("the action must be start or cancel")
    return RedirectResponse(f"/drafts/{draft_id}/back-test", HTTPStatus.SEE_OTHER)


def _shown_ids(test: BackTest) -> list[str]:
    return [shown.incident_id for kind in KINDS for shown in getattr(test, kind)]


def _file_name(stored: StoredDraft) -> str:
    """Returns the file name of a download. An invalid id is not used, because it could contain any characters."""
    entry = stored.draft.entry
    return (
        file_of(entry).rpartition("/")[2].removesuffix(".yaml")
        if is_entry_id(split_id(entry)[0])
        else f"draft-{stored.id}"
    )


def _taken(request: Request, service: Service, given: dict[str, str], by: str, draft_id: str | None) -> Response:
    """Returns the answer to a submitted form. After an error, the form is shown again with what was typed."""
    typed = draft_of_form(given)
    revision = int(given["revision"]) if given.get("revision", "").isdecimal() else 0
    stored = drafts.read_draft(service, draft_id) if draft_id else None
    incident = given.get("incident") or None
    if stored is not None and given.get("action") == "delete":
        drafts.remove_draft(service, stored.id, revision, by)
        return RedirectResponse("/drafts", HTTPStatus.SEE_OTHER)
    theirs: tuple[Differing, ...] = ()
    problem, status = None, HTTPStatus.OK
    if given.get("action") == "save":
        try:
            if stored is None:
                kept, _ = drafts.create_draft(service, typed, incident, by)
            else:
                kept, _ = drafts.change_draft(service, stored.id, revision, typed, by)
            return RedirectResponse(f"/drafts/{kept.id}?saved=1", HTTPStatus.SEE_OTHER)
        except EditedMeanwhile as error:
            stored = drafts.read_draft(service, str(draft_id))
            theirs, revision = differing(typed, stored.draft), stored.revision
            problem, status = error.message, HTTPStatus(error.status)
        except (BadInput, NotFound) as error:
            problem, status = error.message, HTTPStatus(error.status)
    page = _page(service, stored, typed, _checked(service, typed), incident, revision, theirs, problem)
    return render(request, "draft.html", page, status)


def _stage(
    request: Request, service: Service, tested: BackTest, stored: StoredDraft, checked: DraftCheck | None
) -> Stage:
    caller = getattr(request.state, "caller", ANYONE)
    tracking, history = tracking_of(service, stored.id), history_of(service, stored.id, _HISTORY)
    return Stage(
        sound=checked is not None and checked.sound,
        others=not may_approve(service, stored, caller.name),
        tracking=tracking,
        tested=tested,
        stale=is_stale(tested, stored),
        retriage=len(to_retriage(service, stored, tested, tracking)),
        history=change_lines(history, language(request)),
        undoes=bool(history) and can_undo(history[0]),
    )


def _checked(service: Service, typed: Draft) -> DraftCheck | None:
    """Returns the problems of a draft, or None if it is too long to check."""
    return drafts.check(service, typed) if max(map(len, values_of(typed).values())) <= drafts.MAX_TEXT else None


def _page(
    service: Service,
    stored: StoredDraft | None,
    typed: Draft,
    checked: DraftCheck | None,
    incident: str | None = None,
    revision: int | None = None,
    theirs: tuple[Differing, ...] = (),
    problem: str | None = None,
    saved: bool = False,
) -> DraftPage:
    own = stored.incident if stored else incident
    return DraftPage(
        values=values_of(typed),
        checked=checked,
        stored=stored,
        incident=own,
        slots=_slots(service, own),
        revision=revision if revision is not None else stored.revision if stored else 0,
        theirs=theirs,
        problem=problem,
        saved=saved,
    )


def _slots(service: Service, incident: str | None) -> dict[str, str]:
    """Returns the slots that an incident's log fills; none if the incident was deleted."""
    try:
        return drafts.propose(service, incident).slots if incident else {}
    except (BadInput, NotFound):
        return {}


def _latest(service: Service, group_id: str) -> str:
    """Returns the id of a group's latest incident. Raises NotFound."""
    group = read_group(service, group_id)
    latest = latest_incidents(service, [group.id]).get(group.id)
    if latest is None:
        raise NotFound("the group has no incident to draft an entry from", group=group.id)
    return latest.id
