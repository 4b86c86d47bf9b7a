"""Objects at `s3://BUCKET/PREFIX`, by key. Needs the extra `s3`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.extras import require

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig

_PAGE = 1000  # objects per listing request
_ONCE: RetryConfig = {"max_retries": 1, "retry_timeout": timedelta(seconds=5)}


class ObjectStoreError(OSError):
    """The object store failed."""


class AccessDenied(ObjectStoreError):
    """The object store answers, but does not allow the request."""


class ObjectChanged(ObjectStoreError):
    """The object has changed since it was listed."""


@dataclass(frozen=True, slots=True)
class ListedObject:
    key: str
    etag: str | None
    bytes: int
    changed_at: datetime


class S3Objects:
    """Methods raise ObjectStoreError, and FileNotFoundError if there is no such object."""

    def __init__(self, url: str, once: bool = False) -> None:
        """`once` limits retries, for callers that need a fast answer. Raises MissingExtra and ObjectStoreError."""
        require("s3", f"a folder at s3:// ({url})")
        import obstore
        from obstore.store import MemoryStore, from_url

        with suppress(FileNotFoundError):
            # This creates obstore's runtime, which happens only once per process. If it first happened when no file can
            # be opened, it would fail forever.
            obstore.head(MemoryStore(), "torchtriage")
        with _translated():
            self._store: ObjectStore = from_url(url, retry_config=_ONCE) if once else from_url(url)

    def size(self, key: str) -> int:
        import obstore

        with _translated():
            return obstore.head(self._store, key)["size"]

    def tail(self, key: str, length: int) -> tuple[int, bytes]:
        """Returns the object's size and its last `length` bytes."""
        import obstore

        try:
            with _translated():
                found = obstore.get(self._store, key, options={"range": {"suffix": length}})
                return found.meta["size"], bytes(found.bytes())
        except ObjectStoreError:
            if self.size(key):
                raise
            return 0, b""  # S3 rejects a range request for an empty object

    def part(self, key: str, start: int, end: int) -> memoryview:
        """Returns the bytes from `start` up to, not including, `end`."""
        import obstore

        with _translated():
            return memoryview(obstore.get_range(self._store, key, start=start, end=end))

    def stream(self, key: str, etag: str | None, least: int) -> Iterator[bytes]:
        """Yields the object's bytes, at least `least` at a time. Raises ObjectChanged if its etag is different."""
        import obstore

        with _translated():
            got = obstore.get(self._store, key, options={"if_match": etag} if etag else {})
            for chunk in got.stream(min_chunk_size=least):
                yield bytes(chunk)

    def put(self, key: str, content: bytes | Path) -> None:
        import obstore

        with _translated():
            obstore.put(self._store, key, content)

    def remove(self, key: str) -> None:
        import obstore

        with _translated():
            obstore.delete(self._store, key)

    def listed(self) -> Iterator[list[tuple[str, datetime]]]:
        """Yields (key, time of last change) of all objects in pages."""
        for page in self.pages():
            yield [(found.key, found.changed_at) for found in page]

    def pages(self) -> Iterator[list[ListedObject]]:
        """Yields all objects in pages, sorted by key."""
        import obstore

        with _translated():
            for page in obstore.list(self._store, chunk_size=_PAGE):
                yield [ListedObject(meta["path"], meta["e_tag"], meta["size"], meta["last_modified"]) for meta in page]


@contextmanager
def _translated() -> Iterator[None]:
    from obstore.exceptions import BaseError, PermissionDeniedError, PreconditionError

    try:
        yield
    except PermissionDeniedError as error:
        raise AccessDenied(str(error)) from error
    except PreconditionError as error:
        raise ObjectChanged(str(error)) from error
    except BaseError as error:
        raise ObjectStoreError(str(error)) from error
