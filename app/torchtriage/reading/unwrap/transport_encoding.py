"""Decodes logs that were encoded for transport: base64 (also of a gzip file), percent signs of a URL, a mail's
quoted-printable, TeamCity's service messages."""

from __future__ import annotations

import binascii
import quopri
import re
import zlib
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import (
    MAX_BYTES,
    Decode,
    Decoded,
    Decoder,
    Head,
    from_lines,
    numbered_lines,
    too_large,
    untouched,
)

_MIN_COUNT = 4  # encoded line ends
_BASE64 = lazy_regex(
    rb"\s*(?:-----BEGIN [^\n]{0,80}\r?\n|data:[\w/+.=;-]{0,80};base64,)?[A-Za-z\d+/]{64}[A-Za-z\d+/\r\n]*={0,2}\s*(?:-----END [^\n]{0,80}\s*)?"
)
_HEADING = lazy_regex(rb"-----[^\n]*|data:[^,\n]*,")
_PROBE = 4096  # characters that are decoded to check whether they are text
_GZIP, _GZIP_WBITS = b"\x1f\x8b", 31  # zlib's number for gzip
_CONTROL = lazy_regex(rb"[\0-\x06\x0e-\x1a\x7f]")
_PIECE = 1 << 16  # bytes
_URL = lazy_regex(rb"\s*\S+\s*")
_URL_HEADING = lazy_regex(rb"\s*data:[^,\s]{0,80},")
_FIELDS = lazy_regex(rb"\s*[\w.\[\]-]{1,60}=")
_TEAMCITY = "##teamcity["
_TEAMCITY_TEXT = lazy_regex(
    r"##teamcity\[\w{1,40} [^\n]{0,400}?\b(?:text|out|details|errorDetails)='((?:[^'|]++|\|.)*+)'"
)
_TEAMCITY_ESCAPE = lazy_regex(r"\|(?:0x([0-9a-fA-F]{4})|(.))")
_TEAMCITY_ESCAPED = {"n": "\n", "r": "\r", "x": "\x85", "l": "\u2028", "p": "\u2029"}
# In mails: a soft line end, an escaped character; and the number of first bytes in which they must be.
_SOFT_END = lazy_regex(rb"\n[^\n]{60,75}(?<!=)=(?=\r?\n)")
_QUOTED_PRINTABLE = lazy_regex(rb"=(?:3D|20|22|27|09)")
_MAIL_SAMPLE = 8 << 10


def decoded_text(content: bytes) -> bytes | None:
    """Returns the text that a whole file encodes in base64, for a URL or for a mail. None if it does not, or if the
    text is too large."""
    if is_teamcity(content):
        return None
    try:
        if is_base64(content):
            text = _base64_text(content)
        elif is_url_encoded(content):
            text = _url_text(content)
        elif is_quoted_printable(content):
            return "\n".join([*(line for _, line in mail_lines(content)), ""]).encode("utf-8", "replace")
        else:
            return None
    except _TooLong:
        return None
    return "\n".join([*(line for _, line in _text_lines(text)), ""]).encode("utf-8", "replace")


def decoded_word(word: bytes) -> tuple[bytes, bool] | None:
    """Returns the text that a word in base64 encodes, and whether it was compressed by gzip. None if it is not text, or
    is too large."""
    text = _from_base64(word)
    packed = text[:2] == _GZIP
    if packed:
        stream = zlib.decompressobj(_GZIP_WBITS)
        try:
            text = stream.decompress(text, MAX_BYTES)
        except zlib.error:
            return None
        if stream.unconsumed_tail:
            return None
    return (text, packed) if _is_text(text) else None


def is_base64(sample: bytes) -> bool:
    """Returns whether a file that begins with `sample` is a text in base64."""
    return (
        _may_be_one_word(sample) and _BASE64.fullmatch(sample) is not None and _is_text(_from_base64(sample[:_PROBE]))
    )


def is_url_encoded(sample: bytes) -> bool:
    """Returns whether a file that begins with `sample` is a text of several lines, encoded for a URL."""
    if not _may_be_one_word(sample) or sample.count(b"%0A") + sample.count(b"%0a") < _MIN_COUNT:
        return False
    return _URL.fullmatch(sample) is not None


def is_quoted_printable(sample: bytes) -> bool:
    """Returns whether a file that begins with `sample` is a mail in quoted-printable."""
    begin = sample[:_MAIL_SAMPLE]
    if b"=3D" not in begin and b"=20" not in begin and b"=\r\n" not in begin:
        return False
    return len(_SOFT_END.findall(sample)) >= _MIN_COUNT and _QUOTED_PRINTABLE.search(sample) is not None


def is_teamcity(sample: bytes) -> bool:
    """Returns whether a file that begins with `sample` has a service message with output."""
    return _TEAMCITY.encode() in sample and any(_message_text(line) is not None for _, line in numbered_lines(sample))


class _TooLong(Exception):
    """The decompressed content is longer than MAX_BYTES."""


def _may_be_one_word(sample: bytes) -> bool:
    begin = sample[:200]
    return b" " not in begin.strip() or begin.lstrip().startswith(b"-----BEGIN")


def _is_text(decoded: bytes) -> bool:
    """Returns whether base64 encodes text, or text compressed by gzip."""
    return decoded[:2] == _GZIP or (
        len(decoded) >= 48 and len(_CONTROL.findall(decoded)) * 100 < len(decoded) and _is_utf8(decoded[:-4])
    )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _from_base64(content: bytes) -> bytes:
    encoded = b"".join(_HEADING.sub(b"", content).split()).rstrip(b"=")
    whole = len(encoded) // 4 * 4
    return binascii.a2b_base64(encoded[:whole]) + _last_base64(encoded[whole:])


def _last_base64(encoded: bytes) -> bytes:
    return binascii.a2b_base64(encoded + b"=" * (4 - len(encoded))) if len(encoded) > 1 else b""


def _base64_text(content: bytes) -> bytes:
    """Returns the text that base64 encodes. For a broken gzip file, returns the base64 itself. Raises _TooLong."""
    text = _from_base64(content)
    if text[:2] != _GZIP:
        return text
    stream = zlib.decompressobj(_GZIP_WBITS)
    try:
        text = stream.decompress(text, MAX_BYTES)
    except zlib.error:
        return content
    if stream.unconsumed_tail:
        raise _TooLong
    return text


def _url_text(content: bytes) -> bytes:
    """Returns a text decoded from a URL. Of a form's fields, returns the longest."""
    if _FIELDS.match(content):
        content = max(content.strip().split(b"&"), key=len).partition(b"=")[2].replace(b"+", b" ")
    else:
        content = _URL_HEADING.sub(b"", content).strip()
        content = content if b"%20" in content else content.replace(b"+", b" ")
    return b"".join(_unquoted(content))


def _unquoted(content: bytes) -> Iterator[bytes]:
    """Yields the decoded text of a URL in pieces. Decoding all at once would take many times its size."""
    at = 0
    while at < len(content):
        end = at + _PIECE
        sign = content.rfind(b"%", end - 2, end)
        end = sign if at < sign < len(content) - 2 else end
        yield unquote_to_bytes(content[at:end])
        at = end


def _text_lines(text: bytes) -> Iterator[tuple[int, str]]:
    return ((1, line.decode("utf-8", "replace").removesuffix("\r")) for line in text.removesuffix(b"\n").split(b"\n"))


def mail_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a mail in quoted-printable."""
    number, first, begun = 1, 1, b""
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        first = first if begun else number
        begun += line[:-1] if line.endswith(b"=") else line
        if not line.endswith(b"="):
            yield first, quopri.decodestring(begun).decode("utf-8", "replace")
            begun = b""
    if begun:
        yield number, quopri.decodestring(begun).decode("utf-8", "replace")


def teamcity_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line: the output in service messages, and other lines unchanged."""
    for number, line in numbered_lines(content):
        text = _message_text(line)
        lines = [line] if text is None else _TEAMCITY_ESCAPE.sub(_character, text).removesuffix("\n").split("\n")
        yield from ((number, each) for each in lines)


def _message_text(line: str) -> str | None:
    """Returns the output in a service message, with its escapes, or None for other lines."""
    begins = line.find(_TEAMCITY)
    found = _TEAMCITY_TEXT.match(line, begins) if begins >= 0 else None
    return found[1] if found else None


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _TEAMCITY_ESCAPED.get(found[2], found[2])


def _recognise_base64(head: Head) -> Decode | None:
    return _decode_base64 if is_base64(head.sample) else None


def _decode_base64(content: bytes) -> Decoded:
    try:
        return from_lines(_text_lines(_base64_text(content)))
    except _TooLong:
        return untouched(content, too_large(BASE64.name, MAX_BYTES))


def _recognise_url(head: Head) -> Decode | None:
    return _decode_url if is_url_encoded(head.sample) else None


def _decode_url(content: bytes) -> Decoded:
    return from_lines(_text_lines(_url_text(content)))


def _recognise_quoted_printable(head: Head) -> Decode | None:
    return _decode_quoted_printable if is_quoted_printable(head.sample) else None


def _decode_quoted_printable(content: bytes) -> Decoded:
    return from_lines(mail_lines(content))


def _recognise_teamcity(head: Head) -> Decode | None:
    return _decode_teamcity if is_teamcity(head.sample) else None


def _decode_teamcity(content: bytes) -> Decoded:
    return from_lines(teamcity_lines(content))


BASE64 = Decoder("a log in base64", _recognise_base64, compares_lines=True)
URL = Decoder("a log in a URL", _recognise_url, compares_lines=True)
QUOTED_PRINTABLE = Decoder("a mail", _recognise_quoted_printable, largest=MAX_BYTES, compares_lines=True)
TEAMCITY = Decoder("TeamCity's messages", _recognise_teamcity, compares_lines=True)
