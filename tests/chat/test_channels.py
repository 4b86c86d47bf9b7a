"""Channels and rules, from settings and from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chat.notices import usual
from tests.http_server import Asked, Told, serving
from torchtriage.chat.apprise import ThroughApprise
from torchtriage.chat.channels import open_channels
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.mail import Mail
from torchtriage.chat.slack import SlackBot, SlackWebhook
from torchtriage.errors import SettingError
from torchtriage.settings import Settings
from torchtriage.settings.channels import routes_of

HOOK = "https://hooks.slack.com/services/T/B/x"


def settings(folder: Path, rules: str | None = None, **more: Any) -> Settings:
    file = None
    if rules is not None:
        file = folder / "routes.toml"
        file.write_text(rules)
    return Settings(data_dir=folder, routes_file=file, **more)


def test_a_configured_channel_gets_everything(tmp_path: Path) -> None:
    known = settings(
        tmp_path,
        slack_webhook_url=HOOK,
        feishu_webhook_url="https://open.feishu.cn/x",
        dingtalk_webhook_url="https://oapi.dingtalk.com/x",
        wecom_webhook_url="https://qyapi.weixin.qq.com/x",
        webhook_url="https://example.org/x",
        smtp_url="smtps://mail.example.org",
        email_from="a@example.org",
        email_to=("b@example.org",),
    )
    channels = open_channels(known)
    every = {"slack", "feishu", "dingtalk", "wecom", "webhook", "email"}
    assert set(channels.senders) == set(channels.routes.to({})) == every
    assert isinstance(channels.senders["slack"], SlackWebhook)
    assert isinstance(channels.senders["email"], Mail)
    assert "hooks.slack.com" not in repr(known)


def test_the_bot_goes_before_the_webhook(tmp_path: Path) -> None:
    channels = open_channels(settings(tmp_path, slack_webhook_url=HOOK, slack_bot_token="xoxb-1", slack_channel="C1"))
    assert isinstance(channels.senders["slack"], SlackBot)
    assert list(channels.senders) == ["slack"]


def test_nothing_set_is_nowhere(tmp_path: Path) -> None:
    channels = open_channels(settings(tmp_path))
    assert (channels.senders, channels.routes.to({"entry": "cuda.oom"}), channels.slack) == ({}, (), None)


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    rules = """
[channels.vision]
kind = "feishu"
url = "https://open.feishu.cn/open-apis/bot/v2/hook/x"
secret = "s"
[[rules]]
when = {label = {team = "vis*"}, cluster = ["blue", "green"]}
to = ["vision", "slack"]
[[rules]]
when = {owner = "hardware"}
to = []
[[rules]]
when = {entry = "nccl.*"}
to = "slack"
"""
    routes = routes_of(settings(tmp_path, rules, slack_webhook_url=HOOK))
    assert routes.to({"label.team": "vision", "cluster": "green"}) == ("vision", "slack")
    assert routes.to({"label.team": "vision", "cluster": None}) == ()
    assert routes.to({"owner": "hardware", "entry": "nccl.timeout"}) == ()
    assert routes.to({"owner": None, "entry": "nccl.timeout"}) == ("slack",)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("[[rules]]\nto = ['nobody']", "rule 1: nobody is not one of the channels slack"),
        ("[[rules]]\nto = []\n[[rules]]\nwhen = {}", "rule 2: to is missing"),
        ("[[rules]]\nwhen = {team = 'x'}\nto = []", "rule 1: team is unknown"),
        ("[[rules]]\nwhen = {entry = 7}\nto = []", "rule 1: entry is not a string"),
        ("[[rules]]\nwhen = {label = 'x'}\nto = []", "rule 1: label is not a table"),
        ("[[rules]]\nwhen = 'x'\nto = []", "rule 1: when is not a table"),
        ("[[rules]]\ntoo = []", "rule 1: to is missing"),
        ("rules = 7", "rules: write each one as"),
        ("rule = 7", "rule: unknown key"),
        ("[channels.a]\nkind = 'telex'", "channel a: kind must be one of"),
        ("[channels.a]\nkind = 'wecom'", "channel a: url is missing"),
        ("[channels.a]\nkind = 'wecom'\nurl = 'x'", "channel a: url does not start with"),
        ("[channels.a]\nkind = 'wecom'\nurl = 'https://x'\nsecret = 's'", "channel a: secret is unknown"),
        ("[channels.a]\nkind = 'slack'\nchannel = 'C1'", "channel a: it needs TRIAGE_SLACK_BOT_TOKEN"),
        ("[channels.a]\nkind = 'email'\nto = 'a@b'", "channel a: it needs TRIAGE_SMTP_URL"),
        ("[channels]\na = 7", "channel a: kind must be one of"),
        ("[[rules]", "routes.toml"),
    ],
)
def test_a_bad_rule_is_reported_in_one_line_that_names_it(tmp_path: Path, rules: str, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        routes_of(settings(tmp_path, rules, slack_webhook_url=HOOK))
    assert raised.value.message.startswith("TRIAGE_ROUTES_FILE: ")
    assert problem in raised.value.message
    assert "\n" not in raised.value.message


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"TRIAGE_ROUTES_FILE: .*can't be read"):
        routes_of(Settings(data_dir=tmp_path, routes_file=tmp_path / "none.toml"))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise itself
def test_apprise_takes_the_rest(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    asked: list[Asked] = []

    def answer(request: Asked) -> Told:
        asked.append(request)
        return Told(b"", 500 if len(asked) > 1 else 200)

    with serving(answer) as url:
        sender = ThroughApprise((url.replace("http://", "json://"),))
        sender.send(usual(), "k")
        with pytest.raises(Undelivered) as refused:
            sender.send(usual(), "k")
    assert b"The GPU ran out of memory" in asked[0].body
    assert refused.value.passing
    with pytest.raises(SettingError, match=r"channel apprise: .*URL 1 of 1"):
        open_channels(settings(tmp_path, apprise_urls=("nosuchscheme://x",)))
