"""Secrets that are spelled otherwise go, and nothing else changes; work and size are bounded."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator

import pytest

from torchtriage.reading.blocks import blocks
from torchtriage.reading.redaction import encoded_secrets
from torchtriage.reading.redaction.encoded_secrets import unspelled, without_spelled_secrets
from torchtriage.reading.redaction.redact import redacted
from torchtriage.reading.unwrap.decoder_interface import MAX_BYTES

SECRET = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
LOG = f"step 41 loss 2.1\nValueError: denied with token {SECRET} and no more\n" * 3
HARMLESS = b"""\
{"log":"\\u001b[32mstep\\u001b[0m 12 of \\u00e9t\\u00e9 \\u003c3\\n","time":"2026-05-01T09:05:11Z"}
GET /a%20b?x=%7B%22y%22%3A1%7D HTTP/1.1 &lt;b&gt; &amp; &#39;x&#39; \\x41 AB\x08C
docker.io/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
"""


def stored(data: bytes, *pieces: bytes) -> bytes:
    """Returns what is stored of a log that comes in these pieces; marks without their kinds."""
    return unkind(b"".join(without_spelled_secrets(redacted(blocks(unspelled([data, *pieces]), "log")))))


def unkind(data: bytes) -> bytes:
    return re.sub(rb"\[redacted:[\w .-]+\]", b"[redacted]", data)


@pytest.mark.parametrize(
    "data",
    [
        HARMLESS,
        base64.b64encode(HARMLESS * 4),
        base64.encodebytes(HARMLESS * 4),
        b"begin\n" + base64.b64encode(HARMLESS * 4) + b"\nend\n",
        b"begin\n" + base64.b64encode(gzip.compress(HARMLESS * 4)) + b"\nend\n",
        base64.b64encode(bytes(range(256)) * 8),
    ],
)
def test_what_holds_no_secret_stays_as_it_came(data: bytes) -> None:
    assert stored(data) == data


def test_a_block_without_any_such_form_is_the_very_same() -> None:
    block = b"plain lines\n" * 1000
    assert next(without_spelled_secrets([block])) is block


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_in_base64_is_kept_as_its_text_where_that_holds_one(packed: bool) -> None:
    content = LOG.encode()
    whole = base64.encodebytes(gzip.compress(content) if packed else content)
    for pieces in ([whole], [whole[at : at + 7] for at in range(0, len(whole), 7)]):
        assert stored(*pieces).decode() == LOG.replace(SECRET, "[redacted]")


@pytest.mark.parametrize("packed", [False, True])
def test_base64_in_a_line_is_spelled_again_without_it(packed: bool) -> None:
    content = LOG.encode()
    word = base64.b64encode(gzip.compress(content) if packed else content)
    data = json.loads(stored(b'{"data": "' + word + b'", "status": "ok"}\n'))
    opened = base64.b64decode(data["data"])
    opened = gzip.decompress(opened) if packed else opened
    assert unkind(opened) == content.replace(SECRET.encode(), b"[redacted]")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (r'{"log":"say \"\u0068\u0066_AbCdEfGhIjKlMnOpQrStUvWxYz\" now\n"}', r'{"log":"say \"[redacted]\" now\n"}'),
        (r'{"log":"{\"k\":\"\\u0068f_AbCdEfGhIjKlMnOpQrStUvWxYz\"}"}', r'{"log":"{\"k\":\"[redacted]\"}"}'),
        (r"b'\x68f_AbCdEfGhIjKlMnOpQrStUvWxYz'", "b'[redacted]'"),
        ("see /x?t=hf%5FAbCdEfGhIjKlMnOpQrStUvWxYz ok", "see [redacted] ok"),
        ("see /x?t=hf%255FAbCdEfGhIjKlMnOpQrStUvWxYz ok", "see [redacted] ok"),
        ("a &#104;f_AbCdEfGhIjKlMnOpQrStUvWxYz b", "a [redacted] b"),
        ("a &amp;#x68;f_AbCdEfGhIjKlMnOpQrStUvWxYz b", "a [redacted] b"),
        ("a h\0f\0_\0AbCdEfGhIjKlMnOpQrStUvWxYz b", "a [redacted] b"),
        ("a hXY\b\bf_AbCdEfGhIjKlMnOpQrStUvWxYz b", "a [redacted] b"),
        ('pass&#119;ord: "Xk29fjQ8zLw0pTq7" y', "[redacted]"),  # only the line as a whole tells
    ],
)
def test_of_other_forms_the_word_goes_else_the_line(line: str, kept: str) -> None:
    assert stored(f"before\n{line}\nbehind\n".encode()).decode() == f"before\n{kept}\nbehind\n"


def test_records_stay_records() -> None:
    lines = [json.dumps({"log": f"{words}\n"}) for words in LOG.splitlines()]
    spelled_out = "".join(f"\\u{ord(char):04x}" for char in SECRET)
    result = stored("\n".join(lines).replace(SECRET, spelled_out).encode())
    assert "".join(json.loads(line)["log"] for line in result.splitlines()) == LOG.replace(SECRET, "[redacted]")


def test_what_the_engine_would_not_decode_goes_by_in_pieces() -> None:
    pulled = []

    def pieces() -> Iterator[bytes]:
        line = base64.b64encode(LOG.encode())
        for number in range(MAX_BYTES // (1 << 20) + 4):
            pulled.append(number)
            yield (line * ((1 << 20) // len(line) + 1))[: 1 << 20]

    result = unspelled(pieces())
    assert len(next(result)) == 1 << 20
    assert len(pulled) <= MAX_BYTES // (1 << 20) + 1
    assert sum(map(len, result)) == (MAX_BYTES // (1 << 20) + 3) << 20


def test_a_bomb_in_base64_is_left_as_it_is() -> None:
    bomb = base64.b64encode(gzip.compress(b"\n" * (MAX_BYTES + 1)))
    assert stored(bomb) == bomb
    assert stored(b"x " + bomb + b"\n") == b"x " + bomb + b"\n"


def test_a_log_that_only_begins_in_base64_is_kept() -> None:
    dump = base64.encodebytes(LOG.encode() * 800)
    log = dump + b"Traceback (most recent call last):\nKeyError: 'x'\n"
    assert stored(log).endswith(b"KeyError: 'x'\n")


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf_32_is_read_as_text(encoding: str) -> None:
    assert stored(("进度 😀\n" + LOG).encode(encoding)).decode() == "进度 😀\n" + LOG.replace(SECRET, "[redacted]")


def test_what_is_looked_for_is_looked_for_once_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block in which nothing is hidden is never taken apart into lines."""
    monkeypatch.setattr(encoded_secrets, "_line", lambda line: pytest.fail("taken apart"))
    assert stored(HARMLESS * 100) == HARMLESS * 100
