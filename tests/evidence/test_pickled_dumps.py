from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.file_types import FileForm, form_of
from torchtriage.reading.pickled_dumps import MAX_BYTES, as_text, is_pickled_dump
from torchtriage.reading.sources import open_path
from torchtriage.reading.unpack import UnpackBudget, Upload, unpack

WORDS = b"X\x07\0\0\0entriesX\x09\0\0\0pg_configX\x06\0\0\0seq_id"
DUMP = {
    "version": "2.9",
    "pg_config": {},
    "entries": [
        {"profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "frames": [{"name": "f", "line": 1}], "seq_id": 7}
    ],
}


def text_of(data: bytes) -> bytes:
    return b"".join(as_text(iter((data,))))


def reason_of(data: bytes) -> str:
    loaded = json.loads(text_of(data))
    assert loaded["flight_recorder"] == "unread"
    return str(loaded["reason"])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_of_any_protocol_comes_out_of_an_upload_as_json(protocol: int) -> None:
    [file] = unpack(Upload("_dump_3", iter((pickle.dumps(DUMP, protocol),))), UnpackBudget(None))
    text = b"".join(file.chunks)
    assert json.loads(text) == DUMP
    assert text.count(b"\n") == 3  # what it tells of the groups, an entry, and the end
    assert form_of(text) is FileForm.FLIGHT_RECORDER


def test_the_first_versions_pickled_the_entries_alone() -> None:
    data = pickle.dumps(DUMP["entries"], 2)
    assert is_pickled_dump(data)
    assert json.loads(text_of(data)) == {"entries": DUMP["entries"]}


def test_other_pickles_are_not_dumps() -> None:
    assert not is_pickled_dump(pickle.dumps({"model": [1, 2]}))
    assert not is_pickled_dump(b"")


class _Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("it was run",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_no_class_of_a_pickle_is_called(protocol: int) -> None:
    assert "more than plain values" in reason_of(pickle.dumps({**DUMP, "x": _Attack()}, protocol))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"r\xff\xff\xff\x7f.", "more than plain values"),  # a memo of two billion places
        (b"]" * 2_000_000 + b".", "more than 1,000,000 lists"),
        (b"X\xff\xff\xff\xffaaa.", "broken"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "broken"),
        (b"u.", "broken"),
        (b"}N.", "not a flight-recorder dump"),
        (b"P1\n.", "more than plain values"),
    ],
)
def test_a_hostile_pickle_costs_a_line(body: bytes, reason: str) -> None:
    assert reason in reason_of(b"\x80\x02" + WORDS + body)


def test_a_list_that_holds_itself_many_times_ends() -> None:
    nested: object = [1]
    for _ in range(12):
        nested = [nested] * 30
    assert b"\n" in text_of(pickle.dumps({**DUMP, "pg_status": nested}, 2))
    endless: list[object] = []
    endless.append(endless)
    assert b"\n" in text_of(pickle.dumps({**DUMP, "pg_status": endless}, 2))


def test_what_is_too_large_is_read_to_its_end_and_left_out() -> None:
    chunks = iter([pickle.dumps(DUMP, 2), *[bytes(1 << 20)] * (MAX_BYTES >> 20)])
    assert "larger than 32 MB" in json.loads(b"".join(as_text(chunks)))["reason"]
    assert next(chunks, None) is None


def test_only_what_is_pending_or_new_keeps_its_stack() -> None:
    frames = [{"name": "f", "filename": "/job/train.py", "line": 1}]
    entries = [{"seq_id": at, "state": "started" if at == 3 else "completed", "frames": frames} for at in range(500)]
    data = json.loads(text_of(pickle.dumps({"pg_config": {}, "entries": entries}, 2)))["entries"]
    kept = [entry["seq_id"] for entry in data if "frames" in entry]
    assert kept == [3, *range(400, 500)]


def test_a_pickle_that_is_not_a_dump_is_left_out_with_the_reason(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "_dump_0").write_bytes(pickle.dumps({"weights": [0.5, 0.25]}))
    (tmp_path / "train.log").write_text("step 1 loss 2.5\n")
    sources = engine.triage(open_path(tmp_path)).run.sources
    assert [(source.file, source.taken_for, source.note) for source in sources] == [
        ("_dump_0", "unread", "a pickle, but no dump of the flight recorder"), ("train.log", "log", None),
    ]  # fmt: skip
