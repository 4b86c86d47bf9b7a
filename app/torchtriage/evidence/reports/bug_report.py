"""Reads the report of `nvidia-bug-report.sh`: the kernel's lines, and the output of `nvidia-smi -q`.

A line of underscores precedes each section. Most sections are files of /proc, hardware lists and encoded dumps. The
kernel's lines are recognized by their form, in whichever section they are: `dmesg:`, or lines from the system's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.blocks import PartialBlock, blocks
from torchtriage.reading.file_types import KERNEL_LINE, NVIDIA_SMI_LOG

MAX_BYTES = 256 << 20  # bytes of a report that are read; encoded dumps make some reports large
_MAX_SMI = 8 << 20  # bytes of nvidia-smi's output
# uname: Linux gpu-021 5.15.0-105-generic #115-Ubuntu SMP …
_HOST = lazy_regex(rb"(?m)^uname: Linux ([\w.-]{1,255}) ")
_HEADER = 256  # bytes of the script's own header, or of a section's heading
_SECTION = b"_" * 44


class BugReport:
    """Reads `chunks` once, while `kernel_lines` is consumed. `host` is known before that. Afterwards, `smi` is the
    output of nvidia-smi, which starts at line `smi_from`, and `cut` says whether the report was too large to read to
    its end. `name` is used in messages."""

    def __init__(self, chunks: Iterator[bytes], name: str) -> None:
        head = next(chunks, b"")
        found = _HOST.search(head)
        self.host = found[1].decode() if found else None
        self.smi = b""
        self.smi_from = 0
        self.cut = False
        # Only the first chunk decides whether a file is text, because the report may have binary sections.
        self._chunks = chain((head[:_HEADER], head[_HEADER:]), chunks)
        self._name = name

    def kernel_lines(self) -> Iterator[bytes]:
        """Yields the report with all lines except the kernel's made empty, so that line numbers stay right. Raises
        UnreadableLog."""
        smi: list[bytes] = []
        in_smi, number, left = False, 1, _MAX_SMI
        for block in blocks(self._limited(), self._name):
            lines = block.removesuffix(b"\n").split(b"\n") if isinstance(block, PartialBlock) else block.split(b"\n")
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
        left = MAX_BYTES
        for chunk in self._chunks:
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                self.cut = True
                return
