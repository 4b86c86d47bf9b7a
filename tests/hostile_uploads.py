"""Small uploads that cause much work, by name, for tests of the limits."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Literal

from torchtriage.reading.zstd import CompressionParameter, compress

MB = 1 << 20
_SECRETS = b"password=hunter2hunter api_key=AKIAIOSFODNN7EXAMPLE\n"
Made = Callable[[], bytes]


def sparse_gnu() -> bytes:
    """One file of 2 GiB that is all hole, in GNU tar's old sparse format."""
    member = tarfile.TarInfo("a.log")
    member.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[386:398] = b"%011o\0" % (2 << 30)
    header[398:410] = b"%011o\0" % 0
    header[483:495] = b"%011o\0" % (2 << 30)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    return gzip.compress(bytes(header) + bytes(1024))


def sparse_pax(form: str) -> bytes:
    size = str(2 << 30)
    headers = {
        "0.0": {"GNU.sparse.size": size, "GNU.sparse.numblocks": "1", "GNU.sparse.offset": size, "GNU.sparse.numbytes": "0"},
        "0.1": {"GNU.sparse.size": size, "GNU.sparse.map": f"{size},0", "GNU.sparse.name": "a.log"},
        "1.0": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": size, "GNU.sparse.name": "a.log"},
    }[form]  # fmt: skip
    return tarred([("a.log", b"1\n0\n0\n".ljust(512, b"\0"))], pax_headers=headers)


def tarred(
    files: list[tuple[str, bytes]],
    pax_headers: dict[str, str] | None = None,
    mode: Literal["w", "w:gz"] = "w:gz",
) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.pax_headers = pax_headers or {}
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def empty_members(count: int, kind: bytes) -> bytes:
    member = tarfile.TarInfo("a")
    member.type = kind
    return gzip.compress(member.tobuf() * count + bytes(1024), 1)


def unread_members() -> bytes:
    """A member of a type that is not read, with a large body that is skipped."""
    member = tarfile.TarInfo("a")
    member.size = 100 * MB
    member.type = tarfile.FIFOTYPE
    return gzip.compress(gzip.compress(member.tobuf() + bytes(100 * MB)))


def skipped_archives() -> bytes:
    """Archives that are each within the limits but exceed them together. None is part of the log."""
    inside = gzip.compress(tarfile.TarInfo("a.log").tobuf() + bytes(9 * MB))
    return tarred([(f"{number}.tar.gz", inside) for number in range(200)], mode="w")


def overlapping_zip(count: int) -> bytes:
    """A zip whose directory names the same 10 MB many times."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", b"x" * (10 * MB))
    whole = made.getvalue()
    at = whole.index(b"PK\x01\x02")
    end = whole.rindex(b"PK\x05\x06")
    listed = whole[at:end] * count
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count & 0xFFFF, count & 0xFFFF, len(listed), at, 0)
    return whole[:at] + listed + tail


def zipped(content: bytes, way: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", way) as archive:
        archive.writestr("a.log", content)
    return made.getvalue()


def wrapped(pack: Callable[[bytes], bytes], content: bytes, times: int) -> bytes:
    for _ in range(times):
        content = pack(content)
    return content


def form(parts: bytes) -> bytes:
    return parts + b"--x--\r\n"


_PART = b'--x\r\nContent-Disposition: form-data; name="log"; filename="a"\r\n\r\nstep 1\n\r\n'
PACKED: dict[str, Made] = {
    "sparse file of GNU tar": sparse_gnu,
    "sparse file, pax 0.0": lambda: sparse_pax("0.0"),
    "sparse file, pax 0.1": lambda: sparse_pax("0.1"),
    "sparse file, pax 1.0": lambda: sparse_pax("1.0"),
    "gzip in gzip": lambda: wrapped(gzip.compress, b"step 1\n" * (100 * MB // 7), 2),
    "zstd": lambda: compress(bytes(100 * MB)) * 30,
    "zstd with a large window": lambda: compress(
        bytes(100 * MB),
        options={int(CompressionParameter.window_log): 27, int(CompressionParameter.enable_long_distance_matching): 1},
    ),
    "one line": lambda: compress(b"x" * (100 * MB)) * 20,
    "UTF-16": lambda: wrapped(gzip.compress, "步骤 1\n".encode("utf-16-le") * (10 * MB), 2),
    "gzip too deep": lambda: wrapped(gzip.compress, b"x", 4),
    "zip too deep": lambda: wrapped(zipped, b"x", 4),
    "zip of one thing often": lambda: overlapping_zip(500),
    "zip with a long list": lambda: overlapping_zip(100_000),
    "zip by bzip2": lambda: zipped(bytes(50 * MB), zipfile.ZIP_BZIP2),
    "zip by lzma": lambda: zipped(bytes(50 * MB), zipfile.ZIP_LZMA),
    "tar of empty files": lambda: empty_members(30_000, tarfile.REGTYPE),
    "tar of folders": lambda: empty_members(120_000, tarfile.DIRTYPE),
    "tar with a body to skip": unread_members,
    "tar with a long header": lambda: tarred([("a.log", b"x")], {"comment": "x" * 5 * MB}),
    "tar with names of names": lambda: gzip.compress(_long_names(900)),
    "gzip with a long name": lambda: gzip.compress(b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 300_000),
}
DENSE: dict[str, Made] = {
    "nothing but secrets": lambda: wrapped(gzip.compress, _SECRETS * (30 * MB // len(_SECRETS)), 2)
}
FORMS: dict[str, Made] = {
    "100,000 parts": lambda: form(_PART * 100_000),
    "a part with many headers": lambda: form(b"--x\r\n" + b"X-A: b\r\n" * 200_000 + b"\r\n1\r\n"),
    "a part with a long header": lambda: form(b"--x\r\nX-A: " + b"b" * (3 * MB) + b"\r\n\r\n1\r\n"),
}


def _long_names(count: int) -> bytes:
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1
    return (member.tobuf() + b"x".ljust(512, b"\0")) * count + tarfile.TarInfo("a").tobuf() + bytes(1024)
