"""The options of the service: environment variables in, one frozen Settings out, read once and passed in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from limits import RateLimitItem
from limits import parse as parse_limit

from app.errors import SettingError

PREFIX = "TRIAGE_"
_SCOPES = ("submit", "read", "write", "admin")
_SHOWN = {  # in the docs
    "data_dir": "~/.local/share/torchtriage",
    "max_log_bytes": "20GiB",
    "serve_triages": "yes",
    "triage_memory": "1GiB",
    "oidc_scopes": "read,submit",
}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def default_data_dir(environment: Mapping[str, str]) -> Path:
    """-> the folder for a user's data on this platform."""
    home = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "torchtriage"


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part.strip())


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmgt]?i?)b?", text.strip().lower())
    if not found or found[2] not in _UNITS or not int(found[1]):
        raise ValueError("not a size such as 500MB or 20GiB")
    return int(found[1]) * _UNITS[found[2]]


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"not a whole number from {low} to {high}")
        return int(text)

    return parse


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return text

    return parse


def _yes_or_no(text: str) -> bool:
    return _one_of("yes", "no")(text.strip().lower()) == "yes"


def _url(*beginnings: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.startswith(beginnings):
            raise ValueError(f"does not begin with {' or '.join(beginnings)}")
        return text

    return parse


def _rate(text: str) -> RateLimitItem:
    try:
        return parse_limit(text)
    except ValueError:
        raise ValueError("not a rate such as 600/minute") from None


def _issuer(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise ValueError("does not begin with https://")
    return text.strip()


def _scopes(text: str) -> frozenset[str]:
    names = {name.strip() for name in text.split(",")} - {"none"}
    if not names <= set(_SCOPES):
        raise ValueError(f"not none, or some of {', '.join(_SCOPES)} with commas between")
    return frozenset(names)


def _group_scopes(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Names of groups can hold almost anything, so that the last `=` counts."""
    parts = [part.strip().rpartition("=") for part in text.split(";") if part.strip()]
    if not all(group.strip() for group, _, _ in parts):
        raise ValueError("not GROUP=SCOPE,SCOPE; GROUP=SCOPE")
    return tuple((group.strip(), _scopes(scopes)) for group, _, scopes in parts)


def _blob_url(text: str) -> str:
    return text if text.startswith("s3://") else str(_path(text.removeprefix("file://")))


def option(default: Any, parse: Callable[[str], Any], sentence: str, secret: bool = False) -> Any:
    """Declares an option: its default, how its text becomes its value (ValueError says why not), what it is for."""
    return field(default=default, metadata={"parse": parse, "sentence": sentence}, repr=not secret)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option, with a default that works on a laptop. The variable is TRIAGE_ and the name in capitals.

    Raises SettingError where a value is wrong, or two do not go together.
    """

    data_dir: Path = field(
        metadata={"parse": _path, "sentence": "Folder of everything kept: database, logs, uploads under way."}
    )
    database_url: str = option(
        "",
        _url("sqlite:///", "postgresql://", "postgresql+psycopg://"),
        "`sqlite:///FILE` or `postgresql://…`. Default: SQLite in the data dir.",
    )
    blob_url: str = option(
        "", _blob_url, "Where logs are kept: a folder or `s3://BUCKET/PREFIX`. Default: `logs` in the data dir."
    )
    knowledge_dirs: tuple[Path, ...] = option(
        (), _paths, "More folders of entries, parted by `:`; an entry here replaces the built-in one of the same id."
    )
    max_log_bytes: int = option(20 * 2**30, _size, "The largest log that is taken, after decompression.")
    retention_days: int = option(
        0, _number(0, 36500), "Incidents and their logs are forgotten after this many days; 0 keeps them for ever."
    )
    workers: int = option(
        2, _number(0, 64), "How many processes triage logs; 0 triages in the threads of the service itself."
    )
    serve_triages: bool = option(
        True, _yes_or_no, "`no`: `torchtriage serve` leaves all triage to `torchtriage worker`; on Postgres only."
    )
    triage_seconds: int = option(900, _number(1, 86400), "A triage that takes longer than this many seconds is ended.")
    triage_memory: int = option(2**30, _size, "A triage that needs more memory than this is ended.")
    auth: str = option(
        "none",
        _one_of("none", "tokens"),
        "`none`: anyone who reaches the port, only on a loopback address. `tokens`: who shows a token.",
    )
    oidc_issuer: str = option(
        "", _issuer, "The address of an OpenID Connect provider; people can then log in to the page with it."
    )
    oidc_client_id: str = option("", str.strip, "The client as which the provider knows this service.")
    oidc_client_secret: str = option("", str.strip, "The client's secret, where it has one.", secret=True)
    oidc_claim: str = option("groups", str.strip, "The claim of the ID token that tells somebody's groups.")
    oidc_group_scopes: tuple[tuple[str, frozenset[str]], ...] = option(
        (), _group_scopes, "What groups may, as in `ml-admins=admin; research=submit,read,write`."
    )
    oidc_scopes: frozenset[str] = option(
        frozenset({"submit", "read"}), _scopes, "What everybody may whom the provider lets in, or `none`."
    )
    rate_limit: RateLimitItem | None = option(  # noqa: RUF009  as the ones around it
        None, _rate, "How often one token may ask, as in `600/minute`. Default: as often as it likes."
    )
    host: str = option("127.0.0.1", str.strip, "The address to listen on.")
    port: int = option(8000, _number(0, 65535), "The port to listen on; 0 takes a free one.")
    public_url: str = option(
        "", _url("http://", "https://"), "The address under which people reach the page. Default: host and port."
    )
    log_level: str = option(
        "info", _one_of("debug", "info", "warning", "error"), "How much the service says about itself."
    )
    log_format: str = option(
        "text", _one_of("text", "json"), "How it says it: lines for people, or one JSON object a line."
    )

    def __post_init__(self) -> None:
        if not self.serve_triages and self.database.startswith("sqlite"):
            raise SettingError(f"{PREFIX}SERVE_TRIAGES: `no` needs Postgres, where workers triage")
        if self.auth == "none" and not _is_loopback(self.host):
            raise SettingError(f"{PREFIX}HOST: {self.host} is no loopback address, which {PREFIX}AUTH=none needs")
        if self.oidc_issuer and self.auth != "tokens":
            raise SettingError(f"{PREFIX}AUTH: {PREFIX}OIDC_ISSUER needs it to be tokens")
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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
