"""Parses the text of a setting into its value. Each function raises ValueError with the reason if the text is
invalid."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_SCOPES = ("submit", "read", "write", "admin")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def path(text: str) -> Path:
    if "://" in text:
        raise ValueError("a URL, not a folder or file")
    return Path(text).expanduser().absolute()


def paths(text: str) -> tuple[Path, ...]:
    return tuple(path(part) for part in text.split(os.pathsep) if part.strip())


def size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmgt]?i?)b?", text.strip().lower())
    if not found or found[2] not in _UNITS or not int(found[1]):
        raise ValueError("not a size such as 500MB or 20GiB")
    return int(found[1]) * _UNITS[found[2]]


def number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"not a whole number from {low} to {high}")
        return int(text)

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return text

    return parse


def yes_or_no(text: str) -> bool:
    return one_of("yes", "no")(text.strip().lower()) == "yes"


def url(*beginnings: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.startswith(beginnings):
            raise ValueError(f"does not start with {' or '.join(beginnings)}")
        return text

    return parse


def begins(beginning: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.strip().startswith(beginning):
            raise ValueError(f"does not start with {beginning}")
        return text.strip()

    return parse


def repository(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", text.strip(), re.ASCII):
        raise ValueError("not a repository such as OWNER/NAME")
    return text.strip()


def labels(text: str) -> tuple[tuple[str, str], ...]:
    """Parses Prometheus labels, NAME=VALUE separated by commas; `none` means no labels."""
    parts = [] if text.strip().lower() == "none" else [part.strip().partition("=") for part in text.split(",")]
    if not all(re.fullmatch(r"[a-zA-Z_]\w*", name, re.ASCII) and value for name, _, value in parts):
        raise ValueError("not none, and not a comma-separated list of labels such as severity=warning,team=ml")
    return tuple((name, value) for name, _, value in parts)


def headers(text: str) -> tuple[tuple[str, str], ...]:
    """Parses HTTP headers as in OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE separated by commas, with percent-encoded
    values. Error messages do not repeat the text, because it may be a secret."""
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    found = tuple((name.strip(), unquote(value.strip())) for name, _, value in parts)
    if not all(re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", name, re.ASCII) for name, _ in found):
        raise ValueError("not a comma-separated list of headers such as api-key=…,x-team=ml")
    if not all(re.fullmatch(r"[\x20-\x7e]+", value) for _, value in found):
        raise ValueError("the value of a header is empty, or contains a character that is not printable ASCII")
    return found


def hosts(text: str) -> tuple[str, ...]:
    parts = [part.strip().lower() for part in text.split(",") if part.strip()]
    if not all(re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", part) for part in parts):
        raise ValueError("not a comma-separated list of host names such as mlflow.train.svc,mlflow.example.org")
    return tuple(parts)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def counts(text: str) -> tuple[int, ...]:
    """Parses numbers separated by commas, and returns them sorted; `none` means no numbers."""
    parts = [] if text.strip().lower() == "none" else [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and 0 < int(part) < 10**9 for part in parts):
        raise ValueError("not none, and not a comma-separated list of numbers such as 10,100,1000")
    return tuple(sorted({int(part) for part in parts}))


def mail_address(text: str) -> str:
    if not re.fullmatch(r"[^\s@<>,]+@[^\s@<>,]+|[^<>\r\n]*<[^\s@<>,]+@[^\s@<>,]+>", text.strip()):
        raise ValueError("not an address such as triage@example.org")
    return text.strip()


def mail_addresses(text: str) -> tuple[str, ...]:
    return tuple(mail_address(part) for part in text.split(",") if part.strip())


def smtp_url(text: str) -> str:
    """Checks the URL of a mail server. Error messages do not repeat it, because it may contain a password."""
    parts = urlsplit(text.strip())
    try:
        whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        whole = False
    if parts.scheme not in ("smtps", "smtp", "smtp+plain") or not whole:
        raise ValueError("not smtps://HOST, smtp://HOST or smtp+plain://HOST; USER:PASSWORD@ and :PORT are optional")
    return text.strip()


def rate(text: str) -> str:
    from limits import parse  # imported here, because only the server's extra installs it

    try:
        parse(text)
    except ValueError:
        raise ValueError("not a rate such as 600/minute") from None
    return text


def networks(text: str) -> tuple[str, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        found = [ip_network(part) for part in parts]
    except ValueError:
        raise ValueError("not a comma-separated list of addresses or networks, such as 10.1.2.3,10.0.0.0/8") from None
    if any(network.prefixlen == 0 for network in found):
        raise ValueError("a network of all addresses would trust every client")
    return tuple(map(str, found))


def issuer(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise ValueError("does not start with https://")
    return text.strip()


def scopes(text: str) -> frozenset[str]:
    names = {name.strip() for name in text.split(",")} - {"none"}
    if not names <= set(_SCOPES):
        raise ValueError(f"not none, and not a comma-separated list of {', '.join(_SCOPES)}")
    return frozenset(names)


def group_scopes(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Parses GROUP=SCOPE,SCOPE; GROUP=SCOPE. The last `=` separates, because the name of a group may contain one."""
    parts = [part.strip().rpartition("=") for part in text.split(";") if part.strip()]
    if not all(group.strip() for group, _, _ in parts):
        raise ValueError("not GROUP=SCOPE,SCOPE; GROUP=SCOPE")
    return tuple((group.strip(), scopes(listed)) for group, _, listed in parts)


def blob_url(text: str) -> str:
    if text.startswith("s3://") and text != "s3://":
        return text
    folder = text.removeprefix("file://")
    if "://" in folder:
        raise ValueError("neither a folder nor s3://BUCKET/PREFIX")
    return str(path(folder))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def only_known_keys(where: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    """Raises ValueError if a table of a settings file has an unknown key. `where` names the table."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"{where}: {unknown[0]} is unknown; use one of {', '.join(known)}")
