"""The rows of an incident's page: evidence and attempts. Similar ones share a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from torchtriage.domain.verdict import Attempt, Evidence, RootCause
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.masking import mask_all

_WRITER = lazy_regex(r"^(?:\[[^\]]{1,40}\]:?\s*)+")  # `[rank3]:[E0501 …]`: who wrote it and when
_FRAME = lazy_regex(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """`same` are further lines that differ only in numbers and writers. `library`: the line is a frame of installed
    code."""

    line: Evidence
    same: tuple[Evidence, ...] = ()
    library: bool = False


def evidence_rows(root: RootCause) -> tuple[EvidenceRow, ...]:
    """Returns the evidence of a root cause: the most important line first, then the others in the order of the log."""
    frames = root.exception.frames if root.exception else ()
    library = {(frame.file, str(frame.line)) for frame in frames if not frame.user_code}
    first, *rest = root.evidence or (None,)
    if first is None:
        return ()
    rows: dict[object, EvidenceRow] = {}
    for line in [first, *sorted(rest, key=lambda one: (one.file or "", one.line))]:
        found = _FRAME.search(line.text)
        key: object = (line.file, line.line) if found else mask_all(_WRITER.sub("", line.text.strip()))
        known = rows.get(key)
        if known is None:
            rows[key] = EvidenceRow(line, (), found is not None and found.groups() in library)
        else:
            rows[key] = replace(known, same=(*known.same, line))
    return tuple(rows.values())


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """`count` attempts, from `first` to `last`, with the same entry as cause, or with none."""

    first: Attempt
    last: Attempt
    count: int


def attempt_rows(attempts: Sequence[Attempt]) -> tuple[AttemptRow, ...]:
    """Returns a row for each sequence of attempts with the same entry."""
    runs = (list(run) for _, run in groupby(attempts, key=lambda attempt: attempt.entry))
    return tuple(AttemptRow(run[0], run[-1], len(run)) for run in runs)
