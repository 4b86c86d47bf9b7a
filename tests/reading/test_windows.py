import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.errors import UnreadableLog
from torchtriage.reading.blocks import MAX_LINE_LENGTH, blocks
from torchtriage.reading.scan import Scanner
from torchtriage.reading.windows import AFTER, AFTER_WIDE, BEFORE, BEFORE_WIDE, HEAD, MAX_DIVISOR, TAIL, WHOLE, Windows

SCANNER = Scanner(lambda: [rb"HIT"])


def kept_pieces(data: bytes, chunk: int = 1 << 20, number: int = 1) -> tuple[list[tuple[int, bytes]], Windows]:
    windows = Windows(SCANNER, frozenset(), lambda index, line: True, number)
    chunks = (data[start : start + chunk] for start in range(0, len(data), chunk))
    pieces = windows.read(blocks(chunks, "log"))
    return [
        line for first, piece in pieces for line in enumerate(piece.removesuffix(b"\n").split(b"\n"), first)
    ], windows


def test_lines_around_a_hit_are_kept_with_their_numbers() -> None:
    filler = [b"healthy line number %06d" % number for number in range(40_000)]
    filler[20_000] = b"a HIT stands here"
    lines, windows = kept_pieces(b"\n".join(filler) + b"\n")
    found = [number for number, line in lines if number > HEAD // 20 and number < 40_000 - TAIL // 20]
    assert found == list(range(20_001 - BEFORE, 20_001 + AFTER + 1))
    assert dict(lines)[20_001] == b"a HIT stands here"
    assert windows.lines == 40_000


def test_above_the_head_of_a_traceback_more_is_kept_and_no_line_twice() -> None:
    filler = [b"healthy line number %06d" % number for number in range(40_000)]
    for at in (20_000, 20_030):
        filler[at] = b"a HIT stands here"
    filler[20_045] = b"LONG begins here"
    scanner = Scanner(lambda: [rb"HIT", rb"LONG"])
    windows = Windows(scanner, frozenset({1}), lambda index, line: True)
    pieces = windows.read(blocks([b"\n".join(filler) + b"\n"], "log"))
    lines = [one for first, piece in pieces for one in enumerate(piece.removesuffix(b"\n").split(b"\n"), first)]
    found = [number for number, line in lines if number > HEAD // 20 and number < 40_000 - TAIL // 20]
    assert found == list(range(20_001 - BEFORE, 20_046 + AFTER_WIDE + 1))
    assert 20_046 - BEFORE_WIDE < 20_001 + AFTER + 1 < 20_031 - BEFORE
    assert all(line == filler[number - 1] for number, line in lines)


@pytest.mark.parametrize(
    ("number", "part"), [(1, 1), (WHOLE, 1), (2 * WHOLE, 2), (MAX_DIVISOR * WHOLE, MAX_DIVISOR), (10**6, MAX_DIVISOR)]
)
def test_of_thousands_of_files_each_keeps_less(number: int, part: int) -> None:
    lines, windows = kept_pieces(b"".join(b"%09d\n" % line for line in range(1, 60_001)), number=number)
    assert 0 <= (HEAD + TAIL) // part // 10 - len(lines) <= 2
    assert lines[0] == (1, b"000000001")
    assert lines[-1] == (60_000, b"000060000")
    assert windows.lines == 60_000


@given(st.lists(st.sampled_from([b"", b"x", b"HIT", b"some text", b"y" * 50]), max_size=60), st.integers(1, 70))
def test_a_small_log_is_kept_whole_however_it_arrives(lines: list[bytes], chunk: int) -> None:
    data = b"\n".join(lines)
    found, windows = kept_pieces(data, chunk)
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert found == list(enumerate(expected, 1))
    assert windows.lines == len(expected)
    assert windows.size == len(data)


def test_a_line_without_an_end_is_cut_and_does_not_grow_forever() -> None:
    parts = list(blocks((b"x" * (1 << 20) for _ in range(9)), "log"))
    assert max(map(len, parts)) <= MAX_LINE_LENGTH + (1 << 20) + 1


def test_utf16_is_read_as_text() -> None:
    assert b"".join(blocks([("Killed\r\n" * 3).encode("utf-16")], "log")).decode() == "Killed\r\n" * 3


@pytest.mark.parametrize("junk", [bytes(range(256)) * 64, b"\x7fELF" + b"\x00\x01\x02\x03" * 4096])
def test_binary_input_is_refused_by_name(junk: bytes) -> None:
    with pytest.raises(UnreadableLog, match="core-1: binary data"):
        list(blocks([junk], "core-1"))


def test_a_log_that_starts_with_a_hole_of_nul_bytes_is_a_log() -> None:
    assert list(blocks([b"\0" * 30_000 + b"Killed\n"], "log"))


def test_only_what_goes_by_is_sampled() -> None:
    _, short = kept_pieces(b"step 1 loss 0.5\nthe end\n")
    assert not short.sampled
    _, long = kept_pieces(b"a healthy line\n" * 400_000)
    assert long.sampled
    assert all(number < long.lines for number, _ in long.sampled)
