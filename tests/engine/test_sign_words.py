"""Which logs cannot show a sign."""

from __future__ import annotations

import pytest

from tests.drafts import SIGN
from torchtriage.matching.sign_exclusion import SignWords

LINE = b"[rank2]: ourdata.ShardTooShort: shard 3 of '/data/a.idx' ends after 3005 records, index says 4096\n"


@pytest.mark.parametrize(
    "log",
    [
        LINE,
        LINE.replace(b": shard", b": \x1b[31mshard\x1b[0m"),
        LINE.replace(b" ends", b"\n[rank2]:     ends"),  # a box that wraps its lines
        b'{"log": "ShardTooShort: shard 3 of \\u0027/data/a.idx\\u0027 ends after 3005 records"}',
        LINE.upper(),
    ],
)
def test_a_log_that_can_show_a_sign_is_never_left_out(log: bytes) -> None:
    words = SignWords(SIGN)
    assert words.may_show([b"step 1\n" * 1000, log])
    for cut in range(1, len(log)):
        assert words.may_show([log[:cut], log[cut:]])


def test_a_log_without_one_of_its_words_is() -> None:
    words = SignWords(SIGN)
    assert not words.may_show([LINE.replace(b"ends", b"stops")])
    assert not words.may_show([])


def test_of_alternatives_one_is_enough() -> None:
    words = SignWords("out of (memory now|disk space)")
    assert words.may_show([b"out of disk space"])
    assert words.may_show([b"OUT OF MEMORY now"])
    assert not words.may_show([b"out of disk"])


@pytest.mark.parametrize("sign", [r"\d+", ".*", "(a|b)c", "x?y?"])
def test_where_no_word_is_sure_every_log_may(sign: str) -> None:
    assert SignWords(sign).may_show([b"step 1\n"])
