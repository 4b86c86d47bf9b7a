"""Slack in, over real HTTP in both directions: a Slack of our own drives the service as Slack does."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest
from fastapi.testclient import TestClient

from tests.slack import SECRET, TOKEN, FakeSlack, client, fake_slack, signature, texts
from tests.web.live import serving
from tests.web.logs import OOM
from torchtriage.domain.incident import Incident, IncidentFilter
from torchtriage.services import groups, incidents, tokens
from torchtriage.services.outbox import list_outbox
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.web.app import create_app

pytestmark = pytest.mark.first  # its waiting costs nothing while others compute
TIMEOUT = 120  # seconds, for a busy machine


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as running:
        yield running


def settings(folder: Path, slack: FakeSlack, **more: Any) -> Settings:
    known: dict[str, Any] = {
        "slack_signing_secret": SECRET,
        "slack_bot_token": TOKEN,
        "slack_api_url": f"{slack.url}/api/",
        "allow_private_calls": True,
        "workers": 0,
        "max_log_bytes": 1_000_000,
    }
    return Settings(data_dir=folder, **(known | more))


@pytest.fixture
def service(tmp_path: Path, slack: FakeSlack) -> Iterator[Service]:
    opened = open_service(settings(tmp_path, slack), triage_incident)
    yield opened
    close_service(opened)


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as address:
        yield address


def until(done: Callable[[], Any]) -> Any:
    """Returns the first true result."""
    deadline = time.monotonic() + TIMEOUT
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def answered(slack: FakeSlack, count: int) -> None:
    until(lambda: len(slack.answers) == count)


def only(service: Service) -> Incident:
    (incident,) = incidents.list_incidents(service, IncidentFilter()).items
    return incident


def ended(service: Service) -> bool:
    """Returns whether nothing is left to do."""
    return all(item.state not in ("ready", "waiting") for item in list_outbox(service).items)


def test_a_pasted_log_is_acknowledged_at_once_and_answered_where_slack_says(
    url: str, service: Service, slack: FakeSlack
) -> None:
    answer = slack.command(url, OOM.replace("<", "&lt;").replace(">", "&gt;"))
    assert (answer.status_code, answer.json()["response_type"]) == (200, "ephemeral")
    said = until(lambda: slack.answers)[0]
    assert said["response_type"] == "in_channel"
    assert "The GPU ran out of memory" in texts(said)
    assert "rank 3" in texts(said)
    incident = only(service)
    assert (incident.job.user, incident.job.labels) == ("ann", {"source": "slack", "channel": "ml-help"})
    assert b"".join(service.blobs.chunks(incident.log.sha256)).decode() == OOM.strip() + "\n"


def test_without_a_log_a_form_is_opened_and_what_is_handed_in_there_is_answered(
    url: str, service: Service, slack: FakeSlack
) -> None:
    assert slack.command(url).content == b""
    (view,) = slack.views
    file = slack.share(OOM.encode(), "slurm-4711.out")

    def hand_in(text: str | None, *files: str) -> httpx2.Response:
        values = {"text": {"text": {"type": "plain_text_input", "value": text}},
                  "files": {"files": {"type": "file_input", "files": [{"id": known} for known in files]}}}  # fmt: skip
        filled = view | {"state": {"values": values}}
        return slack.interact(url, {"type": "view_submission", "view": filled})

    empty = hand_in(None).json()
    assert empty["response_action"] == "errors"
    assert list(empty["errors"]) == ["text"]
    assert hand_in("it failed tonight", file).content == b""
    assert "The GPU ran out of memory" in texts(until(lambda: slack.answers)[0])
    assert [stored.name for stored in only(service).log.files] == ["log", "slurm-4711.out"]


def test_a_message_is_triaged_by_its_shortcut_and_answered_in_its_thread(
    url: str, service: Service, slack: FakeSlack
) -> None:
    said = {"ts": "5.5", "user": "U2", "text": f"help! ```{OOM}``` <@U3>"}
    shortcut = {"type": "message_action", "callback_id": "triage_this", "message": said,
                "channel": {"id": "C1", "name": "ml-help"}, "response_url": f"{slack.url}/answer/3"}  # fmt: skip
    assert slack.interact(url, shortcut).content == b""
    until(lambda: slack.messages)
    (message,) = slack.messages
    assert (message.channel, message.thread) == ("C1", "5.5")
    assert "The GPU ran out of memory" in texts(message.payload)
    assert b"help!" not in b"".join(service.blobs.chunks(only(service).log.sha256))
    slack.interact(url, shortcut | {"trigger_id": "14"})  # somebody else presses it too: the answer is there
    until(lambda: ended(service) and len(list_outbox(service).items) == 3)
    assert len(slack.messages) == 1


def test_a_shortcut_where_the_bot_is_not_is_answered_at_the_given_address(
    url: str, service: Service, slack: FakeSlack
) -> None:
    slack.absent.add("C9")
    said = {"ts": "5.5", "user": "U2", "text": OOM}
    slack.interact(url, {"type": "message_action", "callback_id": "triage_this", "message": said,
                         "channel": {"id": "C9"}, "response_url": f"{slack.url}/answer/3"})  # fmt: skip
    assert "The GPU ran out of memory" in texts(until(lambda: slack.answers)[0])
    slack.interact(url, {"type": "message_action", "callback_id": "triage_this", "message": {"ts": "6.6", "text": ""},
                         "channel": {"id": "C9"}, "response_url": f"{slack.url}/answer/4"})  # fmt: skip
    until(lambda: len(slack.answers) == 2)
    assert slack.answers[1]["response_type"] == "ephemeral"
    assert "contains no log" in texts(slack.answers[1])


@pytest.mark.parametrize("name", ["run.log", "slurm-17.out", "log.gz", "trainer.7"])
def test_a_log_dropped_in_a_thread_is_answered_there_once(
    url: str, service: Service, slack: FakeSlack, name: str
) -> None:
    content = gzip.compress(OOM.encode()) if name.endswith("gz") else OOM.encode()
    kind = "application/gzip" if name.endswith("gz") else "text/plain"
    file = slack.share(content, name, ts="8.8", mimetype=kind)
    slack.files[file]["shares"]["public"]["C1"][0]["thread_ts"] = "7.7"
    happened = {"type": "file_shared", "file_id": file, "user_id": "U1", "channel_id": "C1", "event_ts": "8.9"}
    for retry in range(3):
        headers = {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"} if retry else {}
        assert slack.event(url, happened, "Ev7", **headers).status_code == 200
    until(lambda: slack.messages)
    until(lambda: ended(service))
    assert [(message.channel, message.thread) for message in slack.messages] == [("C1", "7.7")]
    assert len(list_outbox(service).items) == 2
    assert only(service).log.files[0].name.startswith(name.removesuffix(".gz"))


def test_a_mention_with_the_file_of_the_same_message_is_answered_once(
    url: str, service: Service, slack: FakeSlack
) -> None:
    file = slack.share(OOM.encode(), "run.log", ts="8.8")
    mention = {"type": "app_mention", "user": "U1", "channel": "C1", "ts": "8.8",
               "text": "<@UBOT> what is it?", "files": [{"id": file}]}  # fmt: skip
    slack.event(url, mention, "Ev1")
    slack.event(url, {"type": "file_shared", "file_id": file, "user_id": "U1", "channel_id": "C1"}, "Ev2")
    until(lambda: ended(service) and len(list_outbox(service).items) == 3)
    assert [message.thread for message in slack.messages] == ["8.8"]


def test_files_that_are_no_log_or_the_bots_own_are_ignored(url: str, service: Service, slack: FakeSlack) -> None:
    picture = slack.share(b"\x89PNG", "plot.png", mimetype="image/png")
    own = slack.share(OOM.encode(), "report.log", bot_id="B1")
    for number, file in enumerate((picture, own)):
        slack.event(url, {"type": "file_shared", "file_id": file, "user_id": "U1", "channel_id": "C1"}, f"Ev{number}")
    slack.event(url, {"type": "file_shared", "file_id": own, "user_id": "UBOT", "channel_id": "C1"}, "Ev3")
    slack.event(url, {"type": "app_mention", "user": "U2", "bot_id": "B2", "channel": "C1", "text": OOM}, "Ev4")
    until(lambda: ended(service) and len(list_outbox(service).items) == 2)
    assert incidents.list_incidents(service, IncidentFilter()).items == ()
    assert (slack.messages, slack.answers) == ([], [])


def test_a_log_that_is_refused_is_reported_to_its_sender(url: str, service: Service, slack: FakeSlack) -> None:
    huge = slack.share(b"x" * 10, "huge.log", size=2_000_000)
    binary = slack.share(bytes(range(256)) * 50, "core.log")
    gone = slack.share(b"", "gone.log")
    del slack.files[gone]
    for number, file in enumerate((huge, binary, gone)):
        mention = {"type": "app_mention", "user": f"U{number}", "channel": "C1", "ts": "1.1", "files": [{"id": file}]}
        slack.event(url, mention, f"Ev{number}")
    until(lambda: len(slack.messages) == 3)
    said = {message.channel: texts(message.payload) for message in slack.messages}
    assert "larger than" in said["U0"]
    assert "not accepted" in said["U1"]
    assert "file_not_found" in said["U2"]


def test_help_is_answered(url: str, slack: FakeSlack) -> None:
    assert "Paste a log after the command" in texts(slack.command(url, "help").json())
    slack.event(url, {"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.1", "text": "<@UBOT> help"})
    until(lambda: slack.messages)
    assert slack.messages[0].channel == "U1"
    assert "Paste a log after the command" in texts(slack.messages[0].payload)


def test_a_file_that_slack_gives_out_with_a_page_to_log_in_is_no_log(
    url: str, service: Service, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = slack.share(OOM.encode(), "run.log")
    monkeypatch.setattr(slack, "_download", lambda _: FakeSlack()._download("F0"))
    mention = {"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.1", "files": [{"id": file}]}
    slack.event(url, mention)
    assert "a login page" in texts(until(lambda: slack.messages)[0].payload)


def test_slack_being_busy_delays_the_answer_only(url: str, service: Service, slack: FakeSlack) -> None:
    slack.limited, slack.wait = 2, 0
    slack.command(url, OOM)
    assert "The GPU ran out of memory" in texts(until(lambda: slack.answers)[0])


def test_the_address_of_slack_is_proved(url: str, slack: FakeSlack) -> None:
    asked = {"type": "url_verification", "challenge": "3eZbrw1aB10jZcs"}
    answer = slack.send(url, "events", json.dumps(asked).encode(), "application/json")
    assert answer.json() == {"challenge": "3eZbrw1aB10jZcs"}


@pytest.mark.parametrize("path", ["commands", "interactions", "events"])
def test_a_request_without_a_current_signature_is_refused(
    url: str, service: Service, slack: FakeSlack, path: str
) -> None:
    body = urlencode({"text": OOM, "user_id": "U1"}).encode()

    def code(**more: Any) -> str:
        answer = slack.send(url, path, body, "application/x-www-form-urlencoded", **more)
        assert answer.status_code == 401
        found: str = answer.json()["error"]["code"]
        return found

    assert code(secret="another") == "bad_signature"
    assert code(at=time.time() - 400) == "bad_signature"
    assert code(at=time.time() + 400) == "bad_signature"
    assert code(headers={"X-Slack-Request-Timestamp": "now"}) == "bad_signature"
    assert code(headers={"X-Slack-Signature": ""}) == "bad_signature"
    assert client().post(f"{url}/slack/{path}", content=body).status_code == 401
    assert client().post(f"{url}/slack/{path}", content=b"x" * 2_000_000).status_code == 413
    assert list_outbox(service).items == ()


def test_a_changed_body_is_refused_and_the_same_request_does_nothing_twice(
    url: str, service: Service, slack: FakeSlack
) -> None:
    answer = slack.command(url, OOM)
    headers = dict(answer.request.headers)
    changed = client().post(f"{url}/slack/commands", content=answer.request.content + b"&text=x", headers=headers | {"content-length": str(len(answer.request.content) + 7)})  # fmt: skip
    assert changed.status_code == 401
    for _ in range(3):
        client().post(f"{url}/slack/commands", content=answer.request.content, headers=headers)
    until(lambda: slack.answers and ended(service))
    assert len(slack.answers) == 1
    assert len(list_outbox(service).items) == 2


def test_buttons_do_what_they_say(url: str, service: Service, slack: FakeSlack) -> None:
    slack.command(url, OOM)
    alert = until(lambda: slack.answers)[0]
    incident = only(service)
    assert incident.group is not None
    for action in ("mute", "right", "wrong", "resolve"):
        before = len(slack.answers)
        assert slack.press(url, alert, action).status_code == 200
        answered(slack, before + 1)
        assert slack.answers[-1]["response_type"] == "ephemeral"
    assert slack.press(url, alert, "open").content == b""  # a link: Slack tells of it all the same
    group = groups.read_group(service, incident.group.id)
    assert group.status == "resolved"
    assert group.muted_until is not None
    told = incidents.read_incident(service, incident.id).feedback
    assert [(said.verdict, said.by) for said in told] == [("right", "slack:ann"), ("wrong", "slack:ann")]
    trail = tokens.changes(service.database, ChangeFilter(f"group {group.id}"), 10).items
    assert [(change.by, change.action) for change in trail] == [("slack:ann", "change")] * 2


def test_a_button_of_something_that_is_gone_says_so(url: str, service: Service, slack: FakeSlack) -> None:
    slack.command(url, OOM)
    alert = until(lambda: slack.answers)[0]
    incidents.forget_incident(service, only(service).id, "ann")
    slack.press(url, alert, "right")
    until(lambda: len(slack.answers) == 2)
    assert "no longer exists" in texts(slack.answers[1])


def test_without_a_bot_there_are_commands_and_no_forms(tmp_path: Path, slack: FakeSlack) -> None:
    service = open_service(settings(tmp_path, slack, slack_bot_token=""), triage_incident)
    with serving(service) as url:
        assert "needs a bot token" in texts(slack.command(url).json())
        slack.command(url, OOM)
        assert "The GPU ran out of memory" in texts(until(lambda: slack.answers)[0])
    close_service(service)


def test_an_event_that_a_kill_cut_off_is_handled_once_after_the_start(tmp_path: Path, slack: FakeSlack) -> None:
    file = slack.share(OOM.encode(), "run.log", ts="8.8")
    happened = {"type": "file_shared", "file_id": file, "user_id": "U1", "channel_id": "C1"}
    first = open_service(settings(tmp_path, slack), triage_incident)
    with serving(first, posting=False) as url:  # it is acknowledged, and then the process is no more
        assert slack.event(url, happened).status_code == 200
    close_service(first)
    second = open_service(settings(tmp_path, slack), triage_incident)
    with serving(second) as url:
        assert slack.event(url, happened, **{"X-Slack-Retry-Num": "1"}).status_code == 200
        until(lambda: slack.messages)
        until(lambda: ended(second))
    assert [message.thread for message in slack.messages] == ["8.8"]
    close_service(second)


def test_where_slack_is_not_set_up_it_says_so(live_server: Any) -> None:
    for path in ("commands", "interactions", "events"):
        answer = client().post(f"{live_server.url}/slack/{path}", content=b"{}")
        assert answer.status_code == 404
        assert "TRIAGE_SLACK_SIGNING_SECRET" in answer.json()["error"]["message"]


# One of each kind that is handled, with everything that is read of it.
_PERSON = {"id": "U1", "username": "ann", "name": "ann"}
_SAID = {"ts": "5.5", "thread_ts": "5.4", "user": "U2", "text": f"```{OOM}```", "files": [{"id": "F1"}]}
_FILLED = {"text": {"text": {"value": OOM}}, "files": {"files": {"files": [{"id": "F1"}]}}}
_VIEW = {
    "state": {"values": _FILLED},
    "private_metadata": json.dumps({"channel": "C1", "url": "", "user": "U1", "name": "x"}),
}
_CHANNEL = {"id": "C1", "name": "ml-help"}
INTERACTIONS: tuple[dict[str, Any], ...] = (
    {"type": "message_action", "callback_id": "triage_this", "user": _PERSON, "channel": _CHANNEL, "message": _SAID, "message_ts": "5.5", "response_url": "http://127.0.0.1:1/x"},
    {"type": "view_submission", "user": _PERSON, "view": _VIEW},
    {"type": "block_actions", "user": _PERSON, "response_url": "http://127.0.0.1:1/x", "actions": [{"action_id": "mute", "value": "1"}]},
    {"type": "block_actions", "user": _PERSON, "response_url": "", "actions": [{"action_id": "right", "value": "1"}]},
)  # fmt: skip
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "url_verification", "challenge": "3eZ"},
    {"type": "event_callback", "event_id": "Ev1", "authorizations": [{"user_id": "UBOT", "is_bot": True}],
     "event": _SAID | {"type": "app_mention", "channel": "C1"}},
    {"type": "event_callback", "event_id": "Ev2", "event": {"type": "file_shared", "file_id": "F1", "user_id": "U1", "channel_id": "C1"}},
)  # fmt: skip
RUBBISH: tuple[Any, ...] = (None, 7, 10**30, "x", "\ud800", "a\0b", [], ["x"], [{}], {}, {"id": {}})


def spoilt(value: Any) -> Iterator[Any]:
    """Yields the value with each of its parts, and itself, replaced by each kind of rubbish."""
    yield from RUBBISH
    if isinstance(value, dict):
        for name, part in value.items():
            yield {known: other for known, other in value.items() if known != name}
            yield from ({**value, name: other} for other in spoilt(part))
    elif isinstance(value, list):
        for other in spoilt(value[0]):
            yield [other]


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_signed_rubbish_is_the_senders_fault(tmp_path: Path, database_url: str, slack: FakeSlack, step: int) -> None:
    app = create_app(settings(tmp_path, slack, database_url=database_url))
    with TestClient(app, raise_server_exceptions=False) as client:

        def sent(path: str, body: bytes) -> int:
            answer = client.post(f"/slack/{path}", content=body, headers=signature(body, SECRET, time.time()))
            assert answer.status_code in (200, 400), (path, body, answer.text)
            return answer.status_code

        for body in (b"[", b"[]", b"[" * 100_000, b'{"x":' * 20_000, b"9" * 5000, b"NaN", b""):
            assert sent("events", body) == 400
            assert sent("interactions", b"payload=" + quote(body).encode()) == 400
        for body in (b"", b"text=%ff%00", b"text=x&channel_id=%00&user_id=%00&user_name=%ed%a0%80"):
            assert sent("commands", body) == 200
        assert sent("commands", b"text=x&user_name=" + b"x" * 400) == 400
        whole = [
            ("interactions", b"payload=" + quote(json.dumps(payload)).encode())
            for one in INTERACTIONS
            for payload in spoilt(one)
        ]
        whole += [("events", json.dumps(payload).encode()) for one in EVENTS for payload in spoilt(one)]
        statuses = [sent(path, body) for path, body in whole[::step]]
    assert statuses.count(200) > 100 // step
    assert statuses.count(400) > 100 // step


@pytest.mark.parametrize("time", ["9" * 400, "9" * 5000, "-1", "1e3", "0"])
def test_a_time_that_is_none_is_no_signature(url: str, slack: FakeSlack, time: str) -> None:
    headers = {"X-Slack-Request-Timestamp": time}
    assert slack.send(url, "events", b"{}", "application/json", headers).status_code == 401
