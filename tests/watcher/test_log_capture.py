from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage.watcher.log_capture import keep_log


def lines(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield b"line %06d\n" % number


def test_a_short_one_is_kept_whole(tmp_path: Path) -> None:
    for count in (0, 1, 50, 80):
        assert keep_log(lines(count), tmp_path / "log", 1000) == 0
        assert (tmp_path / "log").read_bytes() == b"".join(lines(count)), count


def test_of_a_long_one_beginning_and_end_are_kept_and_nothing_is_doubled(tmp_path: Path) -> None:
    for count in (120, 1000, 4321):
        left_out = keep_log(lines(count), tmp_path / "log", 1000)
        kept = (tmp_path / "log").read_bytes()
        whole = b"".join(lines(count))
        head, _, tail = kept.partition(b"\n[torchtriage left out %d bytes here]\n" % left_out)
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head) + len(tail) + left_out == len(whole)
        assert 250 <= len(head) < 1000
        assert 375 <= len(tail) <= 800
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_broken_stream_leaves_no_temporary_files(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield from lines(500)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        keep_log(broken(), tmp_path / "log", 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
