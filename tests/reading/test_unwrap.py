import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log_wrappings import NEWEST_FIRST, WRAPPINGS, stamp
from torchtriage.domain.line import Position
from torchtriage.reading.blocks import blocks
from torchtriage.reading.lines import lines
from torchtriage.reading.prefixes.paths import FileOrigin
from torchtriage.reading.unwrap import Unwrapped, decoders, unwrap
from torchtriage.reading.unwrap.decoder_interface import MAX_BYTES, Decoded, Decoder, from_lines, numbered_lines

LOG = [f"step {at} loss 0.5" for at in range(12)]


def read(content: bytes) -> list[tuple[int, str]]:
    """Returns number in the file and text of each line, in the order of reading."""
    found = unwrap(blocks(iter((content,)), "log"))
    kept = enumerate(b"".join(found.blocks).removesuffix(b"\n").split(b"\n"), 1)
    read = lines(kept, FileOrigin(None), Position(1, 0), found.numbers, not found.rewritten)
    return [(line.number, line.text) for many in read for line in many]


@pytest.mark.parametrize("form", [*WRAPPINGS, *NEWEST_FIRST])
def test_the_lines_and_their_numbers_come_back(form: str) -> None:
    content, numbers = {**WRAPPINGS, **NEWEST_FIRST}[form](LOG)
    found = [(number, text) for number, text in read(content) if "step" in text]
    assert [text.split("] ")[-1].split("\r")[-1].strip() for _, text in found] == LOG or "bar" in form
    assert [number for number, _ in found] == numbers


@pytest.mark.parametrize(
    "content",
    [
        b'{\n  "model": "llama",\n  "lr": 0.1\n}\nstep 1\nstep 2\n',
        b'[[1, 2],\n [3, 4]]\nstep 1\n',
        b'[rank0]: Traceback\n',
        b'{"step": 1}\n{"step": 2}\n',
        b'{"best_metric": 0.5, "log_history": [{"loss": 0.5, "step": 1}]}',
        b"name,line of code\n",
        b"2026-05-01 09:00:00 a\n2026-05-01 09:00:02 b\n2026-05-01 09:00:01 c\n" * 9,
        b"",
    ],
)  # fmt: skip
def test_everything_else_goes_by_untouched(content: bytes) -> None:
    found = unwrap(iter((content,)))
    assert (b"".join(found.blocks), found.numbers, found.warning) == (content, None, None)


def test_a_traceback_of_one_instant_keeps_its_order_where_the_export_kept_it() -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 3, in <module>',
        "    main()",
        "KeyError: 'x'",
    ]
    newest = [f"{stamp(9)}\t{line}" for line in trace] + [f"{stamp(at)}\tstep {at}" for at in range(8, 0, -1)]
    assert [text for _, text in read("\n".join(newest).encode())][-4:] == trace


def test_lines_without_a_time_stay_below_theirs() -> None:
    newest = [f"{stamp(9)}\tTraceback (most recent call last):", '  File "/job/train.py", line 3', "KeyError: 'x'"]
    newest += [f"{stamp(at)}\tstep {at}" for at in range(8, 0, -1)]
    assert [number for number, _ in read("\n".join(newest).encode())] == [*range(11, 3, -1), 1, 2, 3]


def test_a_table_of_several_lines_a_row() -> None:
    content = b'Date,Host,Message\r\n2026-05-01T09:00:00Z,gpu-7,"one\ntwo"\r\n2026-05-01T09:00:01Z,gpu-7,three\r\n'
    assert read(content) == [(2, "one"), (2, "two"), (4, "three")]


def test_a_line_without_a_time_in_a_table_continues_with_the_row_above() -> None:
    rows = [f"{stamp(at)}\tstep {at}" for at in range(9)]
    content = "\n".join(
        [*rows, f"{stamp(9)}\tTraceback (most recent call last):", "KeyError: 'x'", f"{stamp(10)}\tstep 10"]
    )
    assert [text for _, text in read(content.encode())][-3:] == [
        "Traceback (most recent call last):",
        "KeyError: 'x'",
        "step 10",
    ]


def test_one_form_inside_of_another() -> None:
    rows = "".join(f'"{stamp(at)}","gpu-7","step {at}, loss 0.5"\r\n' for at in range(9))
    content = json.dumps({"state": "FAILED", "output": f"Date,Host,Message\r\n{rows}"}).encode()
    assert [text for _, text in read(content)] == [f"step {at}, loss 0.5" for at in range(9)]


def test_what_is_too_large_to_be_turned_is_read_as_it_is_and_said() -> None:
    line = json.dumps({"timestamp": 1777626000, "message": "x" * 1000}) + ",\n"

    def endless() -> Iterator[bytes]:
        yield b"[" + line.encode()
        for _ in range(2 * MAX_BYTES // len(line) // 1000):
            yield line.encode() * 1000

    found: Unwrapped = unwrap(endless())
    assert found.warning is not None
    assert f"more than {MAX_BYTES >> 20} MB" in found.warning
    assert sum(map(len, found.blocks)) > MAX_BYTES


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"[{", b'{"events": [', b"Date,Message\n", b'{"message": "x", "time": ']),
)
def test_any_bytes_are_unwrapped(rest: bytes, begin: bytes) -> None:
    found = unwrap(iter((begin + rest,)))
    count = b"".join(found.blocks).count(b"\n")
    assert found.numbers is None or len(found.numbers) in (count, count + 1)


def test_a_decoder_needs_no_more_than_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(content: bytes) -> Decoded:
        return from_lines((number, line.removeprefix("%")) for number, line in numbered_lines(content))

    toy = Decoder("a toy", lambda head: decode if head.sample.startswith(b"%") else None)
    content = "".join(f"%{line}\n" for line in LOG).encode()
    assert b"".join(unwrap(iter((content,))).blocks) == content
    monkeypatch.setattr(decoders, "DECODERS", (toy, *decoders.DECODERS))
    assert [text for _, text in read(content)] == LOG


def test_each_decoder_has_a_name_of_its_own() -> None:
    names = [decoder.name for decoder in decoders.DECODERS]
    assert len(set(names)) == len(names)
