"""The options of the service: environment variables in, one frozen Settings out, read once and passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from torchtriage.errors import SettingError
from torchtriage.settings import value_parsers
from torchtriage.settings.value_parsers import default_data_dir, is_loopback

PREFIX = "TRIAGE_"
_SHOWN = {  # in the docs
    "data_dir": "~/.local/share/torchtriage",
    "max_log_bytes": "20GiB",
    "serve_triages": "yes",
    "triage_memory": "1GiB",
    "oidc_scopes": "read,submit",
    "wrong_logins": "10/minute",
    "alert_unexplained": "yes",
    "alert_counts": "10,100,1000",
    "alert_gpu_hours": "100,1000,10000",
    "allow_private_calls": "no",
}


def option(default: Any, parse: Callable[[str], Any], sentence: str, secret: bool = False) -> Any:
    """Declares an option: its default, how its text becomes its value (ValueError says why not), what it is for."""
    return field(default=default, metadata={"parse": parse, "sentence": sentence}, repr=not secret)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option, with a default that works on a laptop. The variable is TRIAGE_ and the name in capitals.

    Raises SettingError where a value is wrong, or two do not go together.
    """

    data_dir: Path = field(
        metadata={
            "parse": value_parsers.path,
            "sentence": "Folder of everything kept: database, logs, uploads under way.",
        }
    )
    database_url: str = option(
        "",
        value_parsers.url("sqlite:///", "postgresql://", "postgresql+psycopg://"),
        "`sqlite:///FILE` or `postgresql://…`. Default: SQLite in the data dir.",
    )
    blob_url: str = option(
        "",
        value_parsers.blob_url,
        "Where logs are kept: a folder or `s3://BUCKET/PREFIX`. Default: `logs` in the data dir.",
    )
    knowledge_dirs: tuple[Path, ...] = option(
        (),
        value_parsers.paths,
        "More folders of entries, parted by `:`; an entry here replaces the built-in one of the same id.",
    )
    max_log_bytes: int = option(20 * 2**30, value_parsers.size, "The largest log that is taken, after decompression.")
    retention_days: int = option(
        0,
        value_parsers.number(0, 36500),
        "Incidents and their logs are forgotten after this many days; 0 keeps them for ever.",
    )
    workers: int = option(
        2,
        value_parsers.number(0, 64),
        "How many processes triage logs; 0 triages in the threads of the service itself.",
    )
    serve_triages: bool = option(
        True,
        value_parsers.yes_or_no,
        "`no`: `torchtriage serve` leaves all triage to `torchtriage worker`; on Postgres only.",
    )
    worker_metrics_port: int = option(
        0,
        value_parsers.number(0, 65535),
        "The port on TRIAGE_HOST where `torchtriage worker` shows Prometheus its counters, without tokens; 0: nowhere.",
    )
    triage_seconds: int = option(
        900, value_parsers.number(1, 86400), "A triage that takes longer than this many seconds is ended."
    )
    triage_memory: int = option(2**30, value_parsers.size, "A triage that needs more memory than this is ended.")
    auth: str = option(
        "none",
        value_parsers.one_of("none", "tokens"),
        "`none`: anyone who reaches the port, only on a loopback address. `tokens`: who shows a token.",
    )
    oidc_issuer: str = option(
        "",
        value_parsers.issuer,
        "The address of an OpenID Connect provider; people can then log in to the page with it.",
    )
    oidc_client_id: str = option("", str.strip, "The client as which the provider knows this service.")
    oidc_client_secret: str = option("", str.strip, "The client's secret, where it has one.", secret=True)
    oidc_claim: str = option("groups", str.strip, "The claim of the ID token that tells somebody's groups.")
    oidc_group_scopes: tuple[tuple[str, frozenset[str]], ...] = option(
        (), value_parsers.group_scopes, "What groups may, as in `ml-admins=admin; research=submit,read,write`."
    )
    oidc_scopes: frozenset[str] = option(
        frozenset({"submit", "read"}), value_parsers.scopes, "What everybody may whom the provider lets in, or `none`."
    )
    rate_limit: str = option(
        "", value_parsers.rate, "How often one token may ask, as in `600/minute`. Default: as often as it likes."
    )
    wrong_logins: str = option(
        "10/minute", value_parsers.rate, "How many wrong logins to the page one address may make."
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        value_parsers.networks,
        "Addresses or networks of proxies, with commas between; `X-Forwarded-For` is believed of no other.",
    )
    host: str = option("127.0.0.1", str.strip, "The address to listen on.")
    port: int = option(8000, value_parsers.number(0, 65535), "The port to listen on; 0 takes a free one.")
    public_url: str = option(
        "",
        value_parsers.url("http://", "https://"),
        "The address under which people reach the page. Default: host and port.",
    )
    slack_webhook_url: str = option(
        "", value_parsers.url("https://", "http://"), "An incoming webhook of Slack's, to which alerts go.", secret=True
    )
    slack_signing_secret: str = option(
        "",
        str.strip,
        "The Slack app's signing secret; with it `/slack/…` takes commands, files and buttons.",
        secret=True,
    )
    slack_bot_token: str = option(
        "", value_parsers.begins("xoxb-"), "The Slack app's bot token: threads, counters, forms and files.", secret=True
    )
    slack_channel: str = option("", str.strip, "The Slack channel, as `C0123ABCD`, to which the bot's alerts go.")
    slack_api_url: str = option(
        "https://slack.com/api/", value_parsers.url("https://", "http://"), "Where Slack's Web API is, as for GovSlack."
    )
    feishu_webhook_url: str = option(
        "", value_parsers.url("https://", "http://"), "A custom robot of 飞书 (Lark), to which alerts go.", secret=True
    )
    feishu_secret: str = option("", str.strip, "The 飞书 robot's signing secret, where it has one.", secret=True)
    dingtalk_webhook_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "A custom robot of 钉钉 (DingTalk), to which alerts go.",
        secret=True,
    )
    dingtalk_secret: str = option("", str.strip, "The 钉钉 robot's signing secret (`SEC…`).", secret=True)
    wecom_webhook_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "A robot of a 企业微信 (WeCom) group, to which alerts go.",
        secret=True,
    )
    webhook_url: str = option(
        "", value_parsers.url("https://", "http://"), "An address to which alerts are posted as JSON.", secret=True
    )
    webhook_secret: str = option("", str.strip, "The key with which those posts are signed.", secret=True)
    smtp_url: str = option(
        "",
        value_parsers.smtp_url,
        "The mail server: `smtps://USER:PASSWORD@HOST`, `smtp://…` with STARTTLS, `smtp+plain://…` without TLS.",
        secret=True,
    )
    email_from: str = option("", value_parsers.mail_address, "The sender of mails.")
    email_to: tuple[str, ...] = option(
        (), value_parsers.mail_addresses, "Who gets alerts by mail, with commas between."
    )
    apprise_urls: tuple[str, ...] = option(
        (),
        value_parsers.words,
        "Addresses of Apprise for other places, with blanks between (the extra `apprise`).",
        secret=True,
    )
    routes_file: Path | None = option(  # noqa: RUF009  as the ones around it
        None, value_parsers.path, "A TOML file of rules that say which alert goes where."
    )
    alert_language: str = option(
        "en", value_parsers.one_of("en", "zh"), "The language of alerts and of answers in chats."
    )
    alert_unexplained: bool = option(
        True, value_parsers.yes_or_no, "Whether failures that no entry names are told too."
    )
    alert_counts: tuple[int, ...] = option(
        (10, 100, 1000), value_parsers.counts, "A group is told again when it has this many incidents; `none`: never."
    )
    alert_gpu_hours: tuple[int, ...] = option(
        (100, 1000, 10000),
        value_parsers.counts,
        "A group is told again when it cost this many GPU hours; `none`: never.",
    )
    llm_url: str = option(
        "",
        value_parsers.url("https://", "http://"),
        "An OpenAI-compatible address, as `https://…/v1`, of a language model that people can ask about a failure.",
    )
    llm_model: str = option("", str.strip, "The model's name there.")
    llm_key: str = option("", str.strip, "The key for that address, where it wants one.", secret=True)
    llm_seconds: int = option(120, value_parsers.number(1, 600), "How long the model may take for an answer.")
    outbox_days: int = option(
        30, value_parsers.number(1, 3650), "How long is kept what was sent, and what could not be."
    )
    allow_private_calls: bool = option(
        False, value_parsers.yes_or_no, "Whether calls may go to addresses of a private network, and to `http://`."
    )
    log_level: str = option(
        "info", value_parsers.one_of("debug", "info", "warning", "error"), "How much the service says about itself."
    )
    log_format: str = option(
        "text", value_parsers.one_of("text", "json"), "How it says it: lines for people, or one JSON object a line."
    )

    def __post_init__(self) -> None:
        if not self.serve_triages and self.database.startswith("sqlite"):
            raise SettingError(f"{PREFIX}SERVE_TRIAGES: `no` needs Postgres, where workers triage")
        if self.auth == "none" and not is_loopback(self.host):
            raise SettingError(f"{PREFIX}HOST: {self.host} is no loopback address, which {PREFIX}AUTH=none needs")
        if self.oidc_issuer and self.auth != "tokens":
            raise SettingError(f"{PREFIX}AUTH: {PREFIX}OIDC_ISSUER needs it to be tokens")
        if self.llm_url and not self.llm_model:
            raise SettingError(f"{PREFIX}LLM_MODEL: {PREFIX}LLM_URL needs it")
        for name in ("email_from", "email_to"):
            if self.smtp_url and not getattr(self, name):
                raise SettingError(f"{PREFIX}{name.upper()}: {PREFIX}SMTP_URL needs it")
        for name in ("oidc_client_id", "public_url"):
            if self.oidc_issuer and not getattr(self, name):
                raise SettingError(f"{PREFIX}{name.upper()}: {PREFIX}OIDC_ISSUER needs it")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """-> the settings that an environment holds; an empty variable counts as not set. Raises SettingError."""
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
        """The page's address, without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"


def documentation() -> list[tuple[str, str, str]]:
    """-> (variable, default, sentence) of every option, in the order of their declaration."""
    rows = []
    for declared in fields(Settings):
        default = "" if declared.default is MISSING else declared.default
        shown = "" if default in ("", (), None) else str(default)
        shown = _SHOWN.get(declared.name, shown)
        rows.append((PREFIX + declared.name.upper(), shown, cast(str, declared.metadata["sentence"])))
    return rows
