"""Finds the messages that native libraries can print: reads a shared library for x86-64 and returns format strings with
slots.

All strings of a library are in its read-only data. The machine code shows which of them are printed as errors: at a
call of the function that prints, registers contain the text, the source file and the level. Only calls whose arguments
are set shortly before are found, and only texts that are one constant. Nothing is guessed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from torchtriage.domain.message_template import LibraryMessage, literal, slot, tells_something

# bytes between the instruction that sets the text and those that set the call's other arguments
_REACH_BEFORE, _REACH_BEHIND = 90, 60
_SOURCE = re.compile(r"[\w/.+-]+\.(?:cc|cpp|cxx|cu|cuh|h|hpp|c)")
_FORMAT = re.compile(r"%[#0 +-]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGcsp%])")
_BUILD_FOLDER = re.compile(r"^.*?/(?=(?:aten|c10|torch|caffe2|third_party|src|device)/)|^(?:\.\./)+")
_MAX_LENGTH = 600
# The text of a check without its own message. It shows only the condition, on which nobody can act.
_BARE_CHECK = re.compile(r" INTERNAL ASSERT FAILED at |^Expected .* to be true, but got false\.  \(Could this")
# lea <register>,[rip+…], by register
_LEA = {
    "rcx": b"\x48\x8d\x0d",
    "rdx": b"\x48\x8d\x15",
    "rsi": b"\x48\x8d\x35",
    "rdi": b"\x48\x8d\x3d",
    "r8": b"\x4c\x8d\x05",
    "r9": b"\x4c\x8d\x0d",
}
_LEVEL = re.compile(rb"\xbf([\x00-\x0f])\x00\x00\x00", re.DOTALL)  # mov edi,<number>
_CALL = b"\xe8"


@dataclass(frozen=True)
class Printer:
    """A function that prints errors, and the contents of its registers. `level` is the number in edi that means an
    error, or None if the function prints only errors. `formats` is true if the text has `%d` and similar."""

    kind: str
    texts: tuple[str, ...]
    file: str
    function: str | None = None
    level: int | None = None
    formats: bool = False


# ncclDebugLog(level, flags, file, line, format, …); since NCCL 2.30, the function comes before the line.
NCCL = Printer("NCCL WARN", ("r8", "r9"), "rdx", level=2, formats=True)
# c10::detail::torchCheckFail(function, file, line, message)
TORCH_CHECK = Printer("TORCH_CHECK", ("rcx",), "rsi", "rdi")


def messages(library: bytes, printer: Printer) -> Iterator[LibraryMessage]:
    """Yields each message once, sorted. Raises ValueError if the file is not a 64-bit shared library."""
    sections = _sections(library)
    code, strings = sections[".text"], sections[".rodata"]
    found = {
        LibraryMessage(file, function, printer.kind, _template(text.strip(), printer.formats))
        for file, function, text in _calls(_Image(library, code, strings), printer)
    }
    telling = (each for each in found if tells_something(each.template))
    yield from sorted(telling, key=lambda each: (each.module, each.function, each.template))


@dataclass(frozen=True)
class _Section:
    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class _Image:
    library: bytes
    code: _Section
    strings: _Section

    def target(self, at: int) -> str | None:
        """Returns the text that a `lea` at this offset of the file points to, or None if it is not printable text."""
        (distance,) = struct.unpack_from("<i", self.library, at + 3)
        place = at - self.code.offset + self.code.address + 7 + distance - self.strings.address
        if not 0 <= place < self.strings.size:
            return None
        begin = place + self.strings.offset
        end = self.library.find(b"\0", begin, begin + 4 * _MAX_LENGTH)
        text = self.library[begin:end] if end > begin else b""
        return text.decode("ascii") if text.isascii() and not re.search(rb"[\x00-\x08\x0e-\x1f]", text) else None


def _sections(library: bytes) -> dict[str, _Section]:
    if library[:5] != b"\x7fELF\x02":
        raise ValueError("no ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", library, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", library, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", library, table + number * size) for number in range(count)]
    names = rows[names_at][4]

    def name(at: int) -> str:
        return library[names + at : library.index(b"\0", names + at)].decode()

    return {name(row[0]): _Section(row[3], row[4], row[5]) for row in rows}


def _calls(image: _Image, printer: Printer) -> Iterator[tuple[str, str, str]]:
    """Yields file, function and text of each call that prints an error."""
    library, code = image.library, image.code
    for register in printer.texts:
        for found in re.compile(re.escape(_LEA[register]), re.DOTALL).finditer(
            library, code.offset, code.offset + code.size
        ):
            begin, behind = max(code.offset, found.start() - _REACH_BEFORE), found.end() + 4
            call = library.find(_CALL, behind, behind + _REACH_BEHIND)
            near = library[begin : call if call > 0 else behind + _REACH_BEHIND]
            if printer.level is not None and _level(near) != printer.level:
                continue
            text = image.target(found.start())
            file = _last(image, near, begin, printer.file)
            if text and " " in text.strip() and not _BARE_CHECK.search(text) and file and _SOURCE.fullmatch(file):
                function = _last(image, near, begin, printer.function) if printer.function else None
                yield _BUILD_FOLDER.sub("", file), function or "", text


def _level(near: bytes) -> int | None:
    levels = _LEVEL.findall(near)
    return int(levels[-1][0]) if levels else None


def _last(image: _Image, near: bytes, begin: int, register: str) -> str | None:
    """Returns the text that was last loaded into a register before the call."""
    at = near.rfind(_LEA[register], 0, len(near) - 4)
    return image.target(begin + at) if at >= 0 else None


def _template(text: str, formats: bool) -> str:
    if not formats:
        return literal(text)
    parts, last = [], 0
    for found in _FORMAT.finditer(text):
        parts += [literal(text[last : found.start()]), "%" if found[1] == "%" else slot("")]
        last = found.end()
    return "".join([*parts, literal(text[last:])])
