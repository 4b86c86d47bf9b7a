"""Reads lines about the GPU itself: failed assertions of kernels, and the driver's Xid messages."""

from __future__ import annotations

from typing import ClassVar

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import NOTHING, Extractor, FeedResult

# …/aten/src/ATen/native/cuda/Loss.cu:186: nll_loss_forward: block: [3,0,0], thread: [17,0,0] Assertion `t >= 0 && t < n_classes` failed.
_ASSERTION = lazy_regex(
    r"(\S+\.(?:cuh?|hip)):(\d+): (.{0,300}?): block: \[[\d, ]+\], thread: \[[\d, ]+\],? (Assertion .+)"
)
# gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.
_XID = lazy_regex(r"NVRM: (?:GPU at .{0,80}|Xid \(.{0,40}\): \d+.*)")


class DeviceErrors(Extractor):
    """Reports one event for each line. The threads of one failed assertion give equal events, whatever their thread
    numbers."""

    name: ClassVar = "device errors"
    words: ClassVar = ("Assertion", "NVRM: ")
    sources: ClassVar = frozenset({EventSource.DEVICE_ERROR})

    def feed(self, line: Line, above: str = "") -> FeedResult:
        text = line.text
        if "Assertion" in text and (found := _ASSERTION.search(text)):
            file = found[1].replace("\\", "/").rpartition("/")[2]
            return FeedResult((Event.at(line, f"{file}: {found[3]}: {found[4]}", EventSource.DEVICE_ERROR),), True)
        if "NVRM: " in text and (message := _XID.search(text)):
            return FeedResult((Event.at(line, message[0], EventSource.DEVICE_ERROR),), True)
        return NOTHING
