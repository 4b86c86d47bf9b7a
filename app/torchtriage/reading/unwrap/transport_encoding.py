"""Logs that an interface spelled for transport: base64, also of a gzip file, percent signs of a URL, TeamCity's messages.

The first bytes of a file in, what spells its lines out; then its content in, its lines out.
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

from torchtriage.reading.unwrap.json_documents import LARGEST
from torchtriage.reading.unwrap.line_separators import in_mail, is_mail
from torchtriage.reading.unwrap.numbered_lines import numbered

Lines = Iterator[tuple[int, str]]
_FEWEST = 4  # spelled line ends
_BASE64 = re.compile(
    rb"\s*(?:-----BEGIN [^\n]{0,80}\r?\n|data:[\w/+.=;-]{0,80};base64,)?[A-Za-z\d+/]{64}[A-Za-z\d+/\r\n]*={0,2}\s*(?:-----END [^\n]{0,80}\s*)?"
)
_HEADING = re.compile(rb"-----[^\n]*|data:[^,\n]*,")
_LOOK = 4096  # characters that are decoded to see whether they spell a text
_GZIP, _OF_GZIP = b"\x1f\x8b", 31  # zlib's number for it
_STRANGE = re.compile(rb"[\0-\x06\x0e-\x1a\x7f]")
_PIECE = 1 << 16  # bytes
_URL = re.compile(rb"\s*\S+\s*")
_URL_HEADING = re.compile(rb"\s*data:[^,\s]{0,80},")
_FIELDS = re.compile(rb"\s*[\w.\[\]-]{1,60}=")
_SERVICE = "##teamcity["
_SAID = re.compile(r"##teamcity\[\w{1,40} [^\n]{0,400}?\b(?:text|out|details|errorDetails)='((?:[^'|]++|\|.)*+)'")
_ESCAPED = re.compile(r"\|(?:0x([0-9a-fA-F]{4})|(.))")
_MEANT = {"n": "\n", "r": "\r", "x": "\x85", "l": "\u2028", "p": "\u2029"}


class TooLong(Exception):
    """What was packed is longer than LARGEST."""


def spelling(sample: bytes) -> Callable[[bytes], Lines] | None:
    """-> what takes the lines out of the content of a file that begins with `sample`; None where they are not spelled."""
    if _SERVICE.encode() in sample and any(_said(line) is not None for _, line in numbered(sample)):
        return _in_messages
    first = sample[:200]
    if b" " in first.strip() and not first.lstrip().startswith(b"-----BEGIN"):
        return None
    if _BASE64.fullmatch(sample) and _spells(_decoded(sample[:_LOOK])):
        return _in_base64
    if sample.count(b"%0A") + sample.count(b"%0a") >= _FEWEST and _URL.fullmatch(sample):
        return _in_url
    return None


def unspelled_text(content: bytes) -> bytes | None:
    """-> the text that a file spells from its first byte to its last, for transport: in base64, for a URL or for a
    mail; None where it does not, or where more was packed than is read at once. The first bytes of a file tell too."""
    lines_of = spelling(content) or (in_mail if is_mail(content) else None)
    if lines_of is None or lines_of is _in_messages:
        return None
    try:
        lines = [line for _, line in lines_of(content)]
    except TooLong:
        return None
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


def unpacked(spelled: bytes) -> tuple[bytes, bool] | None:
    """-> the text that a word in base64 spells, and whether it was packed by gzip; None where it spells none, or more
    than is read at once."""
    text = _decoded(spelled)
    packed = text[:2] == _GZIP
    if packed:
        opened = zlib.decompressobj(_OF_GZIP)
        try:
            text = opened.decompress(text, LARGEST)
        except zlib.error:
            return None
        if opened.unconsumed_tail:
            return None
    return (text, packed) if _spells(text) else None


def _spells(text: bytes) -> bool:
    """-> whether base64 was put around a text, or one that is packed."""
    return text[:2] == _GZIP or (
        len(text) >= 48 and len(_STRANGE.findall(text)) * 100 < len(text) and _is_utf8(text[:-4])
    )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _decoded(content: bytes) -> bytes:
    spelled = b"".join(_HEADING.sub(b"", content).split()).rstrip(b"=")
    return binascii.a2b_base64(spelled[: len(spelled) // 4 * 4]) + _rest(spelled[len(spelled) // 4 * 4 :])


def _rest(spelled: bytes) -> bytes:
    return binascii.a2b_base64(spelled + b"=" * (4 - len(spelled))) if len(spelled) > 1 else b""


def _in_base64(content: bytes) -> Lines:
    text = _decoded(content)
    if text[:2] == _GZIP:
        packed = zlib.decompressobj(_OF_GZIP)
        try:
            text = packed.decompress(text, LARGEST)
        except zlib.error:
            return _of(content)
        if packed.unconsumed_tail:
            raise TooLong
    return _of(text)


def _in_url(content: bytes) -> Lines:
    """Yields the lines of a text for a URL, of a form's fields those of the longest one."""
    if _FIELDS.match(content):
        content = max(content.strip().split(b"&"), key=len).partition(b"=")[2].replace(b"+", b" ")
    else:
        content = _URL_HEADING.sub(b"", content).strip()
        content = content if b"%20" in content else content.replace(b"+", b" ")
    return _of(b"".join(_unquoted(content)))


def _unquoted(content: bytes) -> Iterator[bytes]:
    """Yields what a text for a URL spells, piece by piece: every sign at once would take many times its size."""
    at = 0
    while at < len(content):
        end = at + _PIECE
        sign = content.rfind(b"%", end - 2, end)
        end = sign if at < sign < len(content) - 2 else end
        yield unquote_to_bytes(content[at:end])
        at = end


def _of(text: bytes) -> Lines:
    return ((1, line.decode("utf-8", "replace").removesuffix("\r")) for line in text.removesuffix(b"\n").split(b"\n"))


def _in_messages(content: bytes) -> Lines:
    for number, line in numbered(content):
        said = _said(line)
        for each in (line,) if said is None else _ESCAPED.sub(_one, said).removesuffix("\n").split("\n"):
            yield number, each


def _said(line: str) -> str | None:
    """-> what a line says that is such a message, as it is spelled there."""
    begins = line.find(_SERVICE)
    found = _SAID.match(line, begins) if begins >= 0 else None
    return found[1] if found else None


def _one(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _MEANT.get(found[2], found[2])
