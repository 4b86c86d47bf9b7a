"""The same cause in another job has the same fingerprint: a name for people (signature) and one for the database.

What counts is told in docs/decisions/0003-what-counts-in-a-fingerprint.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import PurePosixPath

from torchtriage.causality.findings import Finding
from torchtriage.domain.entry import Entry, Role
from torchtriage.domain.event import Frame, Raised, Where
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.masking import mask, mask_all
from torchtriage.reading.redaction.redact import redact

VERSION = "v1"
_LONGEST_MESSAGE = 300  # characters of a masked message that count
# Since Python 3.12 comprehensions have no frames of their own.
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
# ipykernel_31/2405811347.py, <ipython-input-5-8f2a6c0d1b7e>
_NUMBERED_FILE = lazy_regex(r"(?:-\d+-)?[0-9a-f]{8,}|\d{4,}")


def raised_of(finding: Finding) -> Raised | None:
    """-> the exception that stands for the finding: the one its entry names, else the first raised of the chain."""
    if finding.match is not None and finding.match.raised is not None:
        return finding.match.raised
    return finding.event.chain[0] if finding.event.chain else None


def innermost(raised: Raised) -> Frame | None:
    """-> the innermost frame of the user's code, else the innermost frame."""
    named = [frame for frame in raised.frames if frame.function not in _INLINED] or raised.frames
    own = [frame for frame in named if frame.user_code] or named
    return own[-1] if own else None


def signature(finding: Finding) -> str:
    """-> one line that names the failure for people: `torch.OutOfMemoryError in forward (model.py) · cuda.oom`."""
    raised = raised_of(finding)
    if raised is not None:
        what, frame = raised.type or _masked(raised.message), innermost(raised)
        if frame is not None and frame.function:
            what += f" in {frame.function} ({_file_of(frame)})"
    elif finding.event.where is Where.EXIT:
        what = _exit_of(finding)
    else:
        what = _masked(finding.event.text)
    return f"{what} · {finding.entry}" if finding.entry else what


def _masked(message: str) -> str:
    """-> the first line that says something, without its secrets, numbers and names, at a length for a list."""
    told = next((line for line in message.split("\n") if line.strip()), "")
    return mask(redact(told.strip()))[:100]


def fingerprint(finding: Finding, masked: Callable[[str], str] = str) -> str:
    """-> `v1:` and 32 hex digits over the entry; where that names a mistake in the program, over the place too; where
    no entry names the failure itself (none, or a catch-all), over place, exception type and message. `masked` takes out
    of a line of the message what is known for a value."""
    entry = finding.match.entry if finding.match else None
    raised = raised_of(finding)
    parts = [entry.id if entry else ""]
    if entry is None or finding.match is None or finding.match.broad:
        parts += _failure(finding, raised, masked)
    elif raised is not None and _of_the_program(entry):
        parts += _place(raised, foreign=False)
    return f"{VERSION}:{hashlib.sha256(chr(0).join(parts).encode(errors='replace')).hexdigest()[:32]}"


def _of_the_program(entry: Entry) -> bool:
    """-> whether what the entry names is fixed in the program, so that each place in it is a failure of its own.

    A lost peer, a timeout, a node without memory shows wherever the program happens to be.
    """
    return entry.owner == "user" and Role.DISTRIBUTED_SYMPTOM not in entry.roles


def _failure(finding: Finding, raised: Raised | None, masked: Callable[[str], str]) -> list[str]:
    """-> what tells a failure without an entry of its own from others."""
    if raised is not None:
        told = next((line for line in raised.message.split("\n") if line.strip()), "")
        # The module of a class depends on how the program was started: `__main__.Bug`, `train.Bug`.
        kind = raised.type.rpartition(".")[2]
        return [*_place(raised, foreign=True), kind, mask_all(masked(told))[:_LONGEST_MESSAGE]]
    if finding.event.where is Where.EXIT:
        return [_exit_of(finding)]
    return [mask_all(masked(finding.event.text))[:_LONGEST_MESSAGE]]


def _place(raised: Raised, foreign: bool) -> list[str]:
    """-> file and function of the innermost frame of the user's code; of a library's where `foreign` and none is."""
    frame = innermost(raised)
    if frame is None or not (frame.user_code or foreign):
        return []
    return [_NUMBERED_FILE.sub("<num>", _file_of(frame)), frame.function]


def _file_of(frame: Frame) -> str:
    return PurePosixPath(frame.file.replace("\\", "/")).name


def _exit_of(finding: Finding) -> str:
    """-> `exitcode -9 SIGKILL`, without its rank."""
    return " ".join(finding.event.text.split()[:3]).split(" rank")[0]
