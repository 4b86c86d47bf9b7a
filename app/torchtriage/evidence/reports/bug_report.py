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
_MOST_DATED = 20_000  # messages
# uname: Linux gpu-021 5.15.0-105-generic #115-Ubuntu SMP …
_HOST = lazy_regex(rb"(?m)^uname: Linux ([\w.-]{1,255}) ")
_HEADER = 256  # bytes of the script's own words, or of a section's heading
_SECTION = b"_" * 44
# [131912.440118] NVRM: Xid … · kern  :err   : [131912.440118] NVRM: Xid …
_SINCE_BOOT = lazy_regex(rb"(?:\w{2,8} *:\w{2,8} *: )?\[ {0,8}\d{1,9}\.\d{6}\] ")
_DATED = lazy_regex(rb"\S.{10,120}? kernel: ")


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
        """Yields the report with all lines but the kernel's left blank, so that these keep their numbers. A message of
        dmesg is left blank too where the system's log shows it with a time. Raises UnreadableLog."""
        dated: set[bytes] = set()
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
            yield b"\n".join([line if _tells(line, dated) else b"" for line in lines])
        self.smi = b"".join(smi)

    def _limited(self) -> Iterator[bytes]:
        left = MOST_BYTES
        for chunk in self._chunks:
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                self.cut = True
                return


def _tells(line: bytes, dated: set[bytes]) -> bool:
    """-> whether it is a line of the kernel that none of those with a time has told; `dated` gets its message."""
    if not KERNEL_LINE.match(line):
        return False
    if (found := _SINCE_BOOT.match(line)) is not None:
        return line[found.end() :].strip() not in dated
    if len(dated) < _MOST_DATED and (found := _DATED.match(line)) is not None:
        dated.add(line[found.end() :].strip())
    return True
