from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.http_server import Asked, Told, serving
from tests.ports import kept_port
from torchtriage.chat import outbound_http
from torchtriage.chat.delivery_errors import Undelivered, retry_after
from torchtriage.chat.outbound_http import Answer, Outgoing, refuse
from torchtriage.chat.ssrf_guard import is_public

NAME = "hooks.example.org"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("127.0.0.1", False), ("10.1.2.3", False),
        ("172.16.0.1", False), ("192.168.1.1", False), ("169.254.169.254", False), ("100.64.0.1", False),
        ("0.0.0.0", False), ("224.0.0.1", False), ("255.255.255.255", False), ("::1", False), ("::", False),
        ("fe80::1%eth0", False), ("fc00::1", False), ("ff02::1", False), ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True), ("64:ff9b::7f00:1", False), ("64:ff9b:1::1", False), ("2002:7f00:1::", False),
        ("2001:0:4136:e378::1", False), ("192.88.99.1", False),
    ],
)  # fmt: skip
def test_only_addresses_of_the_internet_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Returns TLS for a server of this name, and for a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True).sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = folder / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=str(pem))


@pytest.fixture
def asked() -> list[Asked]:
    return []


@pytest.fixture
def server(asked: list[Asked]) -> Iterator[str]:
    def answer(request: Asked) -> Told:
        asked.append(request)
        if request.path == "/moved":
            return Told(b"", 302, {"Location": "http://127.0.0.1/elsewhere"})
        if request.path.startswith("/round"):
            return Told(b"", 307, {"Location": "/round"})
        if request.path == "/onward":
            return Told(b"", 302, {"Location": f"http://localhost:{request.headers['Host'].rpartition(':')[2]}/file"})
        if request.path == "/large":
            return Told(b"x" * 3_000_000)
        return Told(b'{"fine": true}')

    with serving(answer) as url:
        yield url


def test_the_name_is_looked_up_once_and_stays_in_tls_and_host(tmp_path: Path, asked: list[Asked]) -> None:
    for_server, for_client = certificate(tmp_path, NAME)
    seen: list[str] = []
    for_server.sni_callback = lambda _, name, __: seen.append(name)
    looked_up: list[str] = []

    def answer(request: Asked) -> Told:
        asked.append(request)
        return Told(b"{}")

    with serving(answer, for_server) as url:
        port = int(url.rpartition(":")[2])

        def resolve(host: str, _: int) -> list[str]:
            looked_up.append(host)
            return ["127.0.0.1"]

        outgoing = Outgoing(private=True, resolve=resolve, tls=for_client)
        assert outgoing.post(f"https://{NAME}:{port}/hook?a=b", b"hello").status == 200
        with pytest.raises(Undelivered) as other:  # the certificate is for the name, and not for any that leads there
            outgoing.post(f"https://other.example.org:{port}/", b"")
    assert (seen[0], looked_up[0], len(asked)) == (NAME, NAME, 1)
    assert (asked[0].headers["Host"], asked[0].path, asked[0].body) == (f"{NAME}:{port}", "/hook?a=b", b"hello")
    assert other.value.passing


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["169.254.169.254"], ["93.184.216.34", "10.0.0.1"], ["::1"]])
def test_a_name_that_leads_inside_is_not_called(addresses: list[str]) -> None:
    with pytest.raises(Undelivered, match="non-public address") as refused:
        Outgoing(resolve=lambda *_: addresses).post(f"https://{NAME}/secret-path", b"")
    assert not refused.value.passing
    assert "secret-path" not in refused.value.message


def test_numbers_that_are_addresses_are_looked_at_too(server: str) -> None:
    port = server.rpartition(":")[2]
    for host in ("127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"):
        with pytest.raises(Undelivered):
            Outgoing().post(f"https://{host}:{port}/", b"")


@pytest.mark.parametrize(
    "url", ["http://example.org/", "ftp://example.org/", "file:///etc/passwd", "", "https://", "x"]
)
def test_only_https_is_called(url: str) -> None:
    with pytest.raises(Undelivered) as refused:
        Outgoing(resolve=lambda *_: ["93.184.216.34"]).post(url, b"")
    assert not refused.value.passing


def test_redirects_are_not_followed(server: str, asked: list[Asked]) -> None:
    answer = Outgoing(private=True).post(f"{server}/moved", b"")
    with pytest.raises(Undelivered) as refused:
        refuse(answer, "it")
    assert not refused.value.passing
    assert [request.path for request in asked] == ["/moved"]


def test_a_download_follows_redirects_where_it_may(server: str, asked: list[Asked]) -> None:
    outgoing = Outgoing(private=True)
    with outgoing.download(f"{server}/onward", {"X-Key": "k"}, 100, 30, redirects=1) as chunks:
        assert b"".join(chunks) == b'{"fine": true}'
    assert [request.path for request in asked] == ["/onward", "/file"]
    assert asked[0].headers["X-Key"] == "k"
    assert "X-Key" not in asked[1].headers  # which another host is not to see
    with pytest.raises(Undelivered, match="answered 302"), outgoing.download(f"{server}/onward", {}, 100, 30):
        pass
    with (
        pytest.raises(Undelivered, match="more than 3 redirects"),
        outgoing.download(f"{server}/round", {}, 100, 30, redirects=3),
    ):
        pass
    assert [request.path for request in asked][3:] == ["/round"] * 4


@pytest.mark.parametrize(
    ("location", "refused"),
    [
        ("https://inside.example.org/", "non-public address"),
        (f"http://{NAME}/", "only https"),
        (f"ftp://{NAME}/", "must begin with https"),
        ("https://[::1", "invalid URL"),
    ],
)
def test_a_redirect_leads_to_no_place_that_could_not_be_asked(
    location: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for_server, for_client = certificate(tmp_path, NAME)
    monkeypatch.setattr(outbound_http, "is_public", lambda address: address == "127.0.0.1")  # the server of this test
    addresses = {NAME: ["127.0.0.1"], "inside.example.org": ["10.0.0.1"]}
    outgoing = Outgoing(resolve=lambda host, _: addresses[host], tls=for_client)
    with serving(lambda _: Told(b"", 302, {"Location": location}), for_server) as url:
        port = url.rpartition(":")[2]
        with (
            pytest.raises(Undelivered, match=refused),
            outgoing.download(f"https://{NAME}:{port}/", {}, 100, 30, redirects=3),
        ):
            pass


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "nothing"),
        (b'{"error": "no"}', '{"error": "no"}'),
        (b"<!DOCTYPE html>\n<html><head><title> Bad &amp; gone\n</title></head>", "Bad & gone"),
        (b"<html><body>oh", "an HTML page"),
    ],
)
def test_a_refusal_says_how_the_answer_begins(body: bytes, told: str) -> None:
    with pytest.raises(Undelivered) as raised:
        refuse(Answer(501, {}, body), "the webhook")
    assert str(raised.value) == f"the webhook answered 501: {told}"


def test_answers_are_read_up_to_a_bound_and_downloads_refused_beyond_it(server: str) -> None:
    outgoing = Outgoing(private=True)
    assert len(outgoing.post(f"{server}/large", b"").body) == 1 << 20
    with outgoing.download(f"{server}/large", {}, 3_000_000, 30) as chunks:
        assert sum(map(len, chunks)) == 3_000_000
    with (
        pytest.raises(Undelivered, match="larger"),
        outgoing.download(f"{server}/large", {}, 2_999_999, 30) as chunks,
    ):
        list(chunks)


def test_a_server_that_drips_is_left_when_the_time_is_over() -> None:
    stopping = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            for char in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000:
                if stopping.wait(0.05):
                    return
                try:
                    connection.send(bytes([char]))
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        began = time.monotonic()
        with pytest.raises(Undelivered) as late:
            Outgoing(private=True).post(f"http://127.0.0.1:{listening.getsockname()[1]}/", b"", seconds=0.5)
        took = time.monotonic() - began
        stopping.set()
        thread.join()
    assert late.value.passing
    assert took < 60  # without a bound over all reads it would be 500 seconds


def test_where_nobody_answers_it_can_be_tried_again() -> None:
    with kept_port() as port, pytest.raises(Undelivered) as refused:
        Outgoing(private=True).post(f"http://127.0.0.1:{port}/", b"")
    assert refused.value.passing


def test_how_long_to_wait_is_read_in_both_forms() -> None:
    later = (datetime.now(UTC) + timedelta(seconds=60)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert retry_after("30") == 30
    assert 50 < (retry_after(later) or 0) <= 60
    assert [retry_after(text) for text in ("", "soon", "nan")] == [None] * 3
    assert [retry_after(text) for text in ("-5", "99999999", "inf")] == [0, 3600, 3600]
