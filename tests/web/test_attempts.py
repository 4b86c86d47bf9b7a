from __future__ import annotations

from torchtriage.domain.verdict import Attempt
from torchtriage.web.pages.attempts import attempt_rows


def test_attempts_that_failed_of_the_same_are_one_row() -> None:
    entries = ["cuda.oom", "cuda.oom", "cuda.oom", None, "cuda.oom"]
    rows = attempt_rows([Attempt(number, entry, 10 * number) for number, entry in enumerate(entries)])
    told = [(row.first.attempt, row.last.attempt, row.count, row.first.entry, row.last.line) for row in rows]
    assert told == [(0, 2, 3, "cuda.oom", 20), (3, 3, 1, None, 30), (4, 4, 1, "cuda.oom", 40)]
