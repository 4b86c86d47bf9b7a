"""Reads the output of `torchfrtrace`, or of the debug server of torch.distributed, about the dumps of a run. Finds the
ranks that did not join a collective.

The tool compares the calls of one group at a time. So a rank that it calls missing may itself wait in another group.
Only ranks that wait nowhere are suspects. The formats are those of torch 2.5 to 2.13,
torch/distributed/flight_recorder/components.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from torchtriage.domain.evidence import Call, Hang
from torchtriage.domain.line import Line, Position
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.flight_recorder import is_library
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

MAX_BYTES = 32 << 20
_MAX_FINDINGS = 50_000
_MAX_RANKS = 65_536
_MAX_LENGTH = 2000  # characters of a line
_MAX_LINES = 6  # lines that are shown
_MISSING = "Not all ranks"
_FINDING = lazy_regex(
    r"(Not all ranks) joining collective,? (?:sequence number: )?(\d{1,12})"
    r"|(Collective sequence number|Input/output mismatch in the collective sequence number): (\d{1,12})"
)
_FIELD = lazy_regex(
    r"(group info|collective|missing ranks|input sizes|expected ranks|collective state|error msg): (.*)$"
)
_OTHER_FIELD = lazy_regex(
    r"internal record id: |total (?:in|out)put numel: |output sizes: |world size: |collective stack trace: *$"
)
_PLAIN = lazy_regex(
    r"\s*$|tabulate is not installed|loaded \d+ files|No errors found for this collective entry"
    r"|We cannot decide what's wrong"
    r"|Too many mismatches for process_group |Rank \S+ (?:has an empty op list|does not have a coalesced end)"
)
# forward at /job/train.py:30
_FRAME = lazy_regex(r"\s*\S.{0,200} at (\S.{0,300}):(\d{1,9})\s*$")
# Culprit rank 2; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match found
# collective type: 'broadcast'
_CULPRIT = lazy_regex(r"Culprit rank (\d{1,7}); Error type: (\w{1,60})")
_CALLED = lazy_regex(r"Expected ([a-z ]{4,40}): '(.{0,200}?)' does not match found ([a-z ]{4,40}): '(.{0,200}?)'")
# === FR Trace ===, and a row of its table of collectives: 0 74 True 20947 0 91931 74:EXPERT_PARALLEL nccl:all_to_all
# [[4096]] [[4064]] {12, 13, 14, 15} scheduled [] {15}
_TABLES = "=== FR Trace"
_ROW = lazy_regex(
    r" *\d{1,9} +\S{1,60} +(?:True|False) +(\d{1,12}) +\d{1,12} +\d{1,12} +(\S{1,200})"
    r" +(\w{1,20}:\S{1,60}(?: \S{1,20})?)"
    r"  (.{0,4000}?)(\{[\d, ]{1,400000}\})(?:[^{}]{1,4000}(\{[\d, ]{1,400000}\}))?"
)
_NUMBER = lazy_regex(r"\d{1,7}")


@dataclass(slots=True)
class MismatchRow:
    """A collective that did not match. `missing` are ranks that did not join it; `culprits` are ranks that called
    something else."""

    kind: str
    sequence: int
    lines: list[Line]
    group: str = ""
    operation: str = ""
    sizes: str = ""
    where: str | None = None
    expected: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    culprits: dict[int, str] = field(default_factory=dict)  # rank → the tool's words about it

    @property
    def between_two(self) -> bool:
        """Whether it is a send or recv. For these, the tool calls all other ranks of the group missing."""
        return self.operation.startswith(("send", "recv"))


def read_trace(data: bytes, file: str | None, position: int) -> list[MismatchRow]:
    """Returns the findings of a file, in order. Raises NotRead if it contains more than such output."""
    found: list[MismatchRow] = []
    tables = False
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = Line(number, text[:_MAX_LENGTH], text[:_MAX_LENGTH], Position(position, number), file)
        tables = tables or text.startswith(_TABLES)
        if tables:
            if (row := _ROW.match(text)) and row[6] and len(found) < _MAX_FINDINGS:
                found.append(_of_row(row, line))
        elif head := _FINDING.match(text):
            if len(found) >= _MAX_FINDINGS:
                raise NotRead(f"more than {_MAX_FINDINGS:,} collectives")
            found.append(MismatchRow(head[1] or head[3], int(head[2] or head[4]), [line]))
        elif found and (field := _FIELD.match(text)):
            _add(found[-1], field[1], field[2].strip(), line)
        elif found and (frame := _FRAME.match(text)):
            if found[-1].where is None and not is_library(frame[1]):
                found[-1].where = f"{frame[1].rpartition('/')[2]}:{frame[2]}"[:80]
        elif not (_PLAIN.match(text) or _OTHER_FIELD.match(text)):
            raise NotRead("more than the output of torchfrtrace")
    return found


def _of_row(row: re.Match[str], line: Line) -> MismatchRow:
    group = row[2].partition(":")[2] or row[2]
    sizes = row[4].split("  ")[0].strip()[:200]
    return MismatchRow(
        _MISSING, int(row[1]), [line], group, row[3].rpartition(":")[2], sizes, None, _ranks(row[5]), _ranks(row[6])
    )


def _ranks(text: str) -> frozenset[int]:
    return frozenset(int(hit[0]) for hit, _ in zip(_NUMBER.finditer(text), range(_MAX_RANKS), strict=False))


def _add(finding: MismatchRow, name: str, value: str, line: Line) -> None:
    if name == "group info":
        finding.group = value.partition(":")[2] or value
    elif name == "collective":
        finding.operation = value.rpartition(":")[2][:200]
    elif name == "input sizes":
        finding.sizes = value[:200]
    elif name in ("missing ranks", "expected ranks"):
        ranks = _ranks(value)
        if name == "missing ranks":
            finding.missing = ranks
            finding.lines.append(line)
        else:
            finding.expected = ranks
    elif name == "error msg":
        finding.lines.append(line)
        starts = [*(hit.start() for hit in _CULPRIT.finditer(value)), len(value)]
        for start, end in pairwise(starts):
            if hit := _CULPRIT.match(value, start):
                finding.culprits[int(hit[1])] = value[start:end]


def hang_of_trace(found: Iterable[MismatchRow], words: CollectiveVocabulary) -> Hang | None:
    """Returns the ranks that others wait for and that wait nowhere themselves, or None if there are none."""
    collectives = [one for one in found if not one.between_two]
    absent = [one for one in collectives if one.missing and one.kind == _MISSING]
    waiting = frozenset(rank for one in absent for rank in one.expected - one.missing)
    suspects = frozenset(rank for one in absent for rank in one.missing) - waiting
    if suspects:
        first = next(one for one in absent if one.missing & suspects)
        lines = [line for one in absent if one.missing & suspects for line in one.lines][:_MAX_LINES]
        return Hang("missing", tuple(sorted(suspects)), tuple(sorted(waiting)), _call(first), first.group, tuple(lines))
    return next(filter(None, (_other_call(one, words) for one in collectives)), None) if not absent else None


def _other_call(finding: MismatchRow, words: CollectiveVocabulary) -> Hang | None:
    """Returns the few ranks of a group that called another operation, or used other sizes. The state of a call is not
    compared."""
    for text in finding.culprits.values():
        called = _CALLED.search(text)
        few = len(finding.culprits) * 2 < len(finding.expected)
        if called is None or not few or "state" in called[1]:
            continue
        of_type = "type" in called[1] and "dtype" not in called[1]
        if not of_type and not words.needs_equal_sizes(finding.operation):
            continue
        suspects = tuple(sorted(finding.culprits))
        others = tuple(sorted(finding.expected - finding.culprits.keys()))
        own = _call(finding, called[4] if of_type else None, None if of_type else called[4])
        theirs = _call(finding, called[2] if of_type else None, None if of_type else called[2])
        return Hang("other-call", suspects, others, theirs, finding.group, tuple(finding.lines[:_MAX_LINES]), other=own)
    return None


def _call(finding: MismatchRow, operation: str | None = None, sizes: str | None = None) -> Call:
    name = (operation or finding.operation).rpartition(":")[2] or "?"
    shown = "" if operation else (finding.sizes if sizes is None else sizes)
    return Call(finding.group, finding.sequence, name, 0, 1, sizes=shown, where=finding.where)
