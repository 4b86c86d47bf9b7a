"""Mails to a real SMTP server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from hypothesis import given

from tests.chat.notices import hostile, usual
from tests.chat.test_outbound_http import certificate
from tests.ports import kept_port
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.mail import Mail, Server, message
from torchtriage.domain.notice import Notice

FROM, TO = "torchtriage <triage@example.org>", ("ann@example.org", "bob@example.org")


class Box:
    """Takes mails, or answers what a test tells it to."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.answer = "250 OK"
        self.refuse: dict[str, str] = {}

    async def handle_RCPT(  # noqa: N802  aiosmtpd's name
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address not in self.refuse:
            envelope.rcpt_tos.append(address)
        return self.refuse.get(address, "250 OK")

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return self.answer


@contextmanager
def smtp(box: Box, **more: Any) -> Iterator[int]:
    with kept_port() as port:
        controller = Controller(box, hostname="127.0.0.1", port=port, **more)
        controller.start()
        try:
            yield port
        finally:
            controller.stop()


def plain(port: int) -> Mail:
    return Mail(Server("127.0.0.1", port, "no"), FROM, TO)


def test_a_mail_has_text_and_html_and_is_in_the_groups_thread() -> None:
    box = Box()
    with smtp(box) as port:
        plain(port).send(usual(title="A <b> & \r\nBcc: eve@example.org"), "incident 17 new email")
        plain(port).send(usual(), "incident 17 new email")
    first, again = box.mails
    assert first["Subject"] == "[torchtriage] New failure: A <b> & Bcc: eve@example.org"
    assert first["Bcc"] is None
    assert (first["To"], first["From"]) == (", ".join(TO), FROM)
    assert first["References"] == "<group-7@example.org>"
    assert first["Message-ID"] == again["Message-ID"]
    text, html = (cast(EmailMessage, part).get_content() for part in first.iter_parts())
    assert "torch.OutOfMemoryError" in text
    assert "https://triage.example.org/incidents/17" in text
    assert "A &lt;b&gt; &amp; Bcc" in html


def test_it_asks_for_tls_and_logs_in_and_sends_nothing_without(tmp_path: Path) -> None:
    for_server, for_client = certificate(tmp_path, "localhost")

    def check(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=data == LoginPassword(b"ann", b"s:3/cret"), handled=False)

    box = Box()
    known = Server.of("smtp://ann:s%3A3%2Fcret@localhost")
    assert (known.port, known.tls, known.password) == (587, "start", "s:3/cret")
    with smtp(box, tls_context=for_server, authenticator=check, auth_required=True) as port:
        good = Server("localhost", port, "start", known.user, known.password)
        Mail(good, FROM, TO, for_client).send(usual(), "k")
        with pytest.raises(Undelivered, match="535") as wrong:
            Mail(Server("localhost", port, "start", "ann", "guess"), FROM, TO, for_client).send(usual(), "k")
        with pytest.raises(Undelivered) as stranger:  # its certificate is nobody's
            Mail(good, FROM, TO).send(usual(), "k")
    assert (wrong.value.passing, stranger.value.passing) == (False, True)
    assert "guess" not in wrong.value.message
    with smtp(box) as port, pytest.raises(Undelivered, match="STARTTLS"):
        Mail(Server("localhost", port, "start"), FROM, TO, for_client).send(usual(), "k")
    assert len(box.mails) == 1
    assert (Server.of("smtps://h").port, Server.of("smtp+plain://h").port, Server.of("smtps://h:99").port) == (465, 25, 99)  # fmt: skip


@pytest.mark.parametrize(("answer", "passing"), [("451 later", True), ("552 too large", False)])
def test_the_servers_answer_decides_if_an_error_is_temporary(answer: str, passing: bool) -> None:
    box = Box()
    box.answer = answer
    with smtp(box) as port, pytest.raises(Undelivered, match=answer[:3]) as refused:
        plain(port).send(usual(), "k")
    assert refused.value.passing is passing


def test_refused_recipients_are_named() -> None:
    box = Box()
    box.refuse = {"bob@example.org": "550 no such user"}
    with smtp(box) as port:
        with pytest.raises(Undelivered, match="1 of 2"):
            plain(port).send(usual(), "k")
        assert len(box.mails) == 1
        box.refuse["ann@example.org"] = "450 greylisted"
        with pytest.raises(Undelivered, match="all") as refused:
            plain(port).send(usual(), "k")
    assert not refused.value.passing


def test_where_nobody_listens_it_is_tried_again() -> None:
    with smtp(Box()) as port:
        pass
    with pytest.raises(Undelivered) as refused:
        plain(port).send(usual(), "k")
    assert refused.value.passing


@given(hostile())
def test_every_notice_is_a_mail(notice: Notice) -> None:
    mail = message(notice, "k", FROM, TO)
    assert len(mail["Subject"]) < 200
    assert b"\r" not in mail.as_bytes()
    assert mail["To"] == ", ".join(TO)
