"""Recognizes tracebacks whose frames were already read, from any rank: 512 ranks print the same one 512 times."""

from __future__ import annotations

from dataclasses import dataclass, field

_MAX_COUNT = 256  # different tracebacks that are remembered per file
_MAX_SAME_FRAME = 8  # of these, tracebacks with the same outermost frame
_MAX_LENGTH = 64 << 10  # bytes of frames that are compared
_MAX_LABEL_LENGTH = 64  # bytes of a rank's label
_LABEL = b"\0"  # replaces the label before each line of a body
_BOX_CORNER, _BOX_SIDE = "╭".encode(), "│".encode()  # rich draws a box around the frames


@dataclass(slots=True)
class KnownTracebacks:
    """The frames of the tracebacks of one file, by the outermost frame. `_LABEL` replaces the rank's label of each
    line. They are compared as a whole by memcmp, not line by line."""

    _known: dict[bytes, list[bytes]] = field(default_factory=dict)
    _count: int = 0

    def end_of_repeated(self, block: bytes, start: int, end: int) -> int:
        """Returns the end of the frames of the traceback whose head is the line from `start` to `end`, if equal frames
        were read before, else 0. Frames that continue after `block` are not recognized."""
        head = block.find(b"Traceback", start, end)
        if head < 0:
            return 0  # the head of a launcher's report
        label, boxed, _ = block[start:head].partition(_BOX_CORNER)
        inside = label + (_BOX_SIDE if boxed else b"  ")  # beginning of the lines with frames
        begin, first_end = end + 1, block.find(b"\n", end + 1)
        if first_end < 0 or len(label) > _MAX_LABEL_LENGTH or not block.startswith(inside[: len(label) + 1], begin):
            return 0
        known = self._known.setdefault(block[begin + len(label) : first_end], [])
        for frames in known:
            frames_end = begin + len(frames) + frames.count(_LABEL) * (len(label) - 1)
            if block.startswith(frames.replace(_LABEL, label), begin) and not block.startswith(inside, frames_end):
                return frames_end
        if self._count < _MAX_COUNT and len(known) < _MAX_SAME_FRAME:
            self._learn(known, block, begin, label, inside)
        return 0

    def _learn(self, known: list[bytes], block: bytes, begin: int, label: bytes, inside: bytes) -> None:
        end = begin
        while end and end - begin < _MAX_LENGTH and block.startswith(inside, end):
            end = block.find(b"\n", end) + 1
        frames = block[begin:end]
        # A launcher's own traceback has other frames than a worker's, so it is always read.
        if frames and len(frames) < _MAX_LENGTH and _LABEL not in frames and b"launch" not in frames:
            known.append((b"\n" + frames).replace(b"\n" + label, b"\n" + _LABEL)[1:] if label else frames)
            self._count += 1
