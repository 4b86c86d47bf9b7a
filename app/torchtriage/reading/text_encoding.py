"""Decodes the bytes of a log: recognizes UTF-16 and UTF-32 files, and the encoding of lines that are not UTF-8."""

from __future__ import annotations

import codecs

from torchtriage.lazy_regex import lazy_regex

# The order matters, because one byte order mark begins with another.
_BYTE_ORDER_MARKS = {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
          codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}  # fmt: skip
_SAMPLE = 4096  # bytes
_NUL_SHARE = 0.4  # share of NUL among the bytes at even or odd places in UTF-16 without a mark; Chinese text has fewer
_VALID = lazy_regex(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = lazy_regex(rb"[\x80-\xff]+")
# share of the bytes above 127 that are valid UTF-8 in a damaged UTF-8 line; Chinese in another encoding also has some
_MOSTLY = 0.75
_ERASED = lazy_regex(r"[^\x08]\x08")
_MAX_ERASED = 200  # characters erased in a row


def utf16_or_32(first: bytes) -> tuple[str, int] | None:
    """Returns the UTF-16 or UTF-32 encoding of a file and the size of its byte order mark, or None."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if first.startswith(mark):
            return encoding, len(mark)
    sample = first[: min(len(first) & ~1, _SAMPLE)]
    if b"\n" not in sample or sample.count(0) * 10 < len(sample):
        return None
    return _utf32(sample[: len(sample) & ~3]) or _utf16(sample)


def _utf32(sample: bytes) -> tuple[str, int] | None:
    """In UTF-32, the highest of four bytes is always NUL, the next one nearly always, and the lowest hardly ever."""
    zeros, count = [sample[at::4].count(0) for at in range(4)], len(sample) // 4
    for encoding, (high, next_one, lowest) in (("utf-32-le", (3, 2, 0)), ("utf-32-be", (0, 1, 3))):
        if zeros[high] == count and zeros[next_one] > 0.9 * count and zeros[lowest] < 0.1 * count:
            return encoding, 0
    return None


def _utf16(sample: bytes) -> tuple[str, int] | None:
    even, odd, half = sample[::2].count(0), sample[1::2].count(0), len(sample) / 2
    if odd > _NUL_SHARE * half and not even:
        return "utf-16-le", 0
    return ("utf-16-be", 0) if even > _NUL_SHARE * half and not odd else None


def decode_lines(piece: bytes) -> list[str]:
    """Returns the lines of a piece of a log without line ends, decoded like `decode_line`. They are decoded together if
    possible, which takes a tenth of the time."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return [decode_line(line).removesuffix("\r") for line in piece.removesuffix(b"\n").split(b"\n")]
    lines = text.removesuffix("\n").split("\n")
    if "\0" in text or "\x08" in text:
        lines = [decode_line(line.encode()) for line in lines]
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def decode_line(raw: bytes) -> str:
    """Returns one line as text, without NUL and without the characters that backspaces erased. A line that is not UTF-8
    is decoded as GB18030 or Latin-1 if all of it is valid."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = _from_other_encoding(raw)
    if "\0" in text:
        text = text.replace("\0", "")
    return _without_erased(text) if "\x08" in text else text


def _from_other_encoding(raw: bytes) -> str:
    runs = _HIGH.findall(raw)
    if sum(map(len, _VALID.findall(raw))) > _MOSTLY * sum(map(len, runs)):
        return raw.decode("utf-8", "replace")  # UTF-8 that was cut or damaged
    # Letters with accents usually appear alone in a word, Chinese characters seldom.
    try:
        return raw.decode("gb18030" if any(len(run) > 2 for run in runs) else "cp1252")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def _without_erased(text: str) -> str:
    for _ in range(_MAX_ERASED):
        text, erased = _ERASED.subn("", text)
        if not erased:
            break
    return text.replace("\x08", "")
