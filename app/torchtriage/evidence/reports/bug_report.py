"""The report that `nvidia-bug-report.sh` writes: its bytes in, the kernel's lines and what `nvidia-smi -q` printed out.

A line of underscores stands above each of its sections, of which most are files of /proc, hardware lists and encoded
dumps. The kernel's lines are known by their form, whichever section holds them: `dmesg:`, or those that it found in the
system's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.blocks import Piece, blocks
from torchtriage.reading.file_types import KERNEL_LINE, NVIDIA_SMI_LOG

MOST_BYTES = 256 << 20  # of a report that are looked at; encoded dumps make some of them large
_MOST_SMI = 8 << 20  # of what nvidia-smi printed
# uname: Linux gpu-021 5.15.0-105-generic #115-Ubuntu SMP …
_HOST = lazy_regex(rb"(?m)^uname: Linux ([\w.-]{1,255}) ")
_HEADER = 256  # bytes of the script's own words, or of a section's heading
_SECTION = b"_" * 44


class BugReport:
    """Reads `chunks` once, while `kernel_lines` is taken; `host` is known before that. `smi` is then what nvidia-smi
    printed, from its line number `smi_from` on, and `cut` whether the report was too large to be read to its end.
    `name` stands in messages."""

    def __init__(self, chunks: Iterator[bytes], name: str) -> None:
        head = next(chunks, b"")
        found = _HOST.search(head)
        self.host = found[1].decode() if found else None
        self.smi = b""
        self.smi_from = 0
        self.cut = False
        # Only its first chunk decides whether a file is text: a binary section is no reason to refuse the report.
        self._chunks = chain((head[:_HEADER], head[_HEADER:]), chunks)
        self._name = name

    def kernel_lines(self) -> Iterator[bytes]:
        """Yields the report with all lines but the kernel's left blank, so that these keep their numbers.
        Raises UnreadableLog."""
        smi: list[bytes] = []
        in_smi, number, left = False, 1, _MOST_SMI
        for block in blocks(self._limited(), self._name):
            lines = block.removesuffix(b"\n").split(b"\n") if isinstance(block, Piece) else block.split(b"\n")
            printed: list[bytes] = []
            for at, line in enumerate(lines):
                if not self.smi_from and NVIDIA_SMI_LOG.match(line):
                    in_smi, self.smi_from = True, number + at
                in_smi = in_smi and not line.startswith(_SECTION)
                if in_smi and left > 0:
                    printed.append(line)
                    left -= len(line) + 1
            smi.append(b"\n".join(printed))
            number += len(lines) - 1
            yield b"\n".join([line if KERNEL_LINE.match(line) else b"" for line in lines])
        self.smi = b"".join(smi)

    def _limited(self) -> Iterator[bytes]:
        left = MOST_BYTES
        for chunk in self._chunks:
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                self.cut = True
                return
