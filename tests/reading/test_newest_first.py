import pytest

from tests.logs import steps, traceback
from torchtriage.reading.unwrap.decoder_interface import Head
from torchtriage.reading.unwrap.newest_first import is_newest_first, oldest_first, order_written


def as_bytes(lines: list[str]) -> list[bytes]:
    return [line.encode() for line in lines]


LOG = as_bytes([*steps([0], count=9), *steps([0], count=9), *traceback("KeyError: 'x'")])


@pytest.mark.parametrize("lines", [LOG, LOG[:18], LOG[9:], [b"12:00:0%d a" % at for at in range(9)]])
def test_a_log_is_known_from_its_end(lines: list[bytes]) -> None:
    turned = lines[::-1]
    assert is_newest_first(Head(b"\n".join(turned), whole=True))
    assert [turned[at] for at in order_written(turned)] == lines
    assert not is_newest_first(Head(b"\n".join(lines), whole=True))


def test_records_of_one_instant() -> None:
    times = [b"2026-05-01T09:00:00"] * len(LOG)
    assert oldest_first(LOG[::-1], times) == [*range(len(LOG))][::-1]
    assert oldest_first(LOG, times) is None
