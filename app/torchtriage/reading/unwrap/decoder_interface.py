"""What a decoder of whole files is: the beginning of a file in, what decodes it out; its bytes in, its lines out.

Also what decoders share: the lines of a file with their numbers, and the ways to hand back what was decoded.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

LARGEST = 20 << 20  # bytes of a file that is decoded whole
LARGEST_IN_LINES = LARGEST * 4 // 5  # where every line is kept, which takes twice as much memory
_BLOCK = 1 << 20  # bytes


class Head:
    """The beginning of a file: at most 64 KB, which is all of it where `whole`."""

    def __init__(self, sample: bytes, whole: bool) -> None:
        self.sample, self.whole = sample, whole

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines, without the last one where it is cut off."""
        return self.sample.split(b"\n")[: None if self.whole else -1]

    @cached_property
    def lengths(self) -> list[int]:
        """The lines' lengths in bytes."""
        return list(map(len, self.lines))

    @cached_property
    def texts(self) -> list[str]:
        """The lines as text, without carriage returns at their ends."""
        return self.first_texts(len(self.lines))

    def first_texts(self, most: int) -> list[str]:
        """-> the same of the first lines."""
        text = b"\n".join(self.lines[:most]).decode("utf-8", "replace")  # All at once takes a tenth of the time.
        texts = text.split("\n") if self.lines else []
        return [line.rstrip("\r") for line in texts] if "\r" in text else texts


class Decoded(NamedTuple):
    """The blocks of a file as its log was written, each ending at a line end.

    `numbers`: for each of their lines the number (from 1) that it has in the file; None where no line was moved.
    `rewritten`: the lines are none of the file's own, but were taken out of records or texts.
    `warning`: what was done, or what could not be; None most often.
    """

    blocks: Iterator[bytes]
    numbers: Sequence[int] | None = None
    rewritten: bool = False
    warning: str | None = None


Decode = Callable[[bytes], Decoded]
# The lines of a file → the lines as they were written, and for each the number (from 1) of its first piece.
Rejoin = Callable[[Sequence[str]], tuple[list[str], list[int]]]


@dataclass(frozen=True, slots=True)
class Decoder:
    """One way in which a log can be packed.

    `name` is what warnings call it. `recognise` says by the beginning of a file how to decode it; None where it is not
    packed in this way. `largest`: bytes of a file that is decoded; a larger one is read as it stands.
    `compares_lines`: it looks at how lines are laid out or ordered, which takes longer than looking at first bytes.
    `once`: what it leaves may look the same, and is not decoded by it again.
    """

    name: str
    recognise: Callable[[Head], Decode | None]
    largest: int = LARGEST_IN_LINES
    compares_lines: bool = False
    once: bool = False


def numbered_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, line without its line end) for each line; one at a time, to spare memory."""
    start, number = 0, 1
    while start < len(content):
        end = content.find(b"\n", start)
        end = end if end >= 0 else len(content)
        yield number, content[start:end].removesuffix(b"\r").decode("utf-8", "replace")
        start, number = end + 1, number + 1


def untouched(content: bytes, warning: str | None = None) -> Decoded:
    """-> the file as it stands."""
    return Decoded(cut_into_blocks(content), warning=warning)


def too_large(name: str, largest: int) -> str:
    """-> the warning for a file that is larger than what the decoder called `name` takes."""
    return f"{name}: more than {largest >> 20} MB, so read as it stands"


def from_lines(lines: Iterable[tuple[int, str]]) -> Decoded:
    """-> lines that were taken out of something else; each comes with its line number in the file."""
    content, numbers = bytearray(), array("q")
    for number, line in lines:
        content += line.encode("utf-8", "replace") + b"\n"
        # A line end that was escaped twice is in some of them.
        numbers.extend([number] * (1 + line.count("\n")))
    return Decoded(cut_into_blocks(content or b"\n"), numbers or array("q", [1]), rewritten=True)


def from_layout(rejoin: Rejoin | None) -> Decode | None:
    """-> what decodes a file by putting its lines back as they were written; None for None."""
    if rejoin is None:
        return None

    def decode(content: bytes) -> Decoded:
        lines, numbers = rejoin([line for _, line in numbered_lines(content)])
        return Decoded(cut_into_blocks("\n".join(lines).encode() + b"\n"), array("q", numbers))

    return decode


def cut_into_blocks(content: bytes | bytearray) -> Iterator[bytes]:
    """Yields the content in blocks that end at line ends."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + _BLOCK) + 1 or len(content)
        yield bytes(content[start:end])
        start = end
