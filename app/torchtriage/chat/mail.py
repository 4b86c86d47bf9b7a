"""Sends mails as text and simple HTML over SMTP with TLS. The mails of a group form one thread."""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from html import escape
from urllib.parse import unquote, urlsplit

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.plain_text import links, paragraphs
from torchtriage.chat.wording import headline
from torchtriage.domain.notice import Notice, NoticeKind, Thread

_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Server:
    """An SMTP server. `tls` is yes (from the start), start (STARTTLS, else nothing is sent) or no."""

    host: str
    port: int
    tls: str
    user: str = ""
    password: str = ""

    @classmethod
    def of(cls, url: str) -> Server:
        """Parses `smtps://user:password@host`, `smtp://…` with STARTTLS, or `smtp+plain://…` without TLS."""
        parts = urlsplit(url)
        tls = {"smtps": "yes", "smtp": "start", "smtp+plain": "no"}[parts.scheme]
        port = parts.port or {"yes": 465, "start": 587, "no": 25}[tls]
        return cls(parts.hostname or "", port, tls, unquote(parts.username or ""), unquote(parts.password or ""))


class Mail:
    pace = 0.0
    extra_notices: frozenset[NoticeKind] = frozenset()

    def __init__(self, server: Server, sender: str, to: tuple[str, ...], tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._sender = sender
        self._to = to
        self._tls = tls

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        mail = message(notice, key, self._sender, self._to)
        try:
            with self._connected() as connection:
                refused = connection.send_message(mail)
        except smtplib.SMTPRecipientsRefused as error:
            passing = all(code // 100 == 4 for code, _ in error.recipients.values())
            raise Undelivered(f"{self._server.host} refused all recipients", passing) from error
        except smtplib.SMTPResponseException as error:
            answer = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else ""
            problem = f"{self._server.host} refused it: {error.smtp_code} {answer[:200]}"
            raise Undelivered(problem, error.smtp_code // 100 == 4) from error
        except smtplib.SMTPNotSupportedError as error:
            raise Undelivered(f"{self._server.host}: {error}") from error
        except (smtplib.SMTPException, OSError) as error:
            raise Undelivered(f"{self._server.host} can't be reached: {error}", passing=True) from error
        if refused:
            raise Undelivered(f"{self._server.host} refused {len(refused)} of {len(self._to)} recipients")

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        server = self._server
        tls = self._tls or ssl.create_default_context()
        if server.tls == "yes":
            connecting: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=_SECONDS, context=tls)
        else:
            connecting = smtplib.SMTP(server.host, server.port, timeout=_SECONDS)
        with connecting as connection:
            if server.tls == "start":
                connection.starttls(context=tls)
            if server.user:
                connection.login(server.user, server.password)
            yield connection


def message(notice: Notice, key: str, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """Returns the mail. The same notice always has the same Message-ID, so that a mail sent twice is shown once."""
    domain = sender.rpartition("@")[2].rstrip(">") or "torchtriage"
    mail = EmailMessage()
    mail["Subject"] = f"[torchtriage] {headline(notice)}"
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{domain}>"
    if notice.group:
        mail["References"] = f"<group-{notice.group}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    addresses = [f"{label}: {url}" for label, url in links(notice)]
    mail.set_content("\n\n".join([headline(notice), *paragraphs(notice), *addresses]) + "\n")
    mail.add_alternative(_html(notice), subtype="html")
    return mail


def _html(notice: Notice) -> str:
    lines = "".join(f"<p>{escape(line)}</p>" for line in paragraphs(notice))
    addresses = " · ".join(f'<a href="{escape(url)}">{escape(label)}</a>' for label, url in links(notice))
    return f"<html><body><h3>{escape(headline(notice))}</h3>{lines}<p>{addresses}</p></body></html>"
