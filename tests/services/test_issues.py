"""Issues about groups, through the outbox and to a GitHub on loopback; on both databases."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.services.logs import OUT_OF_MEMORY, upload
from tests.trackers import GITHUB_TOKEN, REPO, FakeGitHub, Issue, fake_github
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import Job
from torchtriage.domain.notice import SendState
from torchtriage.errors import BadInput
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.groups import change_group, list_groups, merge_groups
from torchtriage.services.issues import ask_for_issue, issues_of
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

OTHER = b"""\
Traceback (most recent call last):
  File "/home/ann/train.py", line 42, in <module>
    frobnicate(batch)
RuntimeError: the frobnicator of layer 7 is out of tune, see @acme/oncall and #12, hf_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2
"""


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as running:
        yield running


def settings(folder: Path, database_url: str, github: FakeGitHub, **more: Any) -> Settings:
    known: dict[str, Any] = {
        "github_repo": REPO,
        "github_token": GITHUB_TOKEN,
        "github_api_url": github.url,
        "allow_private_calls": True,
    }
    return Settings(data_dir=folder, database_url=database_url, workers=0, **(known | more))


@pytest.fixture
def service(tmp_path: Path, database_url: str, github: FakeGitHub) -> Iterator[Service]:
    made = open_service(settings(tmp_path, database_url, github, issues="new"), lambda *_: None, working=False)
    yield made
    close_service(made)


def failed(service: Service, log: bytes = OUT_OF_MEMORY, job: str = "1") -> str:
    incident = accept(service, Job(job_id=job), [upload(log)]).incident_id
    triage_incident(service, incident)
    return incident


def sent(service: Service) -> list[tuple[str, str | None]]:
    """Does all that is due, whatever pauses hold it up -> what was done and what came of it, in its order."""
    done = len(outbox.list_outbox(service).items)
    for count in range(50):
        if not outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=60 * (count + 1))):
            break
    assert not outbox.list_outbox(service, SendState.READY).items
    return [(item.kind, item.problem) for item in outbox.list_outbox(service, limit=max(done, 1)).items][::-1]


def group_of(service: Service) -> str:
    (group,) = list_groups(service, GroupFilter()).items
    return group.id


def only(github: FakeGitHub) -> Issue:
    (issue,) = github.issues.values()
    return issue


def test_a_new_group_gets_an_issue_that_follows_its_status(service: Service, github: FakeGitHub) -> None:
    failed(service)
    assert sent(service) == [("new", None)]
    group = group_of(service)
    (known,) = issues_of(service, group)
    assert (known.channel, known.pending, known.problem) == ("github", False, None)
    assert known.url == f"{github.url}/{REPO}/issues/1"
    failed(service, job="2")
    calls = len(github.calls)
    sent(service)
    assert len(github.calls) == calls  # one more of what is known is no reason to call
    change_group(service, group, GroupChange(GroupStatus.RESOLVED), "ann")
    assert sent(service)[-1] == ("status", None)
    assert only(github).closed
    failed(service, job="3")
    assert sent(service)[-1] == ("regressed", None)
    assert not only(github).closed
    assert "Regressed after it was resolved" in only(github).comments[0]


def test_a_process_that_dies_after_the_call_makes_no_second_issue(service: Service, github: FakeGitHub) -> None:
    failed(service)
    item = outbox.claim(service, datetime.now(UTC) + timedelta(seconds=1))
    assert item is not None
    tracker = service.channels.trackers()["github"]
    with service.database.reading() as session:
        notice, thread, first = outbox._read(session, service, item)
    assert tracker.send(notice, item.key, thread, first) is not None  # and here it is killed
    assert len(github.issues) == 1
    assert sent(service) == [("new", None)]
    assert len(github.issues) == 1
    assert issues_of(service, group_of(service))[0].url == f"{github.url}/{REPO}/issues/1"


def test_without_rules_nobody_gets_an_issue_unasked(tmp_path: Path, database_url: str, github: FakeGitHub) -> None:
    service = open_service(settings(tmp_path, database_url, github), lambda *_: None, working=False)
    failed(service, OTHER)
    sent(service)
    assert not github.calls
    group = group_of(service)
    (asked,) = ask_for_issue(service, group, "github", "ann")
    assert (asked.url, asked.pending) == (None, True)
    ask_for_issue(service, group, "github", "bob")
    assert sent(service) == [("issue", None)]
    assert "hf_a1B2" not in only(github).text
    assert "`" not in only(github).title
    change_group(service, group, GroupChange(GroupStatus.RESOLVED), "ann")
    sent(service)
    assert only(github).closed
    ask_for_issue(service, group, "github", "ann")
    assert len(outbox.list_outbox(service).items) == 2  # there is one
    with pytest.raises(BadInput, match="no such issue tracker is configured"):
        ask_for_issue(service, group, "jira", "ann")
    close_service(service)


def test_the_issue_of_a_merged_group_follows_the_target_group(service: Service, github: FakeGitHub) -> None:
    failed(service)
    failed(service, OTHER)
    sent(service)
    first, second = sorted(list_groups(service, GroupFilter()).items, key=lambda group: int(group.id))
    merge_groups(service, second.id, [first.id], "ann")
    change_group(service, second.id, GroupChange(GroupStatus.RESOLVED), "ann")
    sent(service)
    assert [issue.closed for issue in github.issues.values()] == [True, True]
    failed(service, job="2")
    sent(service)
    assert [issue.closed for issue in github.issues.values()] == [False, False]


def test_a_refusal_is_shown_beside_the_button(tmp_path: Path, database_url: str, github: FakeGitHub) -> None:
    wrong = dataclasses.replace(settings(tmp_path, database_url, github), github_token="old")
    with TestClient(create_app(wrong)) as client:
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        assert client.post("/api/v1/incidents?wait=60", content=OUT_OF_MEMORY).status_code == 201
        group = client.get("/api/v1/groups").json()["items"][0]["id"]
        assert "Create an issue" in client.get(f"/groups/{group}").text
        client.post(f"/groups/{group}/issues", data={"channel": "github"})
        assert client.get(f"/api/v1/groups/{group}/issues").json()["items"][0]["pending"] in (True, False)
        while outbox.list_outbox(service, SendState.READY).items:
            outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=60))
        page = client.get(f"/groups/{group}?lang=zh").text
        assert "创建 issue" in page
        assert "GitHub 返回 401：Bad credentials" in page
        asked = client.post(f"/api/v1/groups/{group}/issues", json={"channel": "nowhere"})
        assert (asked.status_code, asked.json()["error"]["message"]) == (400, "no such issue tracker is configured")
