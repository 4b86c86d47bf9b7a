"""What every reader sees first: what failed, where, why, what to do, whether to retry, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.verdict import AnswerStep, Evidence


@dataclass(frozen=True)
class FirstScreen:
    """The parts in one language. A part is None or empty if the log does not show it.

    `what` says in a sentence or two what failed. `where` is rank, host, time and the user's line of code, each in
    words; `seen_on` are the ranks that show the failure if none is named, and `frame` is the line of code. `why` is the
    line of the log that shows it. `retry` is yes, no, once or elsewhere, `because` is the sentence with the reason, and
    `exclusion` is the option that leaves hosts out. `sure` is certain, likely or possible, or None if the cause is not
    known. `unknown` is what this log does not show. `beside` is `what` without the line that it quotes, if it quotes
    one.
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
    beside: str | None = None

    @property
    def what_beside(self) -> str:
        """Returns what failed, for a place that shows the line next to it."""
        return self.beside or self.what

    def below(self, title: str) -> str:
        """Returns what failed, for a place that already shows the title above."""
        return self.what.removeprefix(title).lstrip(".。 ")
