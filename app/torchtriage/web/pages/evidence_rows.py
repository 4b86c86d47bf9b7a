"""The lines that show a root cause, as a reader takes them in: the telling one first, the rest in the log's order, and
those that say the same as one row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torchtriage.domain.verdict import Evidence, RootCause
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.masking import mask_all

_WRITER = lazy_regex(r"^(?:\[[^\]]{1,40}\]:?\s*)+")  # `[rank3]:[E0501 …]`: who wrote it and when
_FRAME = lazy_regex(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """`same` are further lines that differ from it in numbers and writers only; `library` is whether it is a frame of
    installed code."""

    line: Evidence
    same: tuple[Evidence, ...] = ()
    library: bool = False


def evidence_rows(root: RootCause) -> tuple[EvidenceRow, ...]:
    """-> the evidence of a root cause."""
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
