from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from torchtriage.reading.reread_lines import MAX_LENGTH, TAIL, LineSpan, WantedLines, joined, reread
from torchtriage.reading.sources import from_bytes, kept_stdin, open_path


def numbered(count: int) -> bytes:
    return b"".join(b"line %d of the log\r\n" % number for number in range(1, count + 1))


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_found_by_their_numbers_wherever_they_stand(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("run.log.gz" if packed else "run.log")
    path.write_bytes(gzip.compress(numbered(300_000), 1) if packed else numbered(300_000))
    spans = (LineSpan(None, 1, 2), LineSpan(None, 150_000, 150_001), LineSpan(None, 299_999, 300_005))
    seen = reread(open_path(path), WantedLines(spans))
    assert sorted(number for _, number in seen.lines) == [1, 2, 150_000, 150_001, 299_999, 300_000]
    assert all(text == f"line {number} of the log" for (_, number), text in seen.lines.items())
    assert not seen.tails


def test_the_end_of_a_file_is_read_in_whole_lines_with_their_numbers() -> None:
    log = b"".join(b"[rank%d]: step %d\n" % (number % 4, number) for number in range(1, 100_001))
    tail = reread(from_bytes(log), WantedLines(tails=frozenset([None]))).tails[None]
    assert (tail[-1].number, tail[-1].rank, tail[-1].text) == (100_000, 0, "step 100000")
    assert tail[0].text == f"step {tail[0].number}"
    assert TAIL - 100 < sum(len(line.raw) + 1 for line in tail) <= TAIL


def test_a_file_without_a_last_line_end_and_a_very_long_line() -> None:
    seen = reread(
        from_bytes(b"a\n" + b"x" * 100_000 + b"\nend"), WantedLines((LineSpan(None, 1, 9),), frozenset([None]))
    )
    assert [seen.lines[None, number][:3] for number in (1, 2, 3)] == ["a", "xxx", "end"]
    assert len(seen.lines[None, 2]) == MAX_LENGTH
    assert seen.tails[None][-1].number == 3


def test_only_the_files_that_are_asked_for_are_read(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_bytes(numbered(5))
    wanted = WantedLines((LineSpan("rank1.log", 2, 2),), ranks=frozenset([2]))
    seen = reread(open_path(tmp_path), wanted)
    assert seen.lines == {("rank1.log", 2): "line 2 of the log"}
    assert list(seen.tails) == ["rank2.log"]


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(numbered(3))))
    with kept_stdin() as run:
        for _ in range(2):
            assert b"".join(chunk for file in run.files() for chunk in file.chunks()) == numbered(3)


def test_spans_that_touch_are_one() -> None:
    assert joined([LineSpan(None, 5, 7), LineSpan(None, 1, 4), LineSpan(None, 20, 21), LineSpan(None, 6, 6)]) == [
        LineSpan(None, 1, 7),
        LineSpan(None, 20, 21),
    ]
