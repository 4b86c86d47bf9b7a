"""The options of the service, read once from environment variables into a frozen Settings object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from torchtriage.data_dir import default_data_dir
from torchtriage.errors import SettingError
from torchtriage.settings import value_parsers
from torchtriage.settings.value_parsers import is_loopback

PREFIX = "TRIAGE_"
_SHOWN = {  # defaults, as a person would write them
    "data_dir": "~/.local/share/torchtriage",
    "max_log_bytes": "20GiB",
    "serve_triages": "yes",
    "triage_memory": "1GiB",
    "oidc_scopes": "read,submit",
    "wrong_logins": "10/minute",
    "alert_unexplained": "yes",
    "alert_counts": "10,100,1000",
    "alert_gpu_hours": "100,1000,10000",
    "otlp_job_bytes": "64MiB",
    "otlp_total_bytes": "2GiB",
    "otlp_metrics": "yes",
    "alertmanager_labels": "severity=warning",
    "allow_private_calls": "no",
}

_NEEDS = (  # pairs: if the first option is set, the second is required
    ("llm_url", "llm_model"),
    ("smtp_url", "email_from"),
    ("smtp_url", "email_to"),
    ("github_repo", "github_token"),
    ("jira_project", "jira_url"),
    ("jira_project", "jira_token"),
    ("mlflow_url", "mlflow_token"),
    ("wandb_url", "wandb_token"),
    ("oidc_issuer", "oidc_client_id"),
    ("oidc_issuer", "public_url"),
)


def option(default: Any, parse: Callable[[str], Any], sentence: str, secret: bool = False) -> Any:
    """Declares an option: its default, the function that parses its text (and raises ValueError), and the sentence that
    documents it."""
    return field(default=default, metadata={"parse": parse, "sentence": sentence}, repr=not secret)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option, with a default that works on a laptop. Its variable is TRIAGE_ and the name in capitals.

    Raises SettingError if a value is invalid, or if two values contradict each other.
    """

    data_dir: Path = field(
        metadata={
            "parse": value_parsers.path,
            "sentence": "The folder for all stored data: database, logs, unfinished uploads.",
        }
    )
    database_url: str = option(
        "",
        value_parsers.url("sqlite:///", "postgresql://", "postgresql+psycopg://"),
        "`sqlite:///FILE` or `postgresql://…`. Default: SQLite in the data folder.",
    )
    blob_url: str = option(
        "",
        value_parsers.blob_url,
        "Where logs are stored: a folder or `s3://BUCKET/PREFIX`. Default: `logs` in the data folder.",
    )
    knowledge_dirs: tuple[Path, ...] = option(
        (),
        value_parsers.paths,
        "More folders of entries, separated by `:`; an entry in one of them replaces the built-in entry with "
        "the same id.",
    )
    max_log_bytes: int = option(20 * 2**30, value_parsers.size, "The largest log accepted, after decompression.")
    retention_days: int = option(
        0,
        value_parsers.number(0, 36500),
        "Incidents and their logs are deleted after this many days; 0 keeps them forever.",
    )
    workers: int = option(
        2,
        value_parsers.number(0, 64),
        "How many processes triage logs; 0: threads of the service itself triage them.",
    )
    serve_triages: bool = option(
        True,
        value_parsers.yes_or_no,
        "`no`: `torchtriage serve` leaves all triage to `torchtriage worker`; Postgres only.",
    )
    worker_metrics_port: int = option(
        0,
        value_parsers.number(0, 65535),
        "The port on TRIAGE_HOST where `torchtriage worker` serves Prometheus metrics, without tokens; 0: none.",
    )
    triage_seconds: int = option(900, value_parsers.number(1, 86400), "The time limit of one triage, in seconds.")
    triage_memory: int = option(2**30, value_parsers.size, "The memory limit of one triage.")
    auth: str = option(
        "none",
        value_parsers.one_of("none", "tokens"),
        "`none`: anyone who can reach the port; only on a loopback address. `tokens`: callers with a token.",
    )
    oidc_issuer: str = option(
        "",
        value_parsers.issuer,
        "The issuer URL of an OpenID Connect provider, for logins to the page.",
    )
    oidc_client_id: str = option("", str.strip, "This service's client ID at the provider.")
    oidc_client_secret: str = option("", str.strip, "The client secret, if there is one.", secret=True)
    oidc_claim: str = option("groups", str.strip, "The claim of the ID token that lists a user's groups.")
    oidc_group_scopes: tuple[tuple[str, frozenset[str]], ...] = option(
        (),
        value_parsers.group_scopes,
        "The scopes of each group, such as `ml-admins=admin; research=submit,read,write`.",
    )
    oidc_scopes: frozenset[str] = option(
        frozenset({"submit", "read"}), value_parsers.scopes, "The scopes of every user who can log in, or `none`."
    )
    rate_limit: str = option(
        "", value_parsers.rate, "The rate limit of one token, such as `600/minute`. Default: none."
    )
    wrong_logins: str = option("10/minute", value_parsers.rate, "The rate limit of failed logins from one address.")
    trusted_proxies: tuple[str, ...] = option(
        (),
        value_parsers.networks,
        "Addresses or networks of proxies, separated by commas; `X-Forwarded-For` is trusted only from these.",
    )
    host: str = option("127.0.0.1", str.strip, "The address to listen on.")
    port: int = option(8000, value_parsers.number(0, 65535), "The port to listen on; 0 picks a free one.")
    public_url: str = option(
        "",
        value_parsers.url("http://", "https://"),
        "The URL at which people reach the web page. Default: host and port.",
    )
    slack_webhook_url: str = option(
        "", value_parsers.url("https://", "http://"), "A Slack incoming webhook that receives alerts.", secret=True
    )
    slack_signing_secret: str = option(
        "",
        str.strip,
        "The Slack app's signing secret, which turns on commands, files and buttons at `/slack/…`.",
        secret=True,
    )
    slack_bot_token: str = option(
        "",
        value_parsers.begins("xoxb-"),
        "The Slack app's bot token, for threads, counters, forms and files.",
        secret=True,
    )
    slack_channel: str = option("", str.strip, "The Slack channel for the bot's alerts, such as `C0123ABCD`.")
    slack_api_url: str = option(
        "https://slack.com/api/",
        value_parsers.url("https://", "http://"),
        "The base URL of Slack's Web API; change it for GovSlack.",
    )
    feishu_webhook_url: str = option(
        "", value_parsers.url("https://", "http://"), "A 飞书 (Lark) custom bot that receives alerts.", secret=True
    )
    feishu_secret: str = option("", str.strip, "The 飞书 bot's signing secret, if there is one.", secret=True)
    dingtalk_webhook_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "A 钉钉 (DingTalk) custom bot that receives alerts.",
        secret=True,
    )
    dingtalk_secret: str = option("", str.strip, "The 钉钉 bot's signing secret (`SEC…`).", secret=True)
    wecom_webhook_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "A 企业微信 (WeCom) group bot that receives alerts.",
        secret=True,
    )
    webhook_url: str = option(
        "", value_parsers.url("https://", "http://"), "A URL that receives alerts as JSON.", secret=True
    )
    webhook_secret: str = option("", str.strip, "The key that signs these requests.", secret=True)
    smtp_url: str = option(
        "",
        value_parsers.smtp_url,
        "The mail server: `smtps://USER:PASSWORD@HOST`, `smtp://…` with STARTTLS, `smtp+plain://…` without TLS.",
        secret=True,
    )
    email_from: str = option("", value_parsers.mail_address, "The sender of alert mails.")
    email_to: tuple[str, ...] = option(
        (), value_parsers.mail_addresses, "The recipients of alert mails, separated by commas."
    )
    apprise_urls: tuple[str, ...] = option(
        (),
        value_parsers.words,
        "Apprise URLs of other services that receive alerts, separated by spaces (needs the extra `apprise`).",
        secret=True,
    )
    alertmanager_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "The base URL of an Alertmanager, or of a service with the same API, that receives alerts.",
        secret=True,
    )
    alertmanager_user: str = option(
        "", str.strip, "The user for basic authentication at Alertmanager; empty: the token is a bearer token."
    )
    alertmanager_token: str = option("", str.strip, "The password of that user, or a bearer token.", secret=True)
    alertmanager_hours: int = option(
        24, value_parsers.number(1, 8760), "How many hours an alert fires after the group's latest incident."
    )
    alertmanager_labels: tuple[tuple[str, str], ...] = option(
        (("severity", "warning"),),
        value_parsers.labels,
        "The labels of every alert in Alertmanager, such as `severity=warning,team=ml`.",
    )
    github_repo: str = option(
        "", value_parsers.repository, "The GitHub repository in which issues are created for groups, as `OWNER/NAME`."
    )
    github_token: str = option(
        "", str.strip, "The GitHub token that reads and writes the issues of that repository.", secret=True
    )
    github_api_url: str = option(
        "https://api.github.com",
        value_parsers.url("https://", "http://"),
        "The base URL of GitHub's REST API; `https://HOST/api/v3` for GitHub Enterprise Server.",
    )
    jira_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "The URL of the Jira site (Cloud or Data Center) in which issues are created for groups.",
    )
    jira_project: str = option("", str.strip, "The key of the Jira project.")
    jira_type: str = option("Bug", str.strip, "The type of the issues in Jira.")
    jira_done: str = option(
        "", str.strip, "The status that closes an issue in Jira. Default: the first one in the category Done."
    )
    jira_user: str = option(
        "", str.strip, "The e-mail address of the account of a Jira Cloud API token; empty for Data Center."
    )
    jira_token: str = option(
        "", str.strip, "The API token of Jira Cloud, or the personal access token of Data Center.", secret=True
    )
    issues: str = option(
        "asked",
        value_parsers.one_of("asked", "new"),
        "`asked`: create an issue for a group only on request on its page or by a routing rule. `new`: create "
        "one for each new group.",
    )
    routes_file: Path | None = option(  # noqa: RUF009  like the options around it
        None, value_parsers.path, "A TOML file of routing rules for alerts."
    )
    links_file: Path | None = option(  # noqa: RUF009  like the options around it
        None, value_parsers.path, "A TOML file of links from incidents to logs and metrics in other systems."
    )
    alert_language: str = option(
        "en", value_parsers.one_of("en", "zh"), "The language of alerts and of replies in chats."
    )
    join_seconds: int = option(
        2700,
        value_parsers.number(0, 86400),
        "How many seconds after the first report of a run the reports of its other nodes still join that "
        "incident; 0: never.",
    )
    alert_unexplained: bool = option(True, value_parsers.yes_or_no, "Whether unexplained failures are alerted too.")
    alert_counts: tuple[int, ...] = option(
        (10, 100, 1000), value_parsers.counts, "Alert again when a group reaches this many incidents; `none`: never."
    )
    alert_gpu_hours: tuple[int, ...] = option(
        (100, 1000, 10000),
        value_parsers.counts,
        "Alert again when a group has cost this many GPU hours; `none`: never.",
    )
    otlp_silent_seconds: int = option(
        600,
        value_parsers.number(1, 86400),
        "After this many seconds without a log record, an OpenTelemetry job becomes a provisional incident.",
    )
    otlp_end_seconds: int = option(
        3600,
        value_parsers.number(1, 7 * 86400),
        "After this many seconds without a log record, an OpenTelemetry job counts as ended.",
    )
    otlp_job_bytes: int = option(
        64 * 2**20,
        value_parsers.size,
        "The size limit for the log of one OpenTelemetry job; its beginning and its latest lines are kept.",
    )
    otlp_total_bytes: int = option(
        2 * 2**30, value_parsers.size, "The size limit for the logs of all OpenTelemetry jobs together."
    )
    otlp_endpoint: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "The OTLP/HTTP endpoint to which incidents are sent as log records, and metrics; `/v1/logs` and "
        "`/v1/metrics` are appended.",
        secret=True,
    )
    otlp_headers: tuple[tuple[str, str], ...] = option(
        (),
        value_parsers.headers,
        "The headers of these requests, in the format of OTEL_EXPORTER_OTLP_HEADERS: `NAME=VALUE,NAME=VALUE`.",
        secret=True,
    )
    otlp_metrics: bool = option(
        True, value_parsers.yes_or_no, "Whether metrics are sent to this endpoint too. `no`: only log records."
    )
    mlflow_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "The MLflow tracking server. If a failed run's log shows its MLflow run, that run is tagged with the verdict.",
    )
    mlflow_user: str = option(
        "", str.strip, "The user for basic authentication at this server; empty: the token is a bearer token."
    )
    mlflow_token: str = option(
        "", str.strip, "The password of that user, or a bearer token. It needs permission to edit runs.", secret=True
    )
    mlflow_hosts: tuple[str, ...] = option(
        (), value_parsers.hosts, "Other host names of this server that logs may show, separated by commas."
    )
    wandb_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "The W&B API: `https://api.wandb.ai`, or your own server. If a failed run's log shows its W&B page, "
        "that run is tagged with the verdict.",
    )
    wandb_token: str = option(
        "", str.strip, "A W&B API key with permission to edit runs, preferably of a service account.", secret=True
    )
    wandb_hosts: tuple[str, ...] = option(
        (), value_parsers.hosts, "Other host names of W&B pages that logs may show, separated by commas."
    )
    decisions: str = option(
        "dry-run",
        value_parsers.one_of("dry-run", "enforce"),
        "`dry-run`: decisions about failed jobs are only recorded. `enforce`: launchers and schedulers act on them.",
    )
    policy_file: Path | None = option(  # noqa: RUF009  like the options around it
        None, value_parsers.path, "A YAML file of the policy for these decisions. Default: the built-in policy."
    )
    attribution_root: Path | None = option(  # noqa: RUF009  like the options around it
        None,
        value_parsers.path,
        "The folder of logs that NVIDIA's fault-tolerance launcher may name by path. Default: none.",
    )
    llm_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "The OpenAI-compatible URL, such as `https://…/v1`, of a language model that people can ask about a failure.",
    )
    llm_model: str = option("", str.strip, "The name of that model.")
    llm_key: str = option("", str.strip, "The API key of that model, if it needs one.", secret=True)
    llm_seconds: int = option(
        120, value_parsers.number(1, 600), "The time limit of one answer of the model, in seconds."
    )
    outbox_days: int = option(30, value_parsers.number(1, 3650), "How many days sent and failed notices are kept.")
    allow_private_calls: bool = option(
        False, value_parsers.yes_or_no, "Whether webhooks may go to private networks and to `http://`."
    )
    log_level: str = option("info", value_parsers.one_of("debug", "info", "warning", "error"), "The log level.")
    log_format: str = option(
        "text", value_parsers.one_of("text", "json"), "The log format: text, or one JSON object per line."
    )

    def __post_init__(self) -> None:
        if not self.serve_triages and self.database.startswith("sqlite"):
            raise SettingError(f"{PREFIX}SERVE_TRIAGES: `no` needs Postgres and `torchtriage worker`")
        if self.auth == "none" and not is_loopback(self.host):
            raise SettingError(f"{PREFIX}HOST: {self.host} is not a loopback address; set {PREFIX}AUTH=tokens")
        if self.oidc_issuer and self.auth != "tokens":
            raise SettingError(f"{PREFIX}AUTH: must be tokens when {PREFIX}OIDC_ISSUER is set")
        for name, needed in _NEEDS:
            if getattr(self, name) and not getattr(self, needed):
                raise SettingError(f"{PREFIX}{needed.upper()}: required when {PREFIX}{name.upper()} is set")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Returns the settings that these variables give. An empty variable counts as not set. Raises SettingError."""
        values: dict[str, Any] = {"data_dir": default_data_dir(environment)}
        for declared in fields(cls):
            name = PREFIX + declared.name.upper()
            text = environment.get(name, "")
            if text.strip():
                try:
                    values[declared.name] = declared.metadata["parse"](text)
                except ValueError as error:
                    raise SettingError(f"{name}: {error}", setting=name) from None
        return cls(**values)

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'torchtriage.db'}"

    @property
    def blobs(self) -> str:
        return self.blob_url or str(self.data_dir / "logs")

    @property
    def base_url(self) -> str:
        """The URL of the web page, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"


def documentation() -> list[tuple[str, str, str]]:
    """Returns the variable, default and sentence of every option, in the order of declaration."""
    rows = []
    for declared in fields(Settings):
        sentence = cast(str, declared.metadata["sentence"])
        rows.append((PREFIX + declared.name.upper(), default_of(declared), sentence))
    return rows


def default_of(declared: Field[Any]) -> str:
    """Returns the default of an option, as a person would write it."""
    default = "" if declared.default is MISSING else declared.default
    return _SHOWN.get(declared.name, "" if default in ("", (), None) else str(default))
