from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchtriage.errors import SettingError
from torchtriage.settings import Settings, documentation

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


def test_the_defaults_work_on_a_laptop() -> None:
    settings = Settings.from_environment({"XDG_DATA_HOME": "/home/ann/data"})
    assert settings.data_dir == Path("/home/ann/data/torchtriage")
    assert settings.database == "sqlite:////home/ann/data/torchtriage/torchtriage.db"
    assert settings.blobs == "/home/ann/data/torchtriage/logs"
    assert settings.base_url == "http://127.0.0.1:8000"


def test_the_environment_sets_every_kind_of_option() -> None:
    settings = Settings.from_environment(
        {
            "TRIAGE_DATA_DIR": "/data",
            "TRIAGE_DATABASE_URL": "postgresql://triage@db/triage",
            "TRIAGE_BLOB_URL": "s3://bucket/logs",
            "TRIAGE_KNOWLEDGE_DIRS": "/a:/b:",
            "TRIAGE_MAX_LOG_BYTES": "2GiB",
            "TRIAGE_PORT": "0",
            "TRIAGE_HOST": "::1",
            "TRIAGE_PUBLIC_URL": "https://triage.example.org/",
            "TRIAGE_LOG_LEVEL": "",
            "TRIAGE_TRUSTED_PROXIES": "10.1.2.3, 10.2.0.0/16,2001:db8::/32,",
        }
    )
    assert settings.database == "postgresql://triage@db/triage"
    assert settings.blobs == "s3://bucket/logs"
    assert settings.knowledge_dirs == (Path("/a"), Path("/b"))
    assert settings.max_log_bytes == 2 * 2**30
    assert settings.base_url == "https://triage.example.org"
    assert settings.log_level == "info"
    assert settings.trusted_proxies == ("10.1.2.3/32", "10.2.0.0/16", "2001:db8::/32")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIAGE_DATABASE_URL", "postgres://x"),
        ("TRIAGE_MAX_LOG_BYTES", "0"),
        ("TRIAGE_MAX_LOG_BYTES", "ten"),
        ("TRIAGE_MAX_LOG_BYTES", "-1"),
        ("TRIAGE_RETENTION_DAYS", "1.5"),
        ("TRIAGE_PORT", "99999"),
        ("TRIAGE_PORT", "²"),
        ("TRIAGE_AUTH", "off"),
        ("TRIAGE_HOST", "0.0.0.0"),
        ("TRIAGE_HOST", "example.org"),
        ("TRIAGE_PUBLIC_URL", "triage.example.org"),
        ("TRIAGE_LOG_LEVEL", "loud"),
        ("TRIAGE_LOG_FORMAT", "xml"),
        ("TRIAGE_SLACK_BOT_TOKEN", "xapp-1"),
        ("TRIAGE_SLACK_WEBHOOK_URL", "hooks.slack.com/services/T/B/x"),
        ("TRIAGE_SMTP_URL", "mail.example.org"),
        ("TRIAGE_SMTP_URL", "smtp://mail.example.org:port"),
        ("TRIAGE_EMAIL_FROM", "triage@example.org, eve@example.org"),
        ("TRIAGE_EMAIL_FROM", "a\nBcc: b <triage@example.org>"),
        ("TRIAGE_EMAIL_TO", "ann"),
        ("TRIAGE_ALERT_COUNTS", "10,many"),
        ("TRIAGE_ALERT_GPU_HOURS", "0"),
        ("TRIAGE_ALERT_LANGUAGE", "fr"),
        ("TRIAGE_OIDC_ISSUER", "http://sso.example.org"),
        ("TRIAGE_OIDC_SCOPES", "read,everything"),
        ("TRIAGE_RATE_LIMIT", "many"),
        ("TRIAGE_WRONG_LOGINS", "none"),
        ("TRIAGE_TRUSTED_PROXIES", "proxy.example.org"),
        ("TRIAGE_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("TRIAGE_TRUSTED_PROXIES", "*"),
        ("TRIAGE_TRUSTED_PROXIES", "10.0.0.1, 0.0.0.0/0"),
        ("TRIAGE_OIDC_GROUP_SCOPES", "=admin"),
        ("TRIAGE_OIDC_GROUP_SCOPES", "ml-admins"),
        ("TRIAGE_OIDC_GROUP_SCOPES", "ml-admins=root"),
    ],
)
def test_a_bad_value_is_reported_in_one_line_that_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(SettingError) as raised:
        Settings.from_environment({name: value})
    assert raised.value.message.startswith(f"{name}: ")
    assert "\n" not in raised.value.message


OIDC = {
    "TRIAGE_AUTH": "tokens",
    "TRIAGE_PUBLIC_URL": "https://triage.example.org",
    "TRIAGE_OIDC_ISSUER": "https://sso.example.org",
    "TRIAGE_OIDC_CLIENT_ID": "torchtriage",
    "TRIAGE_OIDC_CLIENT_SECRET": "hunter2",
    "TRIAGE_OIDC_GROUP_SCOPES": "cn=admins,dc=org=admin; research = submit, read;",
    "TRIAGE_OIDC_SCOPES": "none",
}


def test_a_login_with_a_provider_is_set_and_its_secret_never_shown() -> None:
    settings = Settings.from_environment(OIDC)
    assert settings.oidc_group_scopes == (
        ("cn=admins,dc=org", frozenset({"admin"})),
        ("research", frozenset({"submit", "read"})),
    )
    assert settings.oidc_scopes == frozenset()
    assert "hunter2" not in repr(settings)
    assert settings.oidc_client_secret == "hunter2"


@pytest.mark.parametrize("missing", ["TRIAGE_AUTH", "TRIAGE_PUBLIC_URL", "TRIAGE_OIDC_CLIENT_ID"])
def test_a_login_with_a_provider_needs_the_rest(missing: str) -> None:
    with pytest.raises(SettingError, match=f"^{missing}: "):
        Settings.from_environment({name: value for name, value in OIDC.items() if name != missing})


def test_alerts_are_set_and_their_secrets_never_shown() -> None:
    settings = Settings.from_environment(
        {
            "TRIAGE_SMTP_URL": "smtps://ann:hunter22@mail.example.org",
            "TRIAGE_EMAIL_FROM": "torchtriage <triage@example.org>",
            "TRIAGE_EMAIL_TO": "ann@example.org, bob@example.org",
            "TRIAGE_SLACK_SIGNING_SECRET": "hunter22",
            "TRIAGE_APPRISE_URLS": "tgram://hunter22/1 discord://2/3",
            "TRIAGE_ALERT_COUNTS": "none",
            "TRIAGE_ALERT_GPU_HOURS": "500, 50",
        }
    )
    assert settings.email_to == ("ann@example.org", "bob@example.org")
    assert (settings.alert_counts, settings.alert_gpu_hours) == ((), (50, 500))
    assert len(settings.apprise_urls) == 2
    assert "hunter22" not in repr(settings)


@pytest.mark.parametrize("missing", ["TRIAGE_EMAIL_FROM", "TRIAGE_EMAIL_TO"])
def test_mails_need_a_sender_and_a_recipient(missing: str) -> None:
    given = {"TRIAGE_SMTP_URL": "smtps://h", "TRIAGE_EMAIL_FROM": "a@b.c", "TRIAGE_EMAIL_TO": "a@b.c"}
    with pytest.raises(SettingError, match=f"^{missing}: "):
        Settings.from_environment({name: value for name, value in given.items() if name != missing})


def test_every_option_is_documented_as_it_is_declared() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE)
    declared = [(name, f"`{default}`" if default else "", sentence) for name, default, sentence in documentation()]
    assert rows == declared
