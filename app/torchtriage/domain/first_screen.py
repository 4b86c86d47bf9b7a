"""What a reader sees first, wherever it is read: what failed, where, why, what to do, whether to retry, how sure."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.verdict import AnswerStep, Evidence


@dataclass(frozen=True)
class FirstScreen:
    """The parts in one language; None or empty where the log does not tell.

    `what` says in a sentence or two what failed. `where` is rank, host, time and the user's line of code, each in
    words; `seen_on` are the ranks that show it where none is named, `frame` the line of code. `why` is the line of the
    log that tells. `retry` is yes, no, once or elsewhere, `because` the sentence that says why, `exclusion` the option
    that leaves hosts out. `sure` is certain, likely or possible, None where the cause is not known. `unknown` is what
    this log does not show.
    """

    what: str
    where: tuple[str, ...] = ()
    seen_on: str | None = None
    frame: str | None = None
    why: Evidence | None = None
    steps: tuple[AnswerStep, ...] = ()
    retry: str | None = None
    because: str = ""
    exclusion: str = ""
    sure: str | None = None
    unknown: str | None = None

    def below(self, title: str) -> str:
        """-> what failed, for a place where the title is above it already."""
        return self.what.removeprefix(title).lstrip(".。 ")
