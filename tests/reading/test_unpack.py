from __future__ import annotations

import gzip
import io
import itertools
import random
import tarfile
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import hostile_uploads
from tests.services.logs import tar
from torchtriage.errors import LogTooLarge, StorageUnavailable, UnreadableLog
from torchtriage.reading import unpack as unpack_module
from torchtriage.reading.unpack import UnpackBudget, Upload, clean_name, unpack
from torchtriage.reading.zstd import compress

LIMIT = 1_000_000
LINES = b"".join(b"step %d loss 2.5\n" % i for i in range(5000))


def unpacked(content: bytes, name: str = "log", step: int = 1000, limit: int = LIMIT) -> dict[str, bytes]:
    chunks = (content[at : at + step] for at in range(0, len(content), step))
    return {file.name: b"".join(file.chunks) for file in unpack(Upload(name, chunks), UnpackBudget(limit))}


def pack_gzip(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zstd(content: bytes) -> bytes:
    return compress(content)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd, lambda content: gzip.compress(zstd(content))])
@pytest.mark.parametrize("content", [LINES, b"x", b""])
def test_what_comes_out_is_what_was_packed(pack: Callable[[bytes], bytes], content: bytes) -> None:
    assert unpacked(pack(content)) == {"log": content}


def test_several_members_and_frames_in_a_row_are_one_file() -> None:
    assert unpacked(gzip.compress(b"one\n") + gzip.compress(b"two\n")) == {"log": b"one\ntwo\n"}
    assert unpacked(zstd(b"one\n") + zstd(b"two\n")) == {"log": b"one\ntwo\n"}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_is_its_files_each_unpacked(mode: str) -> None:
    content = tar({"a/0.log": LINES, "./a/1.log.gz": gzip.compress(b"one\n"), "empty.log": b""}, mode)
    assert unpacked(content, "run.tar.gz") == {"a/0.log": LINES, "a/1.log": b"one\n", "empty.log": b""}


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def test_a_zip_is_its_files_each_unpacked() -> None:
    content = zipped({"b/1.log.gz": gzip.compress(b"one\n"), "a/error.json": b"{}", "a/0.log": LINES, "../c": b""})
    assert list(unpacked(content, "run.zip").items()) == [
        ("c", b""),
        ("a/0.log", LINES),
        ("b/1.log", b"one\n"),
        ("a/error.json", b"{}"),
    ]
    with pytest.raises(UnreadableLog, match="without files"):
        unpacked(zipped({}), "run.zip")


@given(data=st.data())
def test_a_damaged_zip_is_said(data: st.DataObject) -> None:
    whole = bytearray(zipped({"a.log": LINES, "b.log": b"two\n"}))
    whole[data.draw(st.integers(4, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(UnreadableLog):
        unpacked(bytes(whole))
    with pytest.raises(UnreadableLog, match="broken archive"):
        unpacked(bytes(whole[: data.draw(st.integers(10, len(whole) - 23))]))


def test_names_and_folders_in_an_archive_lead_nowhere() -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for kind, name in ((tarfile.SYMTYPE, "link"), (tarfile.DIRTYPE, "dir"), (tarfile.CHRTYPE, "device")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        for name in ("../../etc/passwd", "/abs", "a\\..\\b", "new\nline", "x" * 999):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"1"))
    assert list(unpacked(made.getvalue())) == ["etc/passwd", "abs", "a/b", "new?line", "x" * 300]


@pytest.mark.parametrize(
    ("name", "clean"), [("", "log"), ("..", "log"), ("/", "log"), ("显存.log", "显存.log"), ("a\0b", "a?b")]
)
def test_names(name: str, clean: str) -> None:
    assert clean_name(name) == clean


@pytest.mark.parametrize(
    "pack", [pack_gzip, zstd, lambda content: pack_gzip(tar({"a.log": content, "b.log": content}, "w"))]
)
@given(data=st.data())
def test_a_cut_anywhere_is_said(pack: Callable[[bytes], bytes], data: st.DataObject) -> None:
    whole = pack(random.Random(1).randbytes(2000) + LINES)
    cut = data.draw(st.integers(6, len(whole) - 1))
    with pytest.raises(UnreadableLog) as raised:
        unpacked(whole[:cut])
    assert "\n" not in raised.value.message
    assert raised.value.message.startswith("log: a broken archive: ")


@pytest.mark.parametrize("begin", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\0" * 257 + b"ustar"])
@given(rest=st.binary(max_size=3000))
def test_junk_after_a_magic_number_is_unreadable_or_read(begin: bytes, rest: bytes) -> None:
    with suppress(UnreadableLog):
        files = unpacked(begin + rest)
        assert sum(map(len, files.values())) <= LIMIT


def bomb(pack: Callable[[bytes], bytes]) -> bytes:
    return pack(b"x" * 50_000_000)


@pytest.mark.parametrize(
    "pack",
    [
        lambda: bomb(gzip.compress),
        lambda: bomb(zstd),
        lambda: gzip.compress(bomb(gzip.compress)),
        lambda: gzip.compress(bomb(zstd)),
        lambda: tar({"a.log": b"x" * 600_000, "b.log": b"x" * 600_000}),
        lambda: zipped({"a.log": b"x" * 50_000_000}),
    ],
)
def test_a_bomb_ends_at_the_limit_in_little_memory(pack: Callable[[], bytes]) -> None:
    packed = pack()

    def read() -> None:
        for file in unpack(Upload("log", iter([packed])), UnpackBudget(LIMIT)):
            for _ in file.chunks:
                pass

    tracemalloc.start()
    with pytest.raises(LogTooLarge, match="limit of 1 MB"):
        read()
    assert tracemalloc.get_traced_memory()[1] < 8_000_000 + len(packed)
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", hostile_uploads.PACKED)
def test_little_that_makes_much_work_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack_module, "_MAX_FILES", 2500)
    packed = hostile_uploads.PACKED[name]()
    came_out = 0

    def read() -> None:
        nonlocal came_out
        for file in unpack(Upload("log", iter([packed])), UnpackBudget(20 << 30)):
            for chunk in file.chunks:
                came_out += len(chunk)

    tracemalloc.start()
    with pytest.raises((UnreadableLog, LogTooLarge)):
        read()
    assert came_out <= max(32 << 20, 1000 * len(packed))
    assert tracemalloc.get_traced_memory()[1] < 40_000_000 + 4 * len(packed)
    tracemalloc.stop()


def test_what_is_thrown_away_counts() -> None:
    """Files of 9 MB in 200 archives, none of which is a log's."""
    with pytest.raises(LogTooLarge, match="limit of 10 MiB"):
        unpacked(hostile_uploads.skipped_archives(), limit=10 << 20)


def test_a_log_that_says_the_same_again_and_again_is_taken() -> None:
    line = b"module.py:1501: UserWarning: Full backward hook is firing when gradients are computed\n"
    log = line * (48_000_000 // len(line))
    assert unpacked(gzip.compress(log), limit=10**9) == {"log": log}


def test_who_watches_is_reported_of_everything_and_can_end_it() -> None:
    class Enough(Exception):
        pass

    def watched(most: int) -> int:
        seen = 0

        def watch(size: int) -> None:
            nonlocal seen
            if seen + size > most:
                raise Enough
            seen += size

        for file in unpack(Upload("log", iter([packed]), watch=watch), UnpackBudget(LIMIT)):
            for _ in file.chunks:
                pass
        return seen

    packed = gzip.compress(tar({"a.log": LINES, "b.log": b""}, "w"))
    result = watched(LIMIT)
    assert result > len(packed) + len(LINES)
    with pytest.raises(Enough):
        watched(result - 1)


def test_a_zip_that_can_not_be_kept_is_not_a_fault_of_the_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(StorageUnavailable, match="No such file or directory"):
        unpacked(zipped({"a.log": LINES}))


def test_headers_of_an_archive_are_not_read_into_memory() -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo("a.log")
        member.pax_headers = {"comment": "x" * 5_000_000}
        archive.addfile(member)
    with pytest.raises(UnreadableLog, match="headers are too long"):
        unpacked(gzip.compress(made.getvalue()), limit=10_000_000)


def test_too_many_wrappings_and_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack_module, "_MAX_FILES", 50)
    with pytest.raises(UnreadableLog, match="nested more than 3 times"):
        unpacked(gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"x")))))
    with pytest.raises(UnreadableLog, match="more than 50 files"):
        unpacked(tar({str(i): b"" for i in range(51)}))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        folder = tarfile.TarInfo("only")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    with pytest.raises(UnreadableLog, match="without files"):
        unpacked(made.getvalue())


def test_an_upload_is_read_as_it_comes() -> None:
    def endless() -> Iterator[bytes]:
        for i in itertools.count():
            yield b"step %d\n" % i

    (file,) = itertools.islice(unpack(Upload("log", endless()), UnpackBudget(10**9)), 1)
    assert next(file.chunks).startswith(b"step 0\n")
