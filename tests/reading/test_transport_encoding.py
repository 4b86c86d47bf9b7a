"""Logs that were encoded for transport, and what only looks so."""

import base64

import pytest

from tests.decoding import decoded
from torchtriage.reading.unwrap.transport_encoding import BASE64, QUOTED_PRINTABLE, TEAMCITY, URL

LOG = "".join(f"step {at} loss 0.5, naïve\n" for at in range(400)).encode()


def lines_of(content: bytes) -> list[str]:
    found = next(filter(None, (decoded(decoder, content) for decoder in (TEAMCITY, BASE64, URL))))
    return [line for _, line in found]


@pytest.mark.parametrize("end", [b"", b"=", b"\n", b"\r\n"])
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_base64_that_was_cut_off_is_read_as_far_as_it_goes(cut: int, end: bytes) -> None:
    spelled = base64.b64encode(LOG).rstrip(b"=")
    lines = lines_of(spelled[: len(spelled) - cut] + end)
    assert lines[:-1] == LOG.decode().splitlines()[: len(lines) - 1]
    assert len(lines) >= 399


def test_gzip_that_is_broken_ends_where_it_breaks() -> None:
    assert lines_of(base64.b64encode(b"\x1f\x8b" + b"broken" * 40)) != []


def test_messages_of_teamcity_come_out_and_other_lines_stay() -> None:
    content = (
        b"step 1\n##teamcity[testStdErr name='a' out='KeyError: |'x|'|n||0x0041|[1|]|0x2588' flowId='7']\n"
        b"##teamcity[blockOpened name='train']\nstep 2\n"
    )
    assert lines_of(content) == [
        "step 1",
        "KeyError: 'x'",
        "|0x0041[1]█",
        "##teamcity[blockOpened name='train']",
        "step 2",
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        LOG,
        b"deadbeef" * 40 + b"\n",
        b"a" * 500,
        b"/home/ann/run/train/" * 9 + b"\n" + b"step 1\n",
        b"https://example.org/?q=a%0Ab\n",
        b"##teamcity[blockOpened name='train']\nstep 1\n",
    ],
)
def test_everything_else_is_left_alone(content: bytes) -> None:
    assert all(decoded(decoder, content) is None for decoder in (TEAMCITY, BASE64, URL, QUOTED_PRINTABLE))


def test_a_mail_with_soft_line_ends() -> None:
    long = "x" * 70
    mail = f"a=3Db\n{long}=\ny\n{long}=\n{long}=\n{long}=\nz=20"
    assert decoded(QUOTED_PRINTABLE, mail.encode()) == [(1, "a=b"), (2, f"{long}y"), (4, f"{3 * long}z ")]
