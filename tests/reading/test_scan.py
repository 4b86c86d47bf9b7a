from pathlib import Path

import pytest

from torchtriage.reading.scan import Scanner


def never() -> list[bytes]:
    raise AssertionError("compiled although it was in the cache")


def test_what_was_compiled_is_kept_by_its_key(tmp_path: Path) -> None:
    Scanner(lambda: [b"abc"], tmp_path, b"one")
    assert Scanner(never, tmp_path, b"one").which(b"xabcx") == {0}
    assert Scanner(lambda: [b"xyz"], tmp_path, b"two").which(b"xabcx") == set()


@pytest.mark.parametrize("damage", [b"", b"no database", b"\0" * 4096])
def test_a_damaged_cache_is_compiled_again(tmp_path: Path, damage: bytes) -> None:
    Scanner(lambda: [b"abc"], tmp_path, b"one")
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(damage)
    assert Scanner(lambda: [b"abc"], tmp_path, b"one").which(b"abc") == {0}
    assert Scanner(never, tmp_path, b"one").which(b"abc") == {0}


def test_a_cache_that_others_can_write_is_compiled_again(tmp_path: Path) -> None:
    Scanner(lambda: [b"abc"], tmp_path, b"one")
    (kept,) = tmp_path.iterdir()
    kept.chmod(0o620)
    with pytest.raises(AssertionError, match="compiled although"):
        Scanner(never, tmp_path, b"one")


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert Scanner(lambda: [b"abc"], tmp_path / "file" / "cache", b"one").which(b"abc") == {0}


def test_a_scanner_without_some_patterns_keeps_the_indexes_of_the_others() -> None:
    scanner = Scanner(lambda: [b"a", b"b", b"c"])
    assert scanner.without({1}).which(b"abc") == {0, 2}
    assert scanner.ends(b"abc", {0}) == ([(1, 2), (2, 3)], 1)
