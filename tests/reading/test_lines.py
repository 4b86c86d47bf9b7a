"""Lines that are taken as they are, because one with other digits was, are those that are looked at one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.domain.line import Line, Position
from torchtriage.reading import lines as reading
from torchtriage.reading.prefixes.paths import FileOrigin

CORPUS = Path(__file__).parents[1] / "corpus"


def read(data: bytes) -> list[Line]:
    return [line for many in reading.lines([(1, data)], FileOrigin(None), Position(1, 0)) for line in many]


def test_lines_that_differ_in_digits_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [path.read_bytes() for path in sorted(CORPUS.glob("*/log.txt"))]
    quick = [read(log) for log in logs]
    asked = 0

    def looked_at(*_: object) -> None:
        nonlocal asked
        asked += 1

    monkeypatch.setattr(reading, "template_of", looked_at)
    assert quick == [read(log) for log in logs]
    assert asked > 0


@pytest.mark.parametrize(
    ("first", "second", "rank", "time"),
    [
        ("at 2026-99-01 99:11:12 step", "at 2026-05-01 10:11:12 step", None, "2026-05-01T10:11:12"),
        ("host2 waits", "rank2 waits", 2, None),
        ("99: waits", "12: waits", None, None),
    ],
)
def test_what_is_before_a_line_is_seen_after_one_that_has_nothing(
    first: str, second: str, rank: int | None, time: str | None
) -> None:
    line = read(f"{first}\n{second}\n".encode())[1]
    assert (line.text, line.rank, line.time) == (second, rank, time)


@pytest.mark.parametrize(
    "text", ["step 7", '  File "/job/model.py", line 7, in forward', "at 2026-05-01 10:11:12 step 7"]
)
def test_lines_after_torchs_own_label_are_their_ranks(text: str) -> None:
    first, second = read(f"[rank3]: {text}\n[rank4]: {text.replace('7', '8')}\n".encode())
    assert (first.rank, second.rank) == (3, 4)
    assert (first.stream, second.stream) == ("|3/", "|4/")
    assert (first.text, second.text) == (text, text.replace("7", "8"))
    assert first.time == second.time
