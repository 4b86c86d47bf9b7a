"""The same cause in another job has the same fingerprint: a name for people (signature) and one for the database."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from app.domain.event import Frame, Raised, Where
from app.triage.folding import Finding
from app.triage.masking import mask

VERSION = "v1"


def raised_of(finding: Finding) -> Raised | None:
    """-> the exception that stands for the finding: the one its entry names, else the first raised of the chain."""
    if finding.match is not None and finding.match.raised is not None:
        return finding.match.raised
    return finding.event.chain[0] if finding.event.chain else None


def innermost(raised: Raised) -> Frame | None:
    """-> the innermost frame of the user's code, else the innermost frame."""
    own = [frame for frame in raised.frames if frame.user_code] or raised.frames
    return own[-1] if own else None


def signature(finding: Finding) -> str:
    """-> one line that names the failure for people: `torch.OutOfMemoryError in forward (model.py) · cuda.oom`."""
    raised = raised_of(finding)
    if raised is not None:
        what, frame = raised.type, innermost(raised)
        if frame is not None and frame.function:
            what += f" in {frame.function} ({PurePosixPath(frame.file.replace(chr(92), '/')).name})"
    elif finding.event.where is Where.EXIT:
        what = " ".join(finding.event.text.split()[:3]).split(" rank")[0]
    else:
        what = mask(finding.event.text)[:100]
    return f"{what} · {finding.entry}" if finding.entry else what


def fingerprint(finding: Finding) -> str:
    """-> `v1:` and 32 hex digits over entry, exception type and innermost user frame; without an entry of its own
    (none, or a catch-all) the masked message counts too."""
    raised = raised_of(finding)
    parts = [finding.entry or ""]
    if raised is not None:
        frame = innermost(raised)
        parts.append(raised.type)
        if frame is not None and frame.user_code:
            parts += [PurePosixPath(frame.file.replace("\\", "/")).name, frame.function]
        if finding.match is None or finding.match.entry.catch_all:
            parts.append(mask(raised.message.split("\n")[0])[:300])
    elif finding.match is None:
        parts.append(mask(finding.event.text)[:300])
    return f"{VERSION}:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
