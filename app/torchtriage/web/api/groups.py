"""/api/v1/groups: groups of incidents, their issues, merging and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from torchtriage.domain.group import GroupChange, GroupIssue
from torchtriage.domain.json_form import fields_form
from torchtriage.services import groups, issues
from torchtriage.web.api.request_models import GroupChangeBody, GroupsQuery, IssueBody, MergeBody, SplitBody
from torchtriage.web.api.response_models import GroupForm, GroupsForm, IssuesForm, page_of
from torchtriage.web.authentication import Reader, Writer
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1/groups", tags=["groups"])
_ONE: dict[int | str, dict[str, Any]] = {200: {"model": GroupForm}}


@router.get("", responses={200: {"model": GroupsForm}, **error_responses(400, 422)})
def list_groups(query: Annotated[GroupsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """List groups in the order of `sort`. To get the fingerprints of a group, read that group."""
    page = groups.list_groups(service, query.wanted(), query.limit, query.cursor)
    return Answer(page_of(page, service.settings.base_url))


@router.get("/{group}", responses={**_ONE, **error_responses(404, 422)})
def read_group(group: str, service: ServiceDep, _: Reader) -> Response:
    """Read one group. Its incidents are at `/api/v1/incidents?group=`. The id of a merged group returns the group that
    it was merged into. A fingerprint returns the group it belongs to."""
    return Answer(groups.read_group(service, group).as_dict(service.settings.base_url))


@router.patch("/{group}", responses={**_ONE, **error_responses(400, 403, 404, 413, 422)})
def change_group(group: str, change: GroupChangeBody, service: ServiceDep, caller: Writer) -> Response:
    """Set the status, owner or note of a group, or mute it. Fields that are not given do not change."""
    mute = timedelta(days=change.mute_days) if change.mute_days is not None else None
    wanted = GroupChange(change.status, change.owner, change.note, mute)
    changed = groups.change_group(service, group, wanted, caller.name)
    return Answer(changed.as_dict(service.settings.base_url))


@router.get("/{group}/issues", responses={200: {"model": IssuesForm}, **error_responses(404, 422)})
def list_issues(group: str, service: ServiceDep, _: Reader) -> Response:
    """List the configured issue trackers, each with the URL of the group's issue there, or null."""
    return Answer(_issues(issues.issues_of(service, group)))


@router.post(
    "/{group}/issues",
    status_code=202,
    responses={202: {"model": IssuesForm}, **error_responses(400, 403, 404, 413, 422)},
)
def create_issue(group: str, body: IssueBody, service: ServiceDep, caller: Writer) -> Response:
    """Create an issue about the group, unless it already has one there. The tracker is called after the answer; until
    then, `pending` is true."""
    return Answer(_issues(issues.ask_for_issue(service, group, body.channel, caller.name)), 202)


@router.post("/{group}/merge", responses={**_ONE, **error_responses(400, 403, 404, 409, 413, 422)})
def merge_groups(group: str, body: MergeBody, service: ServiceDep, caller: Writer) -> Response:
    """Merge other groups into this one, including their later incidents. `split` undoes this."""
    return Answer(groups.merge_groups(service, group, body.groups, caller.name).as_dict(service.settings.base_url))


@router.post("/{group}/split", responses={**_ONE, **error_responses(400, 403, 404, 409, 413, 422)})
def split_group(group: str, body: SplitBody, service: ServiceDep, caller: Writer) -> Response:
    """Undo the merge of `groups` into this one. Or move the current and later incidents whose property `by` is `value`
    (such as one of the group's fingerprints) to a new group, and return that group. Merging it back undoes this."""
    if body.by and body.value:
        changed = groups.split_group(service, group, body.by, body.value, caller.name)
    else:
        changed = groups.unmerge_groups(service, group, body.groups, caller.name)
    return Answer(changed.as_dict(service.settings.base_url))


def _issues(found: Sequence[GroupIssue]) -> dict[str, Any]:
    return {"items": [fields_form(issue) for issue in found], "next": None}
