from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.errors import DamagedLog, NotFound
from torchtriage.reading.zstd import decompress
from torchtriage.storage import durable_files, zstd_frames
from torchtriage.storage.blob_writer import concurrently
from torchtriage.storage.blobs import BlobStore
from torchtriage.storage.database import StorageUnavailable


def keep(blobs: BlobStore, chunks: Iterable[bytes]) -> tuple[str, int, int]:
    with blobs.writing() as file:
        for chunk in chunks:
            file.write(chunk)
        found = file.finish()
        blobs.keep([file])
        return found


@pytest.mark.parametrize("whole", [True, False])
def test_many_files_are_stored_at_once(blobs: BlobStore, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not whole:
        monkeypatch.setattr(durable_files, "_syncfs", lambda: None)  # as where Linux's call is missing
    settled: list[int] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        settled.append(handle)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with ExitStack() as stack:
        writers = [stack.enter_context(blobs.writing()) for _ in range(200)]
        for number, writer in enumerate(writers):
            writer.write(b"step %d\n" % (number // 2))  # two of each
        told = {writer.finish() for writer in writers}
        blobs.keep(writers)
    assert {b"".join(blobs.chunks(sha256)) for sha256, _, _ in told} == {b"step %d\n" % number for number in range(100)}
    assert left_over(blobs) == []
    folders = len({sha256[:2] for sha256, _, _ in told})
    assert len(settled) == 2 * folders + (0 if whole else 100)  # each folder's name and the names in it


def left_over(blobs: BlobStore) -> list[str]:
    return sorted(path.name for path in blobs.incoming.folder.iterdir() if path.name != "lock")


def test_bytes_come_back_as_they_went_in(blobs: BlobStore) -> None:
    content = os.urandom(3000) + b"\0\r\n\xff" * 100
    sha256, size, lines = keep(blobs, [content[:1], content[1:]])
    assert sha256 == hashlib.sha256(content).hexdigest()
    assert size == len(content)
    assert lines == content.count(b"\n") + 1  # the last one has no end
    assert b"".join(blobs.chunks(sha256)) == content
    assert left_over(blobs) == []


def test_a_stored_file_is_plain_zstd(blobs: BlobStore, tmp_path: Path) -> None:
    sha256, _, _ = keep(blobs, [b"one\ntwo\n"] * 3)
    data = (tmp_path / "logs" / sha256[:2] / f"{sha256}.zst").read_bytes()
    assert decompress(data) == b"one\ntwo\n" * 3


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=40),
    end=st.booleans(),
    frame=st.integers(1, 60),
    first=st.integers(1, 45),
    count=st.integers(0, 50),
)
def test_any_lines_are_found_whatever_the_frames(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bool, frame: int, first: int, count: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if end else b"")
    folder = tmp_path_factory.mktemp("blobs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zstd_frames, "FRAME", frame)
        patch.setattr(zstd_frames, "MAX_READ_BYTES", 3 * frame)
        store = BlobStore(str(folder), folder)
        sha256, _, told = keep(store, [content])
        expected = content.split(b"\n")
        expected = expected[:-1] if expected[-1] == b"" else expected
        found = store.lines(sha256, first, count)
        assert b"".join(store.chunks(sha256)) == content
    assert told == len(expected)
    assert [line.line for line in found] == list(range(first, min(first + count, told + 1)))
    wanted = [line.decode("utf-8", "replace").removesuffix("\r") for line in expected[first - 1 : first - 1 + count]]
    assert [line.text for line in found] == wanted


def test_only_the_frames_that_are_needed_are_read(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(1)
    block = b"".join(b"%d step %d loss %r\n" % (i, i, dice.random()) for i in range(20_000))
    sha256, size, lines = keep(blobs, [block] * 40)
    assert size > 5 * zstd_frames.FRAME
    read: list[int] = []

    def counted(data: memoryview) -> bytes:
        read.append(len(data))
        return decompress(data)

    monkeypatch.setattr(zstd_frames, "decompress", counted)
    for line in (1, lines // 2, lines):
        read.clear()
        assert blobs.lines(sha256, line, 1)[0].text.startswith(f"{(line - 1) % 20_000} step")
        assert len(read) <= 2


def test_a_line_without_end_is_cut(blobs: BlobStore) -> None:
    sha256, _, lines = keep(blobs, [b"x" * 1_000_000] * 10 + [b"\nlast"])
    first, last = blobs.lines(sha256, 1, 10)
    assert lines == 2
    assert (len(first.text), first.cut) == (16 << 10, True)
    assert (last.line, last.text, last.cut) == (2, "last", False)


def test_an_index_longer_than_the_first_guess(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_frames, "FRAME", 8)
    monkeypatch.setattr(zstd_frames, "INDEX_GUESS", 100)
    sha256, _, lines = keep(blobs, (b"line %04d\n" % i for i in range(1000)))
    assert lines == 1000
    assert blobs.lines(sha256, 777, 1)[0].text == "line 0776"


def test_an_unfinished_file_leaves_nothing(blobs: BlobStore) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x" * 10_000_000
        raise RuntimeError("the sender went away")

    with pytest.raises(RuntimeError):
        keep(blobs, chunks())
    assert left_over(blobs) == []
    assert not blobs.has(hashlib.sha256(b"x" * 10_000_000).hexdigest())


def test_the_same_bytes_are_kept_once_by_many_at_once(blobs: BlobStore, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: keep(blobs, [b"same\n" * 1000]), range(30)))
    assert len(found) == 1
    assert len(list((tmp_path / "logs").rglob("*.zst"))) == 1
    assert left_over(blobs) == []


def test_a_removed_file_is_not_found(blobs: BlobStore) -> None:
    sha256, _, _ = keep(blobs, [b"gone\n"])
    blobs.lines(sha256, 1, 1)
    blobs.remove(sha256)
    blobs.remove(sha256)
    assert not blobs.has(sha256)
    with pytest.raises(NotFound):
        blobs.lines(sha256, 1, 1)
    with pytest.raises(NotFound):
        list(blobs.chunks(sha256))


@pytest.mark.parametrize("damage", [b"", b"nonsense", bytes(100)])
def test_a_damaged_file_is_reported(blobs: BlobStore, tmp_path: Path, damage: bytes) -> None:
    sha256, _, _ = keep(blobs, [b"whole\n"])
    (tmp_path / "logs" / sha256[:2] / f"{sha256}.zst").write_bytes(damage)
    with pytest.raises(DamagedLog, match=f"the stored log is damaged: {sha256}: "):
        blobs.lines(sha256, 1, 1)


def test_files_of_a_crash_are_swept_and_running_uploads_are_not(blobs: BlobStore, tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from torchtriage.storage.blobs import BlobStore\n"
        "blobs = BlobStore(sys.argv[1], Path(sys.argv[1]))\n"
        "with blobs.writing() as file: file.write(b'half'); os._exit(9)\n"
    )
    root = tmp_path / "logs"
    subprocess.run([sys.executable, "-c", program, str(root)], check=False)
    assert len({blobs.incoming.folder, *(root / "incoming").iterdir()}) == 2
    other = BlobStore(str(root), root)
    with blobs.writing() as file:
        file.write(b"under way")
        other.incoming.sweep()
        assert left_over(blobs) != []
        file.finish()
        blobs.keep([file])
    assert set((root / "incoming").iterdir()) == {blobs.incoming.folder, other.incoming.folder}
    other.incoming.close()
    assert list((root / "incoming").iterdir()) == [blobs.incoming.folder]


def test_a_full_disk_is_reported_and_leaves_nothing(blobs: BlobStore) -> None:
    # The child may write files of 1 MB only; what the kernel then says is an OSError like ENOSPC.
    program = (
        "import resource, signal, sys, os; from pathlib import Path; from torchtriage.storage.blobs import BlobStore\n"
        "from torchtriage.storage.database import StorageUnavailable\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "blobs = BlobStore(sys.argv[1], Path(sys.argv[1]))\n"
        "try:\n"
        "    with blobs.writing() as file:\n"
        "        file.write(os.urandom(20 << 20)); file.finish()\n"
        "except StorageUnavailable as error: print(error.message)\n"
    )
    root = str(blobs.incoming.folder.parents[1])
    done = subprocess.run([sys.executable, "-c", program, root], capture_output=True, text=True)
    assert "File too large" in done.stdout, done.stderr
    assert left_over(blobs) == []


def test_a_store_without_a_folder_works_the_same(tmp_path: Path) -> None:
    # In memory, by the same calls as S3.
    store = BlobStore("memory:///", tmp_path)
    sha256, _, _ = keep(store, [b"one\ntwo\n"])
    assert keep(store, [b"one\ntwo\n"])[0] == sha256
    assert [line.text for line in store.lines(sha256, 2, 5)] == ["two"]
    assert b"".join(store.chunks(sha256)) == b"one\ntwo\n"
    assert left_over(store) == []
    store.remove(sha256)
    assert not store.has(sha256)
    with pytest.raises(NotFound):
        store.lines(sha256, 1, 1)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageUnavailable, match="Not a directory"):
        BlobStore(str(tmp_path / "file" / "logs"), tmp_path)


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=40),
    end=st.booleans(),
    frame=st.integers(31, 90),
    line=st.integers(1, 45),
    back=st.booleans(),
)
def test_segments_contain_each_line_once_and_complete(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bool, frame: int, line: int, back: bool
) -> None:
    content = b"\n".join(lines) + (b"\n" if end else b"")
    folder = tmp_path_factory.mktemp("blobs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zstd_frames, "FRAME", frame)
        store = BlobStore(str(folder), folder)
        sha256, _, total = keep(store, [content])
        found = list(store.segments(sha256, line, back))
    expected = content.split(b"\n")
    told: dict[int, bytes] = {}
    for first, text in found:
        for number, one in enumerate(text.split(b"\n"), first):
            assert number not in told or not one  # behind a segment's last line feed may stand nothing
            told.setdefault(number, one)
    wanted = range(1, min(line, total) + 1) if back else range(min(line, total), total + 1)
    for number in wanted if total else ():
        assert told[number] == expected[number - 1]


def test_files_are_handled_concurrently_with_results_in_order() -> None:
    both = threading.Barrier(2, timeout=60)

    def work(item: int) -> int:
        both.wait()  # breaks where one waits for the other to end
        return item * 10

    assert concurrently(work, [1, 2]) == [10, 20]
    assert concurrently(lambda item: item, [1]) == [1]
    with pytest.raises(ZeroDivisionError):
        concurrently(lambda item: 1 // item, [1, 0, 2])


@pytest.mark.parametrize("url", ["logs", "memory:///"])
def test_missing_files_are_reported(tmp_path: Path, url: str) -> None:
    store = BlobStore(url if "://" in url else str(tmp_path / url), tmp_path)
    there = [keep(store, [content])[0] for content in (b"one", b"two")]
    assert store.missing([]) == store.missing(there) == []
    assert store.missing(["ab12", there[0], "cd34"]) == ["ab12", "cd34"]


def place_of(blobs: BlobStore, sha256: str) -> Path:
    return blobs.incoming.folder.parents[1] / sha256[:2] / f"{sha256}.zst"


def test_a_change_of_any_byte_is_found_or_changes_nothing(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_frames, "FRAME", 40)
    content = b"".join(b"step %d loss 0.5\n" % number for number in range(6)) + b"the last line"
    sha256, _, lines = keep(blobs, [content])
    place = place_of(blobs, sha256)
    whole = place.read_bytes()
    told = [line.text for line in blobs.lines(sha256, 1, 99)]
    for at in range(len(whole)):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            blobs.verify(sha256)
        except DamagedLog:
            continue
        assert b"".join(blobs.chunks(sha256)) == content
        assert [line.text for line in blobs.lines(sha256, 1, 99)] == told
    assert lines == len(told) == 7
    for end in range(len(whole)):
        place.write_bytes(whole[:end])
        with pytest.raises(DamagedLog):
            blobs.verify(sha256)
    place.write_bytes(whole)
    blobs.verify(sha256)


def test_a_damaged_file_is_replaced_by_the_same_log_sent_again(blobs: BlobStore) -> None:
    sha256, _, _ = keep(blobs, [b"whole\n"])
    place = place_of(blobs, sha256)
    whole = place.read_bytes()
    for damage in (b"", b"nonsense", bytes(len(whole)), whole[:-1], keep_and_read(blobs, b"another\n")):
        place.write_bytes(damage)
        with pytest.raises(DamagedLog):
            blobs.verify(sha256)
        keep(blobs, [b"whole\n"])
        assert place.read_bytes() == whole
        assert [line.text for line in blobs.lines(sha256, 1, 9)] == ["whole"]
    state = place.stat()
    keep(blobs, [b"whole\n"])
    assert (place.stat().st_ino, place.stat().st_mtime_ns) == (state.st_ino, state.st_mtime_ns)  # whole ones stay
    assert left_over(blobs) == []


def keep_and_read(blobs: BlobStore, content: bytes) -> bytes:
    return place_of(blobs, keep(blobs, [content])[0]).read_bytes()


def test_a_reader_with_a_cached_index_reads_the_replaced_file(
    blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"".join(b"line %d\n" % number for number in range(40))
    monkeypatch.setattr(zstd_frames, "FRAME", 50)
    sha256, _, _ = keep(blobs, [content])
    other = BlobStore(str(blobs.incoming.folder.parents[1]), blobs.incoming.folder)
    assert other.lines(sha256, 40, 1)[0].text == "line 39"  # and knows where the frames are
    place_of(blobs, sha256).write_bytes(b"")
    monkeypatch.setattr(zstd_frames, "FRAME", 90)  # as a version does that stores them otherwise
    keep(blobs, [content])
    with pytest.raises((DamagedLog, StorageUnavailable)):
        other.lines(sha256, 40, 1)
    assert other.lines(sha256, 40, 1)[0].text == "line 39"
    assert b"".join(other.chunks(sha256)) == content


def test_a_store_that_could_not_open_files_for_a_while_works_again(tmp_path: Path) -> None:
    program = (
        "import os, resource, sys; from pathlib import Path; from torchtriage.storage.blobs import BlobStore\n"
        "from torchtriage.storage.database import StorageUnavailable\n"
        "blobs = BlobStore(sys.argv[1], Path(sys.argv[1]))\n"
        "with blobs.writing() as file: file.write(b'one'); file.finish(); blobs.keep([file])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096)); held = []\n"
        "try:\n"
        "    while True: held.append(os.open('/dev/null', os.O_RDONLY))\n"
        "except OSError: pass\n"
        "for use in (lambda: blobs.lines(file.sha256, 1, 1), blobs.check):\n"
        "    try: use()\n"
        "    except StorageUnavailable as error: print('Too many open files' in error.message)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n"
        "print(blobs.lines(file.sha256, 1, 1)[0].text)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True", "one"], done.stderr


def test_foreign_files_in_the_folder_of_uploads_stay_and_are_logged(
    blobs: BlobStore, caplog: pytest.LogCaptureFixture
) -> None:
    incoming = blobs.incoming.folder.parent
    stray, foreign = incoming / "stray", incoming / "foreign"
    stray.touch()
    (foreign / "lock").mkdir(parents=True)
    blobs.incoming.sweep()
    assert sorted(incoming.iterdir()) == sorted([blobs.incoming.folder, stray, foreign])
    assert f"cannot remove {stray}: Not a directory" in caplog.text
    assert f"cannot remove {foreign}: " in caplog.text


def test_only_stored_files_are_listed(blobs: BlobStore, tmp_path: Path) -> None:
    digests = {keep(blobs, [b"run %d\n" % number])[0] for number in range(20)}
    (tmp_path / "logs" / "notes.zst").touch()
    with blobs.writing() as file:
        file.write(b"under way")
        listed = [stored for page in blobs.listed() for stored in page]
    assert {stored.sha256 for stored in listed} == digests
    assert len(listed) == 20
    assert all(abs(stored.at.timestamp() - time.time()) < 3600 for stored in listed)
