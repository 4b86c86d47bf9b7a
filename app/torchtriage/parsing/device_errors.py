"""Lines about the device itself: failed assertions of kernels, the driver's Xid messages."""

from __future__ import annotations

import re

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line

# …/aten/src/ATen/native/cuda/Loss.cu:186: nll_loss_forward: block: [3,0,0], thread: [17,0,0] Assertion `t >= 0 && t < n_classes` failed.
_ASSERTION = re.compile(
    r"(\S+\.(?:cuh?|hip)):(\d+): (.{0,300}?): block: \[[\d, ]+\], thread: \[[\d, ]+\],? (Assertion .+)"
)
# gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: (?:GPU at .{0,80}|Xid \(.{0,40}\): \d+.*)")


class Device:
    """Feed it every kept line that holds one of the words; threads of one failed assertion become equal events, whatever
    their numbers."""

    WORDS = ("Assertion", "NVRM: ")

    def __init__(self) -> None:
        self.events: list[Event] = []

    def feed(self, line: Line) -> bool:
        text = line.text
        if "Assertion" in text and (found := _ASSERTION.search(text)):
            file = found[1].replace("\\", "/").rpartition("/")[2]
            self.events.append(Event.at(line, f"{file}: {found[3]}: {found[4]}", EventSource.DEVICE_ERROR))
            return True
        if "NVRM: " in text and (message := _XID.search(text)):
            self.events.append(Event.at(line, message[0], EventSource.DEVICE_ERROR))
            return True
        return False

    def waits(self, stream: str) -> bool:
        """-> False: what is read of a line ends with it."""
        return False

    def close(self) -> None:
        """Nothing stays open."""
