"""Bytes of a log → text: whether a file is in UTF-16 or UTF-32, and the encoding of a line that is no UTF-8."""

from __future__ import annotations

import codecs

from torchtriage.lazy_regex import lazy_regex

# In this order: the mark of one begins with another's.
_BYTE_ORDER_MARKS = {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
          codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}  # fmt: skip
_SAMPLE = 4096  # bytes
_NUL_SHARE = 0.4  # of the bytes at even or at odd places that are nul in UTF-16 without a mark; Chinese text has fewer
_VALID = lazy_regex(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = lazy_regex(rb"[\x80-\xff]+")
_MOSTLY = 0.75  # of the bytes above 127 are UTF-8 in a line that was meant to be; in Chinese of another kind some are
_ERASED = lazy_regex(r"[^\x08]\x08")
_MOST_ERASED = 200  # characters in a row


def utf16_or_32(first: bytes) -> tuple[str, int] | None:
    """-> the UTF-16 or UTF-32 encoding that a file's first bytes are in, and the bytes of its mark; None where it is
    none."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if first.startswith(mark):
            return encoding, len(mark)
    sample = first[: min(len(first) & ~1, _SAMPLE)]
    if b"\n" not in sample or sample.count(0) * 10 < len(sample):
        return None
    return _utf32(sample[: len(sample) & ~3]) or _utf16(sample)


def _utf32(sample: bytes) -> tuple[str, int] | None:
    """Of four bytes the highest is always nul, the next one nearly always, the lowest hardly ever."""
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
    """-> the lines of a piece of a log without their line ends, each as `decode_line` reads it; all at once where they can
    be, which takes a tenth of the time."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return [decode_line(line).removesuffix("\r") for line in piece.removesuffix(b"\n").split(b"\n")]
    lines = text.removesuffix("\n").split("\n")
    if "\0" in text or "\x08" in text:
        lines = [decode_line(line.encode()) for line in lines]
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def decode_line(raw: bytes) -> str:
    """-> one line as text, without nul bytes and what a backspace took back. Bytes that are no UTF-8 are read as
    GB18030 or Latin-1 where the whole line can be."""
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
    # Letters with accents stand alone in a word; Chinese characters seldom do.
    try:
        return raw.decode("gb18030" if any(len(run) > 2 for run in runs) else "cp1252")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def _without_erased(text: str) -> str:
    for _ in range(_MOST_ERASED):
        text, erased = _ERASED.subn("", text)
        if not erased:
            break
    return text.replace("\x08", "")
