import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.domain.line import Line, Position
from torchtriage.reading.lines import lines
from torchtriage.reading.prefixes.paths import FileOrigin

HEAD = "Traceback (most recent call last):"
NAMES = st.sampled_from(
    ["log", "line", "message", "MESSAGE", "stream", "time", "timestamp", "exception", "rank", "host", "kubernetes", "x"]
)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=30))
ANY_JSON = st.dictionaries(
    NAMES, st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
)
TRACEBACK = [HEAD, '  File "/job/train.py", line 30, in <module>', "    main()", "KeyError: 'image'"]


def read(*raw: str | bytes) -> list[Line]:
    encoded = (line.encode() if isinstance(line, str) else line for line in raw)
    return [line for many in lines(enumerate(encoded, 1), FileOrigin(None), Position(1, 0)) for line in many]


@pytest.mark.parametrize(
    "record",
    [
        {"event": "no", "level": "error", "exception": "\n".join(TRACEBACK)},
        {"message": "no", "levelname": "ERROR", "exc_info": "\n".join(TRACEBACK)},
        {"message": "no", "severity": "ERROR", "error": {"stack_trace": "\n".join(TRACEBACK), "type": "KeyError"}},
        {"jsonPayload": {"message": "no", "exception": "\n".join(TRACEBACK)}, "severity": "ERROR", "timestamp": "x"},
        {"msg": "no", "level": "error", "exception": [{"exc_type": "KeyError", "exc_value": "'image'", "frames": [
            {"filename": "/job/train.py", "lineno": 30, "name": "<module>", "line": "main()"}]}]},
    ],
)  # fmt: skip
def test_a_traceback_in_a_field_is_lines_under_the_records_number(record: dict[str, object]) -> None:
    step, *rest = read('{"event": "step 3", "level": "info"}', json.dumps({**record, "rank": 3}))
    assert (step.text, step.number) == ("step 3", 1)
    assert [line.text for line in rest] == ["ERROR: no", *TRACEBACK]
    assert {(line.number, line.rank) for line in rest} == {(2, 3)}


@pytest.mark.parametrize(
    "record",
    [
        {"log": "\n".join(["no", *TRACEBACK]) + "\n", "stream": "stderr", "time": "2026-05-01T09:00:00Z"},
        {
            "text": "\n".join(["no", *TRACEBACK]) + "\n",
            "record": {"message": "no", "time": {"repr": "x", "timestamp": 1777626000.5}},
        },
        {"log": json.dumps({"event": "\n".join(["no", *TRACEBACK]), "level": "error"}) + "\n", "stream": "stderr"},
    ],
)
def test_several_lines_in_one_field_are_lines(record: dict[str, object]) -> None:
    assert [line.text for line in read(json.dumps(record))] == ["no", *TRACEBACK]


def test_torchs_error_file_is_its_traceback_once() -> None:
    values = {
        "message": "KeyError: 'image'",
        "extraInfo": {"py_callstack": "\n".join(TRACEBACK) + "\n", "timestamp": "1777626000"},
    }
    found = read(json.dumps({"message": values}))
    assert [line.text for line in found] == TRACEBACK
    assert found[0].time == "2026-05-01T09:00:00Z"
    copied = read(json.dumps({"message": {**values, "errorCode": 1}}))
    assert [line.text for line in copied] == ["exit code 1", *TRACEBACK]


@pytest.mark.parametrize(
    "raw",
    [
        '{"step": 3, "loss": 0.5}',
        '{"ts": 1777626000.4, "rank": 0, "loss": 5.9}',
        '{"message": 3, "time": 4}',
        '{"cut": "in the mid',
        "{'message': 'a Python dict', 'time': 3}",
        '{"text": "a sample of the data set"}',
        "{}",
        '{"timestamp": 1e999, "log": ["x"]}',
    ],
)
def test_what_is_not_a_record_stays_as_it_is(raw: str) -> None:
    assert [line.text for line in read(raw)] == [raw]


@pytest.mark.parametrize(
    ("record", "time"),
    [
        ({"time": "2026-05-01T09:00:00.5Z"}, "2026-05-01T09:00:00.5Z"),
        ({"timestamp": 1777626000}, "2026-05-01T09:00:00Z"),
        ({"timestamp": 1777626000500}, "2026-05-01T09:00:00.500000Z"),
        ({"timestamp": "1777626000500000000"}, "2026-05-01T09:00:00.500000Z"),
        ({"asctime": "2026-05-01 09:00:00,123"}, "2026-05-01T09:00:00.123"),
        ({"timestamp": 10**400}, None),
        ({"timestamp": "yesterday"}, None),
    ],
)
def test_a_records_time(record: dict[str, object], time: str | None) -> None:
    assert read(json.dumps({"line": "boom", **record}))[0].time == time


@pytest.mark.parametrize(
    "expected",
    [
        {"kubernetes": {"pod_name": "train-worker-1", "host": "gpu-7"}},
        {"kubernetes": {"pod_name": "train-worker-1", "node_name": "gpu-7"}},
        {"kubernetes": {"node": {"name": "gpu-7"}, "pod": {"name": "train-worker-1"}}},
        {"host": {"name": "gpu-7"}, "kubernetes": {"pod": {"name": "train-worker-1"}}},
        {"labels": {"pod": "train-worker-1", "node": "gpu-7"}},
        {"labels": {"pod": "train-worker-1", "instance": "gpu-7"}},
        {"fields": {"pod": "train-worker-1", "node_name": "gpu-7"}},
        {"k8s.node.name": "gpu-7", "k8s.pod.name": "train-worker-1"},
        {"kubernetes.node.name": "gpu-7", "kubernetes.pod.name": "train-worker-1"},
        {"hostname": "train-worker-1", "kubernetes": {"pod_name": "train-worker-1", "pod_node_name": "gpu-7"}},
        {"resource": {"labels": {"pod_name": "train-worker-1"}}, "labels": {"compute.googleapis.com/resource_name": "gpu-7"}},
    ],
)  # fmt: skip
def test_the_host_of_a_pods_record_is_its_node(expected: dict[str, object]) -> None:
    (line,) = read(json.dumps({"log": "boom\n", "time": "2026-05-01T09:00:00Z", **expected}))
    assert (line.host, line.pod) == ("gpu-7", "train-worker-1")


def test_what_a_record_shows_of_its_writer() -> None:
    (line,) = read(
        json.dumps({"log": "boom\n", "stream": "stderr", "kubernetes": {"pod_name": "train-worker-1", "host": "gpu-7"}})
    )
    assert (line.text, line.host, line.pod) == ("boom", "gpu-7", "train-worker-1")
    (line,) = read(json.dumps({"message": "boom", "level": "error", "rank": 11, "local_rank": 3, "hostname": "gpu-7"}))
    assert (line.rank, line.local_rank, line.host) == (11, 3, "gpu-7")
    out, err = (
        read(json.dumps({"log": "a\n", "stream": name, "time": "x"}))[0].stream for name in ("stdout", "stderr")
    )
    assert out != err


def test_what_docker_cut_is_joined_under_the_first_pieces_number() -> None:
    said = json.dumps(
        {"event": "no", "level": "error", "exception": "\n".join([*TRACEBACK[:-1], "KeyError: " + "x" * 30_000])}
    )
    pieces = [said[at : at + 16384] for at in range(0, len(said), 16384)]
    pieces[-1] += "\n"
    records = [json.dumps({"log": piece, "stream": "stderr", "time": "x"}) for piece in pieces]
    other = json.dumps({"log": "step 3\n", "stream": "stdout", "time": "x"})
    assert [(line.number, line.text[:12]) for line in read(records[0], other, *records[1:])] == [
        (2, "step 3"),
        (1, "ERROR: no"),
        *((1, line[:12]) for line in TRACEBACK[:-1]),
        (1, "KeyError: xx"),
    ]


def test_pieces_whose_end_is_missing_are_not_lost() -> None:
    assert [
        line.text for line in read("2026-05-01T09:00:00.5Z stderr P Kill", "2026-05-01T09:00:00.5Z stdout F step")
    ] == [
        "step",
        "Kill",
    ]


def test_lines_that_a_collector_took_the_ends_off_are_not_pieces() -> None:
    records = [json.dumps({"log": f"step {at}", "stream": "stderr", "time": "x"}) for at in range(5)]
    assert [line.text for line in read(*records)] == [f"step {at}" for at in range(5)]


def test_a_record_is_shown_as_it_is_and_a_piece_of_one_as_it_reads() -> None:
    single = json.dumps({"log": "boom\n", "stream": "stderr", "time": "x"})
    assert read(single)[0].raw == single
    several = json.dumps({"event": "\n".join(TRACEBACK), "level": "error"})
    assert [line.raw for line in read(several)] == TRACEBACK


def test_progress_bars_and_two_writers_in_one_line() -> None:
    bar = " 45%|████▌     | 45/100 [00:01<00:02, 30.1it/s]"
    assert [line.text for line in read(f"{bar}\r{bar}\r{bar}KeyError: 'x'")] == [bar, "KeyError: 'x'"]
    assert [line.text for line in read(f"{bar}\r{bar}\r{{'loss': 0.5}}")] == [bar, "{'loss': 0.5}"]
    assert [line.text for line in read(f"step 3{HEAD}")] == ["step 3", HEAD]


@pytest.mark.parametrize(
    ("bar", "kept"),
    [
        (" 45%|████▌     | 45/100 [00:01<00:02, 30.1it/s]", []),
        ("29948it [35:34, 14.0it/s]", []),
        (" 20/50 [>.....] - ETA: 2:36 - loss: 0.3071", [" 20/50 [>.....] - ETA: 2:36 - loss: 0.3071"]),
    ],
)
@pytest.mark.parametrize("ended", ["Killed", "Terminated", "Segmentation fault (core dumped)"])
def test_how_a_program_ended_is_after_its_last_bar(bar: str, kept: list[str], ended: str) -> None:
    assert [line.text for line in read(f"{bar}\r{bar}{ended}")][-1] == ended
    assert [line.text for line in read(f"{bar}\r{bar}")][-1:] == [bar]
    assert len(read(f"{bar}\r{bar}\r{bar}{ended}")) == 2 + 2 * len(kept)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"caf\xe9 closed", "café closed"),
        ("显存不足".encode("gbk") + b": CUDA", "显存不足: CUDA"),
        ("显存不足".encode()[:-1] + b": CUDA", "显存不\ufffd: CUDA"),
        (b"a\0b\0", "ab"),
        (b"lost\x08\x08\x08\x08", ""),
        (b"50%\x08 \x08\x08 \x08\x08 \x08done", "done"),
    ],
)
def test_bytes_that_are_not_plain_utf8(raw: bytes, text: str) -> None:
    assert "".join(line.text for line in read(raw)) == text


@given(
    st.lists(
        st.one_of(st.binary(max_size=200), st.builds(lambda data: json.dumps(data).encode(), ANY_JSON)), max_size=12
    )
)
def test_any_bytes_and_any_json_are_read(raw: list[bytes]) -> None:
    found = read(*raw)
    assert all(1 <= line.number <= b"\n".join(raw).count(b"\n") + 1 for line in found)
    for line in found:
        (line.text + line.raw + (line.host or "") + (line.time or "") + line.stream).encode()


@pytest.mark.parametrize(
    "around", ["ERROR worker 3 died: '{}'", '{{"status": "FAILED", "error": "{}", "rank": 3', "msg='{}' level=error"]
)
def test_a_traceback_with_its_line_feeds_spelled_is_lines(around: str) -> None:
    result = read(around.format(json.dumps("\n".join(TRACEBACK))[1:-1]))
    assert [line.text for line in result][-3:-1] == TRACEBACK[1:3]
    assert result[-1].text.startswith(TRACEBACK[3])
    assert {line.number for line in result} == {1}


def test_a_report_of_paddles_in_one_line() -> None:
    rule = "-" * 22
    text = f" {rule} C++ Traceback (most recent call last): {rule} No stack trace in paddle. {rule} Error Message Summary: {rule} FatalError: `Termination signal` is detected."
    assert [line.text.strip() for line in read(text)][-2:] == [rule, "FatalError: `Termination signal` is detected."]


def test_what_is_before_a_flat_traceback_is_one_piece() -> None:
    text = f'JobError: ScriptError: Command "run" {HEAD} File "/run/a.py", line 3, in <module> go() ValueError: no'
    first, *_, last = [line.text for line in read(text)]
    assert (first, last) == (f'JobError: ScriptError: Command "run" {HEAD}', "ValueError: no")


@pytest.mark.parametrize("name", ["pipe", "fd"])
def test_a_field_of_any_name_shows_the_stream_of_a_line(name: str) -> None:
    record = {"event": "line", "data": "[rank1]: RuntimeError: HIP error: unspecified launch failure\n", name: "stderr"}
    assert [(line.text, line.rank) for line in read(json.dumps(record))] == [
        ("RuntimeError: HIP error: unspecified launch failure", 1)
    ]
