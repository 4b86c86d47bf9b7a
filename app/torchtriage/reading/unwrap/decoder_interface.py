"""The interface of decoders of whole files. A decoder looks at the beginning of a file and returns a function that
decodes it.

Also has what decoders share: the lines of a file with their numbers, and ways to return the decoded content.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

MAX_BYTES = 20 << 20  # bytes of a file that is decoded whole
MAX_BYTES_IN_LINES = MAX_BYTES * 4 // 5  # the same for decoders that keep every line, which takes twice as much memory
_BLOCK = 1 << 20  # bytes


class Head:
    """The beginning of a file, at most 64 KB. If `whole` is true, it is the whole file."""

    def __init__(self, sample: bytes, whole: bool) -> None:
        self.sample, self.whole = sample, whole

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines, without the last one if it is cut."""
        return self.sample.split(b"\n")[: None if self.whole else -1]

    @cached_property
    def lengths(self) -> list[int]:
        """The lengths of the lines in bytes."""
        return list(map(len, self.lines))

    @cached_property
    def texts(self) -> list[str]:
        """The lines as text, without carriage returns at their ends."""
        return self.first_texts(len(self.lines))

    def first_texts(self, most: int) -> list[str]:
        """Returns the first lines as text."""
        # decoding them together takes a tenth of the time
        text = b"\n".join(self.lines[:most]).decode("utf-8", "replace")
        texts = text.split("\n") if self.lines else []
        return [line.rstrip("\r") for line in texts] if "\r" in text else texts


class Decoded(NamedTuple):
    """The blocks of a file as its log was written. Each ends at a line end.

    `numbers` has the number (from 1) of each line in the file, or is None if no line was moved. `rewritten` is true if
    the lines are not the file's own text but come from records or strings. `warning` says what was done or could not be
    done; usually None.
    """

    blocks: Iterator[bytes]
    numbers: Sequence[int] | None = None
    rewritten: bool = False
    warning: str | None = None


Decode = Callable[[bytes], Decoded]
# Maps the lines of a file to the original lines, and the number (from 1) of the first piece of each.
Rejoin = Callable[[Sequence[str]], tuple[list[str], list[int]]]


@dataclass(frozen=True, slots=True)
class Decoder:
    """One way in which a log can be wrapped.

    `name` is used in warnings. `recognise` looks at the beginning of a file and returns the function that decodes it,
    or None. `largest` is the limit on the file's size in bytes; a larger file is read unchanged. `compares_lines` is
    true if the decoder compares the layout or order of lines, which takes longer. `once` is true if its result may look
    the same and must not be decoded by it again.
    """

    name: str
    recognise: Callable[[Head], Decode | None]
    largest: int = MAX_BYTES_IN_LINES
    compares_lines: bool = False
    once: bool = False


def numbered_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, line without its line end) for each line, one at a time to save memory."""
    start, number = 0, 1
    while start < len(content):
        end = content.find(b"\n", start)
        end = end if end >= 0 else len(content)
        yield number, content[start:end].removesuffix(b"\r").decode("utf-8", "replace")
        start, number = end + 1, number + 1


def untouched(content: bytes, warning: str | None = None) -> Decoded:
    """Returns the file unchanged."""
    return Decoded(cut_into_blocks(content), warning=warning)


def too_large(name: str, largest: int) -> str:
    """Returns the warning for a file that is too large for the decoder `name`."""
    return f"{name}: more than {largest >> 20} MB, so read as it stands"


def from_lines(lines: Iterable[tuple[int, str]]) -> Decoded:
    """Returns lines that were extracted from something else. Each comes with its line number in the file."""
    content, numbers = bytearray(), array("q")
    for number, line in lines:
        content += line.encode("utf-8", "replace") + b"\n"
        # some lines contain a line end that was escaped twice
        numbers.extend([number] * (1 + line.count("\n")))
    return Decoded(cut_into_blocks(content or b"\n"), numbers or array("q", [1]), rewritten=True)


def from_layout(rejoin: Rejoin | None) -> Decode | None:
    """Returns a function that decodes a file by restoring its lines, or None if `rejoin` is None."""
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
