import pytest

from torchtriage.reading.log_rotation import pieces_of_logs, sort_key


@pytest.mark.parametrize(
    ("names", "log", "oldest_first"),
    [
        (["train.log", "train.log.1", "train.log.10.gz", "train.log.2.gz"], "train.log", ["train.log.10.gz", "train.log.2.gz", "train.log.1", "train.log"]),
        (["out/train.log-20260430", "out/train.log", "out/train.log-20260429.gz"], "out/train.log", ["out/train.log-20260429.gz", "out/train.log-20260430", "out/train.log"]),
        (["train.log.2026-05-01_09", "train.log.2026-05-01_08", "train.log"], "train.log", ["train.log.2026-05-01_08", "train.log.2026-05-01_09", "train.log"]),
        (["0.log.20260501-090000.gz", "0.log"], "0.log", ["0.log.20260501-090000.gz", "0.log"]),
    ],
)  # fmt: skip
def test_pieces_of_one_log_from_the_oldest_on(names: list[str], log: str, oldest_first: list[str]) -> None:
    assert pieces_of_logs(names) == dict.fromkeys(names, log)
    assert sorted(names, key=sort_key) == oldest_first


@pytest.mark.parametrize(
    "names",
    [
        ["train.log.0", "train.log.1", "train.log"],  # numbered by rank
        ["train.log.1", "train.log.2"],
        ["slurm-4711.out", "slurm-4712.out"],
        ["4711-0.out", "4711-1.out"],
        ["train-2026-05-01.log", "train-2026-05-02.log"],
    ],
)
def test_numbered_files_that_no_rotation_made(names: list[str]) -> None:
    assert pieces_of_logs(names) == {}
