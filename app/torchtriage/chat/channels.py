"""Builds all alert channels from the settings. Opens no connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torchtriage.chat.alertmanager import Alertmanager
from torchtriage.chat.apprise import ThroughApprise
from torchtriage.chat.dingtalk import DingTalk
from torchtriage.chat.feishu import Feishu
from torchtriage.chat.github import GitHub
from torchtriage.chat.issue_tracker import IssueTracker
from torchtriage.chat.jira import Jira
from torchtriage.chat.mail import Mail, Server
from torchtriage.chat.mlflow import MLflow
from torchtriage.chat.otlp import OtlpEndpoint, OtlpLogs
from torchtriage.chat.outbound_http import Outgoing
from torchtriage.chat.slack_api import SlackApi
from torchtriage.chat.wandb import WandB
from torchtriage.chat.webhook import Webhook
from torchtriage.chat.wecom import WeCom
from torchtriage.domain.notice import Notice, NoticeKind, Thread
from torchtriage.errors import SettingError
from torchtriage.extras import require
from torchtriage.settings import Settings
from torchtriage.settings.channels import ChannelOptions, Routes, routes_of


class Sender(Protocol):
    """Sends notices to one destination.

    `pace` is the minimum time between two messages, in seconds. `extra_notices` are the kinds of notices that it gets
    besides alerts. If there are any, the group's thread is kept.
    """

    pace: float
    extra_notices: frozenset[NoticeKind]

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """Sends a notice. Returns the group's thread if the destination has threads. Raises Undelivered.

        `key` is the same if the same notice is sent again. `thread` is the group's thread, `first` the notice that
        started it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Channels:
    """All channels. `slack` is the Slack bot, if there is one. `outgoing` makes the calls, also to the response URLs of
    Slack."""

    senders: dict[str, Sender]
    routes: Routes
    outgoing: Outgoing
    slack: SlackApi | None = None

    def trackers(self) -> dict[str, IssueTracker]:
        """Returns the channels that create an issue per group, by name."""
        return {name: one for name, one in self.senders.items() if isinstance(one, IssueTracker)}

    def hearing(self, kind: NoticeKind) -> set[str]:
        """Returns the names of the channels that get notices of this kind."""
        return {name for name, one in self.senders.items() if kind in one.extra_notices}


NOWHERE = Channels({}, Routes((), ()), Outgoing())


def open_channels(settings: Settings, outgoing: Outgoing | None = None) -> Channels:
    """Returns the channels of the settings. Raises SettingError."""
    routes = routes_of(settings)
    outgoing = outgoing or Outgoing(settings.allow_private_calls)
    token = settings.slack_bot_token
    slack = SlackApi(outgoing, token, settings.slack_api_url) if token else None
    senders = {options.name: _sender(options, settings, outgoing, slack) for options in routes.channels}
    return Channels(senders, routes, outgoing, slack)


def _sender(options: ChannelOptions, settings: Settings, outgoing: Outgoing, slack: SlackApi | None) -> Sender:
    buttons = bool(settings.slack_signing_secret)
    if options.kind in ("slack", "slack-webhook"):
        return _slack(options, outgoing, slack, buttons)
    if options.kind == "email":
        return Mail(Server.of(settings.smtp_url), settings.email_from, options.to)
    if options.kind == "apprise":
        return _apprise(options)
    made: dict[str, Callable[[], Sender]] = {
        "feishu": lambda: Feishu(outgoing, options.url, options.secret),
        "dingtalk": lambda: DingTalk(outgoing, options.url, options.secret),
        "wecom": lambda: WeCom(outgoing, options.url),
        "webhook": lambda: Webhook(outgoing, options.url, options.secret),
        "alertmanager": lambda: Alertmanager(
            outgoing,
            options.url,
            settings.alertmanager_hours,
            dict(settings.alertmanager_labels),
            options.secret,
            options.user,
        ),
        "otlp": lambda: OtlpLogs(OtlpEndpoint(outgoing, options.url, options.headers)),
        "mlflow": lambda: MLflow(
            outgoing, options.url, settings.mlflow_token, settings.mlflow_user, settings.mlflow_hosts
        ),
        "wandb": lambda: WandB(outgoing, options.url, settings.wandb_token, settings.wandb_hosts),
        "github": lambda: GitHub(outgoing, options.repo, settings.github_token, settings.github_api_url),
        "jira": lambda: Jira(
            outgoing,
            settings.jira_url,
            options.project,
            options.type,
            settings.jira_token,
            settings.jira_user,
            settings.jira_done,
        ),
    }
    return made[options.kind]()


def _slack(options: ChannelOptions, outgoing: Outgoing, slack: SlackApi | None, buttons: bool) -> Sender:
    require("slack", f"channel {options.name}")
    from torchtriage.chat.slack import SlackBot, SlackWebhook

    if options.kind == "slack-webhook":
        return SlackWebhook(outgoing, options.url, buttons)
    assert slack is not None
    return SlackBot(slack, options.channel, buttons)


def _apprise(options: ChannelOptions) -> Sender:
    require("apprise", f"channel {options.name}")
    try:
        return ThroughApprise(options.urls)
    except ValueError as error:
        raise SettingError(f"channel {options.name}: {error}") from None
