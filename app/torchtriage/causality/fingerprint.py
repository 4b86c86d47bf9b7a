"""Names a failure so that the same cause in another job has the same name: a signature for people and a fingerprint for
the database.

docs/decisions/0003-what-counts-in-a-fingerprint.md says what counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import PurePosixPath

from torchtriage.domain.entry import Entry, Role
from torchtriage.domain.event import Frame, Raised, Where
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.masking import mask, mask_all
from torchtriage.reading.redaction.redact import redact
from torchtriage.runs.findings import Finding

VERSION = "v1"
_MAX_MESSAGE_LENGTH = 300  # characters of the masked message that are used
# Since Python 3.12, comprehensions have no frames of their own.
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
# ipykernel_31/2405811347.py, <ipython-input-5-8f2a6c0d1b7e>
_NUMBERED_FILE = lazy_regex(r"(?:-\d+-)?[0-9a-f]{8,}|\d{4,}")


def raised_of(finding: Finding) -> Raised | None:
    """Returns the exception that represents the finding: the one that its entry matched, else the first one raised in
    the chain."""
    if finding.match is not None and finding.match.raised is not None:
        return finding.match.raised
    return finding.event.chain[0] if finding.event.chain else None


def innermost(raised: Raised) -> Frame | None:
    """Returns the innermost frame of the user's code. If no frame is the user's, returns the innermost frame."""
    named = [frame for frame in raised.frames if frame.function not in _INLINED] or raised.frames
    own = [frame for frame in named if frame.user_code] or named
    return own[-1] if own else None


def signature(finding: Finding) -> str:
    """Returns one line that names the failure for people: `torch.OutOfMemoryError in forward (model.py) · cuda.oom`."""
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
    """Returns the first line that is not blank, without its secrets, numbers and names, cut to fit in a list."""
    first_line = next((line for line in message.split("\n") if line.strip()), "")
    return mask(redact(first_line.strip()))[:100]


def fingerprint(finding: Finding, masked: Callable[[str], str] = str) -> str:
    """Returns `v1:` and 32 hex digits. They are a hash of the entry. If the entry names a mistake in the program, the
    place in the code is hashed too. If no entry or only a catch-all matches, then place, exception type and message are
    hashed. `masked` replaces the known values in a line of the message."""
    entry = finding.match.entry if finding.match else None
    raised = raised_of(finding)
    parts = [entry.id if entry else ""]
    if entry is None or finding.match is None or finding.match.broad:
        parts += _failure(finding, raised, masked)
    elif raised is not None and _of_the_program(entry):
        parts += _place(raised, foreign=False)
    return f"{VERSION}:{hashlib.sha256(chr(0).join(parts).encode(errors='replace')).hexdigest()[:32]}"


def _of_the_program(entry: Entry) -> bool:
    """Returns whether the entry's failure is fixed in the program's code, so that each place in the code is a different
    failure.

    A lost peer, a timeout or a node without memory can show anywhere in the program.
    """
    return entry.owner == "user" and Role.DISTRIBUTED_SYMPTOM not in entry.roles


def _failure(finding: Finding, raised: Raised | None, masked: Callable[[str], str]) -> list[str]:
    """Returns what distinguishes a failure that has no entry of its own."""
    if raised is not None:
        first_line = next((line for line in raised.message.split("\n") if line.strip()), "")
        # The module of a class depends on how the program was started: `__main__.Bug` or `train.Bug`.
        kind = raised.type.rpartition(".")[2]
        return [*_place(raised, foreign=True), kind, mask_all(masked(first_line))[:_MAX_MESSAGE_LENGTH]]
    if finding.event.where is Where.EXIT:
        return [_exit_of(finding)]
    return [mask_all(masked(finding.event.text))[:_MAX_MESSAGE_LENGTH]]


def _place(raised: Raised, foreign: bool) -> list[str]:
    """Returns the file and function of the innermost frame of the user's code. If no frame is the user's, returns those
    of a library's frame if `foreign` is set, else nothing."""
    frame = innermost(raised)
    if frame is None or not (frame.user_code or foreign):
        return []
    return [_NUMBERED_FILE.sub("<num>", _file_of(frame)), frame.function]


def _file_of(frame: Frame) -> str:
    return PurePosixPath(frame.file.replace("\\", "/")).name


def _exit_of(finding: Finding) -> str:
    """Returns the exit status without its rank, such as `exitcode -9 SIGKILL`."""
    return " ".join(finding.event.text.split()[:3]).split(" rank")[0]
