"""The senders against fakes of the chats on loopback, which answer as those do: 200 with a code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given

from tests.chat.notices import hostile, usual
from tests.http_server import Asked, Told, serving
from tests.slack import TOKEN, FakeSlack, fake_slack
from torchtriage.chat import dingtalk, feishu, webhook, wecom
from torchtriage.chat.channels import Sender
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.dingtalk import DingTalk
from torchtriage.chat.feishu import Feishu
from torchtriage.chat.outbound_http import Outgoing
from torchtriage.chat.plain_text import text
from torchtriage.chat.slack import SlackBot, SlackWebhook
from torchtriage.chat.slack_api import SlackApi, is_slacks
from torchtriage.chat.webhook import Webhook
from torchtriage.chat.wecom import WeCom
from torchtriage.domain.notice import Notice, NoticeKind, Thread

OUTGOING = Outgoing(private=True)
SECRET = "SEC-of-a-robot"


@contextmanager
def robot(check: Callable[[Asked], dict[str, Any]]) -> Iterator[str]:
    with serving(lambda asked: Told(json.dumps(check(asked), ensure_ascii=False).encode())) as url:
        yield url


def codes(code: Any, name: str, words: str = "msg") -> Callable[[Asked], dict[str, Any]]:
    return lambda _: {name: code, words: "said so"}


def test_feishu_is_signed_as_it_asks_for() -> None:
    got: list[dict[str, Any]] = []

    def check(asked: Asked) -> dict[str, Any]:
        payload = json.loads(asked.body)
        key = f"{payload['timestamp']}\n{SECRET}".encode()
        fits = payload["sign"] == base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
        if not fits or abs(time.time() - int(payload["timestamp"])) > 3600:
            return {"code": 19021, "msg": "sign match fail or timestamp is not within one hour from current time"}
        got.append(payload)
        return {"code": 0, "msg": "success", "data": {}}

    with robot(check) as url:
        Feishu(OUTGOING, url, SECRET).send(usual(lang="zh"), "k")
        with pytest.raises(Undelivered, match="19021") as refused:
            Feishu(OUTGOING, url, "another").send(usual(), "k")
    assert not refused.value.passing
    post = got[0]["content"]["post"]["zh_cn"]
    assert "torchtriage" in post["title"]
    assert {"tag": "a", "text": "打开", "href": usual().url} in [line[0] for line in post["content"]]


def test_dingtalk_is_signed_in_its_address() -> None:
    def check(asked: Asked) -> dict[str, Any]:
        query = {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}
        signed = f"{query['timestamp']}\n{SECRET}".encode()
        fits = query["sign"] == base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
        recent = abs(time.time() * 1000 - int(query["timestamp"])) < 3_600_000
        return {
            "errcode": 0 if fits and recent and query["access_token"] == "t" else 310000,
            "errmsg": "sign not match",
        }

    with robot(check) as url:
        DingTalk(OUTGOING, f"{url}/robot/send?access_token=t", SECRET).send(usual(), "k")
        with pytest.raises(Undelivered, match="310000") as refused:
            DingTalk(OUTGOING, f"{url}/robot/send?access_token=t", "another").send(usual(), "k")
    assert not refused.value.passing


@pytest.mark.parametrize(
    ("make", "answer", "passing"),
    [
        (Feishu, codes(19024, "code"), False),
        (Feishu, codes(19001, "code"), False),
        (Feishu, codes(9499, "code"), False),
        (Feishu, codes(11232, "code"), True),
        (Feishu, codes(0, "StatusCode", "StatusMessage"), None),
        (DingTalk, codes(310000, "errcode", "errmsg"), False),
        (DingTalk, codes(130101, "errcode", "errmsg"), True),
        (DingTalk, codes(410100, "errcode", "errmsg"), True),
        (DingTalk, codes(300005, "errcode", "errmsg"), False),
        (WeCom, codes(0, "errcode", "errmsg"), None),
        (WeCom, codes(45009, "errcode", "errmsg"), True),
        (WeCom, codes(93000, "errcode", "errmsg"), False),
        (WeCom, codes(-1, "errcode", "errmsg"), True),
        (WeCom, lambda _: {}, True),
    ],
)
def test_a_code_in_a_200_is_a_failure(
    make: Callable[[Outgoing, str], Sender], answer: Callable[[Asked], dict[str, Any]], passing: bool | None
) -> None:
    with robot(answer) as url:
        sender = make(OUTGOING, f"{url}/x?y=z")
        if passing is None:
            sender.send(usual(), "k")
            return
        with pytest.raises(Undelivered) as refused:
            sender.send(usual(), "k")
    assert refused.value.passing is passing
    assert (refused.value.wait is not None) is passing


@pytest.mark.parametrize(("status", "passing"), [(400, False), (403, False), (404, False), (410, False), (429, True), (500, True), (503, True), (302, False)])  # fmt: skip
def test_each_status_is_temporary_or_permanent(status: int, passing: bool) -> None:
    with serving(lambda _: Told(b"because", status, {"Retry-After": "30"})) as url:
        for sender in (Webhook(OUTGOING, url), SlackWebhook(OUTGOING, url, True), DingTalk(OUTGOING, f"{url}?x=y")):
            with pytest.raises(Undelivered, match=str(status)) as refused:
                sender.send(usual(), "k")
            assert refused.value.passing is passing
            assert refused.value.wait == (30 if passing else None)


@given(hostile())
def test_robots_get_no_more_than_they_take_and_nothing_that_pings(notice: Notice) -> None:
    assert len(json.dumps(feishu.message(notice)).encode()) < 20_000
    assert "<at " not in json.dumps(feishu.message(notice))
    assert len(dingtalk.message(notice)["text"]["content"].encode()) <= 6000
    content = wecom.message(notice)["text"]["content"]
    assert len(content.encode()) <= 2048
    assert notice.url in content
    assert set(wecom.message(notice)) | set(dingtalk.message(notice)) == {"msgtype", "text"}
    assert "torchtriage" in text(notice)


def test_a_webhook_is_signed_and_says_which_notice_it_is() -> None:
    got: list[Asked] = []

    def check(asked: Asked) -> Told:
        got.append(asked)
        return Told(b"")

    with serving(check) as url:
        Webhook(OUTGOING, url, "key").send(usual(), "incident 17 new hook")
    (asked,) = got
    signature = webhook.sign("key", asked.headers["X-Torchtriage-Timestamp"], asked.body)
    assert asked.headers["X-Torchtriage-Signature"] == signature
    assert (asked.headers["Idempotency-Key"], asked.headers["X-Torchtriage-Event"]) == ("incident 17 new hook", "new")
    assert json.loads(asked.body) == {"event": "new", "key": "incident 17 new hook", "over": {}} | usual().document


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as running:
        yield running


def bot(slack: FakeSlack, channel: str = "C1", token: str = TOKEN) -> SlackBot:
    return SlackBot(SlackApi(OUTGOING, token, f"{slack.url}/api/"), channel, True)


def test_the_bot_keeps_a_thread_and_counts_on_in_its_first_message(slack: FakeSlack) -> None:
    sender = bot(slack)
    thread = sender.send(usual(), "k1")
    assert thread == Thread("C1", slack.messages[0].ts, "17")
    sender.send(usual(kind=NoticeKind.REPEAT, count=8), "k2", thread, usual(kind=NoticeKind.REPEAT, count=8))
    assert (len(slack.messages), slack.messages[0].updates) == (1, 1)
    assert "Seen 8 times" in slack.messages[0].payload["text"]
    assert sender.send(usual(kind=NoticeKind.REGRESSED), "k3", thread) == thread
    assert (slack.messages[1].thread, slack.messages[1].payload["reply_broadcast"]) == (thread.ts, True)


def test_a_deleted_thread_is_forgotten_without_a_message(slack: FakeSlack) -> None:
    repeat = usual(kind=NoticeKind.REPEAT)
    assert bot(slack).send(repeat, "k", Thread("C1", "0.1", "17"), repeat) is None
    assert slack.messages == []


@pytest.mark.parametrize(("error", "passing"), [("channel_not_found", False), ("invalid_auth", False), ("internal_error", True), ("ratelimited", True)])  # fmt: skip
def test_each_slack_error_is_temporary_or_permanent(slack: FakeSlack, error: str, passing: bool) -> None:
    slack.errors["chat.postMessage"] = error
    with pytest.raises(Undelivered, match=error) as refused:
        bot(slack).send(usual(), "k")
    assert refused.value.passing is passing


def test_too_many_calls_are_made_later(slack: FakeSlack) -> None:
    slack.limited = 1
    with pytest.raises(Undelivered) as refused:
        bot(slack).send(usual(), "k")
    assert (refused.value.passing, refused.value.wait) == (True, 7)


def test_the_token_goes_to_slacks_own_hosts_only(slack: FakeSlack) -> None:
    api = SlackApi(OUTGOING, TOKEN, f"{slack.url}/api/")
    for url in ("https://evil.example/F1", "https://slack.com.evil.example/", "https://files.slack.com@evil.example/"):
        with pytest.raises(Undelivered, match="not on a Slack host"):
            api.download(url, 10, 10)
    for url in ("https://files.slack.com/files-pri/T1-F1/x.log", "https://slack.com/x", "https://hooks.slack.com/y"):
        assert is_slacks(url)
    assert not is_slacks("http://files.slack.com/x")
