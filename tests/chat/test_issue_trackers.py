"""GitHub and Jira as trackers, against fakes that refuse what those refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from tests.chat.notices import hostile, usual
from tests.trackers import (
    GITHUB_TOKEN,
    JIRA_TOKEN,
    JIRA_USER,
    PROJECT,
    REPO,
    FakeGitHub,
    FakeJira,
    Tracker,
    fake_github,
    fake_jira,
)
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.github import GitHub
from torchtriage.chat.issue_tracker import IssueTracker
from torchtriage.chat.jira import Jira
from torchtriage.chat.outbound_http import Outgoing
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind, Thread

OUTGOING = Outgoing(private=True)
BOTH = ("github", "jira cloud", "jira data center")


@pytest.fixture(params=BOTH)
def fake(request: pytest.FixtureRequest) -> Iterator[Tracker]:
    with fake_github() if request.param == "github" else fake_jira(request.param == "jira cloud") as running:
        yield running


def sender(fake: Tracker, token: str = "", place: str = "") -> IssueTracker:
    if isinstance(fake, FakeGitHub):
        return GitHub(OUTGOING, place or REPO, token or GITHUB_TOKEN, fake.url)
    assert isinstance(fake, FakeJira)
    return Jira(OUTGOING, f"{fake.url}/", place or PROJECT, "Bug", token or JIRA_TOKEN, JIRA_USER if fake.cloud else "")


def only(fake: Tracker) -> str:
    (name,) = fake.issues
    return name


def test_a_new_group_gets_one_issue_that_leads_back(fake: Tracker) -> None:
    thread = sender(fake).send(usual(), "k")
    assert thread == Thread(sender(fake).place, only(fake), "17")
    issue = fake.issues[only(fake)]
    assert issue.title == "The GPU ran out of memory"
    assert "https://triage.example.org/groups/7" in issue.text
    assert "CUDA out of memory. Tried to allocate 2.00 GiB." in issue.text
    assert "nvidia-smi" in issue.text


@pytest.mark.parametrize("indexed", [True, False])
def test_an_issue_whose_number_was_lost_is_found_again(fake: Tracker, indexed: bool) -> None:
    """The call is done, and its answer never comes: as where the process is killed before it keeps the number."""
    if not indexed and isinstance(fake, FakeJira):
        pytest.skip("Jira lists issues by its search alone")
    fake.lost, fake.indexed = 1, indexed
    with pytest.raises(Undelivered) as refused:
        sender(fake).send(usual(), "k")
    assert refused.value.passing
    other = usual(group="8", group_url="https://triage.example.org/groups/8")
    assert sender(fake).send(other, "other") is not None
    thread = sender(fake).send(usual(), "k")
    assert thread is not None
    assert (len(fake.issues), thread.ts) == (2, next(iter(fake.issues)))


def test_a_regression_is_one_comment_and_opens_it_again(fake: Tracker) -> None:
    tracker = sender(fake)
    thread = tracker.send(usual(), "k")
    tracker.send(usual(kind=NoticeKind.STATUS, status=GroupStatus.RESOLVED), "k2", thread)
    assert fake.issues[only(fake)].closed
    back = usual(kind=NoticeKind.REGRESSED, url="https://triage.example.org/incidents/170")
    fake.lost = 1
    with pytest.raises(Undelivered):
        tracker.send(back, "k3", thread)
    assert tracker.send(back, "k3", thread) == thread
    (comment,) = fake.issues[only(fake)].comments
    assert "Regressed after it was resolved" in comment
    assert not fake.issues[only(fake)].closed
    tracker.send(usual(kind=NoticeKind.REGRESSED), "k4", thread)  # incident 17, which /170 does not name
    assert len(fake.issues[only(fake)].comments) == 2


def test_an_ignored_group_is_closed_as_not_planned() -> None:
    with fake_github() as fake:
        thread = sender(fake).send(usual(), "k")
        for status, reason in ((GroupStatus.IGNORED, "not_planned"), (GroupStatus.OPEN, "reopened"), (GroupStatus.RESOLVED, "completed")):  # fmt: skip
            sender(fake).send(usual(kind=NoticeKind.STATUS, status=status), "k", thread)
            assert fake.issues[only(fake)].reason == reason


def test_an_issue_that_people_closed_stays_closed(fake: Tracker) -> None:
    thread = sender(fake).send(usual(), "k")
    fake.issues[only(fake)].closed = True
    sender(fake).send(usual(kind=NoticeKind.COUNT, over={"count": 10.0}), "k2", thread)
    assert fake.issues[only(fake)].closed
    assert "Seen 10 times" in fake.issues[only(fake)].comments[0]


def test_after_a_deleted_issue_the_next_alert_opens_another(fake: Tracker) -> None:
    thread = sender(fake).send(usual(), "k")
    fake.issues.clear()
    assert sender(fake).send(usual(kind=NoticeKind.STATUS, status=GroupStatus.RESOLVED), "k2", thread) is None
    assert not fake.issues
    assert sender(fake).send(usual(kind=NoticeKind.REGRESSED), "k3", thread) == thread
    assert len(fake.issues) == 1


def test_a_wrong_token_is_given_up_and_a_limit_waits(fake: Tracker) -> None:
    with pytest.raises(Undelivered, match=r"answered 401: (Bad credentials|You are not authenticated\.)$") as refused:
        sender(fake, "another").send(usual(), "k")
    assert not refused.value.passing
    fake.limited = 1
    with pytest.raises(Undelivered) as limited:
        sender(fake).send(usual(), "k")
    assert (limited.value.passing, limited.value.wait) == (True, 17)
    assert not fake.issues


def test_a_test_reads_the_project_and_opens_nothing(fake: Tracker) -> None:
    assert sender(fake).send(usual(kind=NoticeKind.TEST), "k") is None
    assert not fake.issues
    with pytest.raises(Undelivered, match="404"):
        sender(fake, place="acme/other").send(usual(kind=NoticeKind.TEST), "k")


def test_a_workflow_without_a_done_status_is_reported() -> None:
    with fake_jira() as fake:
        thread = sender(fake).send(usual(), "k")
        del fake.workflow["Done"]
        with pytest.raises(Undelivered, match="Jira: no transition moves ML-1 to a status of the category Done"):
            sender(fake).send(usual(kind=NoticeKind.STATUS, status=GroupStatus.RESOLVED), "k2", thread)


@pytest.mark.parametrize(("done", "expected"), [("", "Won't do"), ("resolved", "Resolved"), ("Nowhere", "Won't do")])
def test_a_workflow_with_several_ends_takes_the_one_of_the_settings(done: str, expected: str) -> None:
    with fake_jira() as fake:
        fake.workflow = {"To Do": "new", "Won't do": "done", "Resolved": "done"}
        tracker = Jira(OUTGOING, fake.url, PROJECT, "Bug", JIRA_TOKEN, JIRA_USER, done)
        thread = tracker.send(usual(), "k")
        tracker.send(usual(kind=NoticeKind.STATUS, status=GroupStatus.RESOLVED), "k2", thread)
        assert fake.issues[only(fake)].reason == expected


@pytest.mark.parametrize(
    ("api", "page"),
    [
        ("https://api.github.com", "https://github.com/acme/train/issues/4"),
        ("https://git.example.org/api/v3/", "https://git.example.org/acme/train/issues/4"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com/acme/train/issues/4"),
    ],
)
def test_where_people_read_an_issue(api: str, page: str) -> None:
    assert GitHub(OUTGOING, REPO, "t", api).address_of(Thread(REPO, "4")) == page


def texts_of(make: Callable[[], IssueTracker], notice: Notice) -> str:
    return make().text_of(notice, "torchtriage0123")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(hostile())
def test_nothing_in_a_log_pings_links_or_ends_a_block(notice: Notice) -> None:
    text = texts_of(lambda: GitHub(OUTGOING, REPO, "t", "https://api.github.com"), notice)
    assert len(text) < 65536
    prose = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    links = "[Open](https://triage.example.org/incidents/17) · [Similar incidents](https://triage.example.org/groups/7)"
    zh = links.replace("Open", "打开").replace("Similar incidents", "同类故障")
    prose = prose.replace(links, "").replace(zh, "")
    assert not re.search(r"(?<!&)[@#](?!&#8203;)", prose)
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[<`]", prose)
    wiki = texts_of(lambda: Jira(OUTGOING, "https://x.atlassian.net", PROJECT, "Bug", "t"), notice)
    assert wiki.count("{noformat}") % 2 == 0
    outside = re.sub(r"\{noformat\}\n.*?\n\{noformat\}", "", wiki, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)[\[{!](?!Open\||打开\||Similar incidents\||同类故障\|)", outside)
