import pytest

from app.reading.prefixes import Labels, labels, take_off

NONE = Labels()


@pytest.mark.parametrize(
    ("raw", "text", "rank", "local_rank", "host"),
    [
        ("[rank3]: KeyError: 'x'", "KeyError: 'x'", 3, None, None),
        ("[default1]:[rank5]: KeyError: 'x'", "KeyError: 'x'", 5, 1, None),
        ("[default2]:Traceback (most recent call last):", "Traceback (most recent call last):", None, 2, None),
        ("[1,7]<stderr>:Killed", "Killed", 7, None, None),
        ("(WorkerDict pid=410, ip=10.0.0.9) ValueError: no", "ValueError: no", None, None, "10.0.0.9"),
        ("[pod/train-worker-1/pytorch] 2026-05-01T09:00:00.5Z [rank1]: boom", "boom", 1, None, "train-worker-1"),
        ("May  1 09:00:00 gpu-3 torchrun[41]: [rank0]: boom", "boom", 0, None, "gpu-3"),
        ("\x1b[31m[rank2]: boom\x1b[0m", "boom", 2, None, None),
        ('{"log":"[rank4]: boom\\n","stream":"stderr","time":"2026-05-01T09:00:00Z"}', "boom", 4, None, None),
        ("2026-05-01T09:00:00.123456789Z stderr F [rank1]: boom", "boom", 1, None, None),
        ("[gpu-3:2]AttributeError: no", "AttributeError: no", None, 2, "gpu-3"),
        ("INFO no prefix at all", "INFO no prefix at all", None, None, None),
    ],
)
def test_prefixes_come_off_and_tell(
    raw: str, text: str, rank: int | None, local_rank: int | None, host: str | None
) -> None:
    origin = take_off(raw, NONE)
    assert (origin.text, origin.rank, origin.local_rank, origin.host) == (text, rank, local_rank, host)


def test_a_plain_number_is_a_label_only_where_most_lines_have_one() -> None:
    assert take_off("3: Killed", NONE).rank is None
    known = labels([f"{rank}: step 1" for rank in range(8)])
    assert take_off("3: Killed", known).rank == 3


def test_host_labels_part_the_streams_of_two_hosts() -> None:
    known = labels([f"gpu-{number % 2}: step {number}" for number in range(10)])
    first, second = take_off("gpu-0: boom", known), take_off("gpu-1: boom", known)
    assert (first.host, second.host) == ("gpu-0", "gpu-1")
    assert first.stream != second.stream


def test_a_json_log_line_of_the_program_itself_stays_as_it_is() -> None:
    raw = '{"step": 3, "loss": 0.5}'
    assert take_off(raw, NONE).text == raw


def test_a_programs_name_on_every_line_is_no_host() -> None:
    assert not labels(["srun: error: Task launch failed"] * 6).host
    assert not labels([f"RuntimeError: {number}" for number in range(6)]).host
    assert labels([f"node-{letter}: step 1" for letter in "abab"]).host


def test_a_loggers_prefix_comes_off_a_traceback() -> None:
    assert take_off("ERROR 01-11 13:09:40 engine.py:366] ValueError: no", NONE).text == "ValueError: no"
