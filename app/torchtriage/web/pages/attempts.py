"""The attempts of a launch as rows of a list: those behind one another that failed of the same become one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from torchtriage.domain.verdict import Attempt


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """`count` attempts from `first` to `last` that failed of the same entry, or of none."""

    first: Attempt
    last: Attempt
    count: int


def attempt_rows(attempts: Sequence[Attempt]) -> tuple[AttemptRow, ...]:
    """-> a row for each change of what the attempts failed of."""
    runs = (list(run) for _, run in groupby(attempts, key=lambda attempt: attempt.entry))
    return tuple(AttemptRow(run[0], run[-1], len(run)) for run in runs)
