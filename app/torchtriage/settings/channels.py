"""Alert channels and the rules that select them, from the settings and from a TOML file of rules.

[channels.vision]                 # a channel in addition to those of the settings
kind = "feishu"
url = "https://open.feishu.cn/open-apis/bot/v2/hook/…"

[[rules]]                         # the first rule that fits, from the top, decides
when = {entry = "dataloader.*", cluster = ["blue", "green"], label = {team = "vision"}}
to = ["vision"]
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from torchtriage.errors import SettingError
from torchtriage.settings import value_parsers
from torchtriage.settings.options import PREFIX, Settings

# The keys of a channel by kind, besides `kind`. The first one is required.
KINDS = {
    "slack": ("channel",),
    "slack-webhook": ("url",),
    "feishu": ("url", "secret"),
    "dingtalk": ("url", "secret"),
    "wecom": ("url",),
    "webhook": ("url", "secret"),
    "email": ("to",),
    "apprise": ("urls",),
    "alertmanager": ("url", "user", "secret"),
    "otlp": ("url", "headers"),
    "github": ("repo",),
    "jira": ("project", "type"),
}
TRACKERS = ("github", "jira")
WHEN = ("entry", "owner", "outcome", "cluster", "queue", "user", "host", "job_name")
_LABEL = "label."


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """One destination of alerts. Which fields are set depends on the kind."""

    name: str
    kind: str
    url: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    channel: str = ""
    to: tuple[str, ...] = ()
    urls: tuple[str, ...] = field(default=(), repr=False)
    user: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    repo: str = ""
    project: str = ""
    type: str = "Bug"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that selects channels for an alert.

    `when` maps a property to patterns with `*`. Each property must fit one of its patterns. `to` names the channels.
    """

    when: dict[str, tuple[str, ...]]
    to: tuple[str, ...]

    def fits(self, facts: dict[str, str | None]) -> bool:
        return all(
            any(fnmatchcase(facts.get(name) or "", pattern) for pattern in patterns)
            for name, patterns in self.when.items()
        )


@dataclass(frozen=True, slots=True)
class Routes:
    """All channels and rules."""

    channels: tuple[ChannelOptions, ...]
    rules: tuple[Rule, ...]

    def to(self, facts: dict[str, str | None]) -> tuple[str, ...]:
        """Returns the names of the channels for an alert, from the first rule that fits. Labels are facts named
        `label.NAME`."""
        return next((rule.to for rule in self.rules if rule.fits(facts)), ())


def routes_of(settings: Settings) -> Routes:
    """Returns the channels and rules of the settings. Without rules, every alert goes to every channel, but to issue
    trackers only if TRIAGE_ISSUES is `new`. Raises SettingError, one line that says what is wrong."""
    channels = {options.name: options for options in _of_settings(settings)}
    if settings.routes_file is None:
        return Routes(tuple(channels.values()), (_everywhere(channels, settings),))
    try:
        content = _read(settings.routes_file)
        for name, given in _table(content, "channels").items():
            channels[name] = _channel(name, given, settings)
        rules = content.get("rules", [])
        if not isinstance(rules, list):
            raise ValueError("rules: write each one as [[rules]]")
        found = tuple(_rule(number, rule, channels) for number, rule in enumerate(rules, 1))
    except ValueError as error:
        raise SettingError(f"{PREFIX}ROUTES_FILE: {error}", setting=f"{PREFIX}ROUTES_FILE") from None
    return Routes(tuple(channels.values()), found or (_everywhere(channels, settings),))


def _everywhere(channels: dict[str, ChannelOptions], settings: Settings) -> Rule:
    return Rule(
        {}, tuple(name for name, one in channels.items() if one.kind not in TRACKERS or settings.issues == "new")
    )


def _of_settings(settings: Settings) -> list[ChannelOptions]:
    bot = settings.slack_bot_token and settings.slack_channel
    found = [
        ChannelOptions("slack", "slack", channel=settings.slack_channel) if bot else None,
        ChannelOptions("slack", "slack-webhook", settings.slack_webhook_url)
        if settings.slack_webhook_url and not bot
        else None,
        ChannelOptions("email", "email", to=settings.email_to) if settings.smtp_url else None,
        ChannelOptions("apprise", "apprise", urls=settings.apprise_urls) if settings.apprise_urls else None,
        ChannelOptions(
            "alertmanager",
            "alertmanager",
            settings.alertmanager_url,
            settings.alertmanager_token,
            user=settings.alertmanager_user,
        )
        if settings.alertmanager_url
        else None,
        ChannelOptions("otlp", "otlp", settings.otlp_endpoint, headers=settings.otlp_headers)
        if settings.otlp_endpoint
        else None,
        ChannelOptions("mlflow", "mlflow", settings.mlflow_url) if settings.mlflow_url else None,
        ChannelOptions("wandb", "wandb", settings.wandb_url) if settings.wandb_url else None,
        ChannelOptions("github", "github", repo=settings.github_repo) if settings.github_repo else None,
        ChannelOptions("jira", "jira", project=settings.jira_project, type=settings.jira_type)
        if settings.jira_project
        else None,
    ]
    for kind in ("feishu", "dingtalk", "wecom", "webhook"):
        url = getattr(settings, "webhook_url" if kind == "webhook" else f"{kind}_webhook_url")
        found.append(ChannelOptions(kind, kind, url, getattr(settings, f"{kind}_secret", "")) if url else None)
    return [options for options in found if options]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{path}: {error}") from None
    unknown = sorted(set(content) - {"channels", "rules"})
    if unknown:
        raise ValueError(f"{unknown[0]}: unknown key; use channels and rules")
    return content


def _channel(name: str, given: Any, settings: Settings) -> ChannelOptions:
    where = f"channel {name}"
    if not isinstance(given, dict) or given.get("kind") not in KINDS:
        raise ValueError(f"{where}: kind must be one of {', '.join(KINDS)}")
    kind = given["kind"]
    needed, *_ = takes = KINDS[kind]
    value_parsers.only_known_keys(where, given, ("kind", *takes))
    if not given.get(needed):
        raise ValueError(f"{where}: {needed} is missing")
    values = {key: _texts(where, key, value) for key, value in given.items() if key != "kind"}
    if kind == "slack" and not settings.slack_bot_token:
        raise ValueError(f"{where}: it needs {PREFIX}SLACK_BOT_TOKEN; a webhook is of the kind slack-webhook")
    if kind == "email":
        if not settings.smtp_url:
            raise ValueError(f"{where}: it needs {PREFIX}SMTP_URL")
        values["to"] = tuple(value_parsers.mail_address(address) for address in values["to"])
    if kind == "github":
        if not settings.github_token:
            raise ValueError(f"{where}: it needs {PREFIX}GITHUB_TOKEN")
        value_parsers.repository(values["repo"][0])
    if kind == "jira" and not (settings.jira_url and settings.jira_token):
        raise ValueError(f"{where}: it needs {PREFIX}JIRA_URL and {PREFIX}JIRA_TOKEN")
    if "url" in values and not values["url"][0].startswith(("https://", "http://")):
        raise ValueError(f"{where}: url does not start with https://")
    single = {key: value[0] for key, value in values.items() if key not in ("to", "urls", "headers")}
    several = {key: value for key, value in values.items() if key in ("to", "urls")}
    headers = value_parsers.headers(",".join(values.get("headers", ())))
    return ChannelOptions(name=name, kind=kind, headers=headers, **single, **several)  # type: ignore[arg-type]


def _rule(number: int, given: Any, channels: dict[str, ChannelOptions]) -> Rule:
    where = f"rule {number}"
    if not isinstance(given, dict) or "to" not in given:
        raise ValueError(f"{where}: to is missing; an empty list alerts nobody")
    value_parsers.only_known_keys(where, given, ("when", "to"))
    to = _texts(where, "to", given["to"])
    for name in to:
        if name not in channels:
            raise ValueError(f"{where}: {name} is not one of the channels {', '.join(channels) or '(there are none)'}")
    when = dict(_table(given, "when", f"{where}: "))
    labels = _table(when, "label", f"{where}: ")
    when.pop("label", None)
    value_parsers.only_known_keys(where, when, (*WHEN, "label"))
    patterns = {name: _texts(where, name, value) for name, value in when.items()}
    patterns |= {_LABEL + name: _texts(where, f"label {name}", value) for name, value in labels.items()}
    return Rule(patterns, to)


def _table(content: dict[str, Any], name: str, where: str = "") -> dict[str, Any]:
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise ValueError(f"{where}{name} is not a table")
    return found


def _texts(where: str, name: str, value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and text.strip() for text in found):
        raise ValueError(f"{where}: {name} is not a string or a list of strings")
    return tuple(found)
