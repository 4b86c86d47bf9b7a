"""Logs on S3, as far as a server of the test's own speaks it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from torchtriage.errors import DamagedLog, NotFound
from torchtriage.storage.blobs import BlobStore
from torchtriage.storage.database import StorageUnavailable


class Bucket(BaseHTTPRequestHandler):
    """Keeps objects in memory; where `refuses`, none are taken."""

    objects: dict[str, bytes]
    refuses = False

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if not self.refuses:
            self.objects[self.path] = body
        self._answer(403 if self.refuses else 200)

    def do_HEAD(self) -> None:
        self._answer(200 if self.path in self.objects else 404, self.objects.get(self.path, b""))

    def do_GET(self) -> None:
        if "list-type=2" in self.path:
            self._answer(200, self._listing())
            return
        if self.objects.get(self.path) == b"":
            self._answer(416)  # as S3 answers who wants a part of nothing
            return
        if self.path not in self.objects:
            self._answer(404)
            return
        whole = self.objects[self.path]
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("range", "bytes=0-")).groups()  # type: ignore[union-attr]
        begin = int(first) if first else max(0, len(whole) - int(last))
        end = int(last) + 1 if first and last else len(whole)
        self._answer(206, whole[begin:end], f"bytes {begin}-{min(end, len(whole)) - 1}/{len(whole)}")

    def _listing(self) -> bytes:
        keys = (path.removeprefix("/bucket/") for path in self.objects)
        contents = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-05-01T09:00:00.000Z</LastModified>"
            f"<ETag>1</ETag><Size>{len(self.objects[f'/bucket/{key}'])}</Size></Contents>"
            for key in keys
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>".encode()

    def _answer(self, status: int, body: bytes = b"", of: str = "") -> None:
        self.send_response(status)
        for name, value in {
            "ETag": '"1"',
            "Last-Modified": "Fri, 01 May 2026 09:00:00 GMT",
            "Content-Range": of,
        }.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Bucket]]:
    class Own(Bucket):
        objects: dict[str, bytes] = {}  # noqa: RUF012  of this test alone

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        named = {"ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "ALLOW_HTTP": "true", "REGION": "here",
                 "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}  # fmt: skip
        for name, value in named.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield Own
        server.shutdown()


def test_a_log_is_written_and_read_in_parts(bucket: type[Bucket], tmp_path: Path) -> None:
    store = BlobStore("s3://bucket/logs", tmp_path)
    with store.writing() as file:
        file.write(b"one\ntwo\nthree\n")
        digest, size, lines = file.finish()
        store.keep([file])
    assert (size, lines, len(bucket.objects)) == (14, 3, 1)
    assert b"".join(BlobStore("s3://bucket/logs", tmp_path).chunks(digest)) == b"one\ntwo\nthree\n"
    assert [line.text for line in store.lines(digest, 2, 1)] == ["two"]


def test_it_is_ready_if_something_could_be_written_once(bucket: type[Bucket], tmp_path: Path) -> None:
    store = BlobStore("s3://bucket/logs", tmp_path)
    bucket.refuses = True
    with pytest.raises(StorageUnavailable, match="log store"):
        store.check()
    bucket.refuses = False
    store.check()
    bucket.refuses = True
    store.check()  # which is not written each time
    assert list(bucket.objects) == ["/bucket/logs/torchtriage"]


def test_an_unreachable_store_is_reported(
    bucket: type[Bucket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    store = BlobStore("s3://bucket/logs", tmp_path)
    with pytest.raises(StorageUnavailable, match="log store") as raised:
        store.check()
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("damage", [b"", b"nonsense", bytes(60)])
def test_a_damaged_object_is_reported_and_replaced_by_the_same_log_sent_again(
    bucket: type[Bucket], tmp_path: Path, damage: bytes
) -> None:
    store = BlobStore("s3://bucket/logs", tmp_path)

    def keep() -> str:
        with store.writing() as file:
            file.write(b"one\ntwo\n")
            file.finish()
            store.keep([file])
            return file.sha256

    digest = keep()
    ((key, whole),) = bucket.objects.items()
    bucket.objects[key] = damage
    with pytest.raises(DamagedLog):
        list(store.chunks(digest))
    assert keep() == digest
    assert bucket.objects == {key: whole}
    bucket.refuses = True
    assert keep() == digest  # a whole one is not written again
    del bucket.objects[key]
    with pytest.raises(NotFound):
        store.verify(digest)


def test_objects_are_listed(bucket: type[Bucket], tmp_path: Path) -> None:
    store = BlobStore("s3://bucket/logs", tmp_path)
    store.check()
    with store.writing() as file:
        file.finish()
        store.keep([file])
    assert [(stored.sha256, stored.at.year) for page in store.listed() for stored in page] == [(file.sha256, 2026)]
