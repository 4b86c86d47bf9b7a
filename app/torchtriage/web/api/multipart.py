"""Parses multipart/form-data as a stream: yields the files in a body piece by piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from enum import Enum

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from torchtriage.errors import BadInput
from torchtriage.reading.unpack import Upload

_MAX_PARTS = 5000


class BadForm(BadInput):
    """The form is incomplete or invalid, or contains an unknown field."""

    code = "bad_form"


def boundary_of(content_type: str) -> bytes:
    """Returns the boundary in a Content-Type. Raises BadForm."""
    boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    if not boundary:
        raise BadForm("the Content-Type has no boundary")
    return boundary


def uploads(chunks: Iterator[bytes], boundary: bytes, fields: Collection[str]) -> Iterator[Upload]:
    """Yields the parts that belong to `fields`. Each must be read before the next one is requested.

    Leaves out file fields without a file. Raises BadForm.
    """
    form = _Form(chunks, boundary)
    for count, headers in enumerate(form.parts()):
        if count == _MAX_PARTS:
            raise BadForm(f"more than {_MAX_PARTS} parts")
        field, filename = _names(headers)
        if field not in fields:
            raise BadForm(f"unknown field {field[:100]!r}; send the log as {' or '.join(sorted(fields))}")
        content = form.content()
        first = next(content, b"")
        if first or filename:
            yield Upload(filename or field, _rejoined(first, content))
        for _ in content:
            pass  # skips the bytes that the caller did not read


class _Kind(Enum):
    BEGIN = "part_begin"
    NAME = "header_field"
    VALUE = "header_value"
    HEADER = "header_end"
    HEADERS = "headers_finished"
    DATA = "part_data"
    PART = "part_end"
    END = "end"


class _Form:
    """Turns the callbacks of the parser into iterators."""

    def __init__(self, chunks: Iterator[bytes], boundary: bytes) -> None:
        self._chunks = chunks
        self._seen: deque[tuple[_Kind, bytes]] = deque()
        try:
            self._parser = MultipartParser(boundary)
        except FormParserError as error:
            raise BadForm(f"the form can't be read: {error}") from error
        for kind in _Kind:
            self._parser.set_callback(kind.value, self._on_event(kind))

    def parts(self) -> Iterator[dict[bytes, bytes]]:
        """Yields the headers of each part, with names in lower case. Read the part's content before the next part."""
        headers: dict[bytes, bytes] = {}
        name = value = b""
        for kind, data in self._events():
            if kind is _Kind.END:
                return
            if kind is _Kind.NAME:
                name += data
            elif kind is _Kind.VALUE:
                value += data
            elif kind is _Kind.HEADER:
                headers[name.lower()] = value
                name = value = b""
            elif kind is _Kind.HEADERS:
                yield headers
                headers = {}

    def content(self) -> Iterator[bytes]:
        """Yields the bytes of the current part."""
        for kind, data in self._events():
            if kind is _Kind.PART:
                return
            yield data

    def _events(self) -> Iterator[tuple[_Kind, bytes]]:
        while True:
            while self._seen:
                yield self._seen.popleft()
            chunk = next(self._chunks, None)
            if chunk is None:
                raise BadForm("the form is incomplete")
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise BadForm(f"the form can't be read: {error}") from error

    def _on_event(self, kind: _Kind):  # type: ignore[no-untyped-def]
        def see(data: bytes = b"", start: int = 0, end: int = 0) -> None:
            self._seen.append((kind, bytes(data[start:end])))

        return see


def _names(headers: dict[bytes, bytes]) -> tuple[str, str]:
    """Returns the field and the file name of a part; empty if missing."""
    options = parse_options_header(headers.get(b"content-disposition", b"").decode("latin-1"))[1]
    field, filename = (options.get(name, b"").decode("utf-8", "replace") for name in (b"name", b"filename"))
    return field, filename


def _rejoined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
