from pathlib import Path

import pytest

from torchtriage.reading.disk_cache import keep, read


def test_what_is_kept_is_read_and_no_one_else_can(tmp_path: Path) -> None:
    path = tmp_path / "home" / "cache" / "words-1.json"
    keep(path, b"[]")
    assert read(path) == b"[]"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_is_not_there_is_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "words-1.json", tmp_path / "cache" / "words-1.json"):
        with pytest.raises(FileNotFoundError):
            read(path)


def test_old_files_go_and_nothing_half_written_stays(tmp_path: Path) -> None:
    (tmp_path / "other-1.pickle").write_bytes(b"")
    for number in range(40):
        keep(tmp_path / f"patterns-{number}.hs", b"content")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"other-1.pickle", "patterns-39.hs"} <= names
    assert len(names) < 20


def test_what_is_used_stays_however_much_is_written_next_to_it(tmp_path: Path) -> None:
    for number in range(40):
        keep(tmp_path / f"patterns-{number}.hs", b"content")
        assert read(tmp_path / "patterns-0.hs") == b"content"
