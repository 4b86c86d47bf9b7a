"""Retriage in the background of a service: first what today's knowledge would change, then, if somebody says so, that.

One at a time for a service's process. What was found and not applied is forgotten when the next one begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from app.errors import BadInput, TriageError
from app.services.retriage import Difference, Retriage
from app.services.service import Service

MOST_SHOWN = 200  # differences that are told one by one


class Busy(BadInput):
    """A retriage is under way."""

    status = 409
    code = "retriage_under_way"


class Stage(StrEnum):
    """looking → found → applying → applied, or broken."""

    NONE = "none"
    LOOKING = "looking"
    FOUND = "found"
    APPLYING = "applying"
    APPLIED = "applied"
    BROKEN = "broken"

    @property
    def under_way(self) -> bool:
        return self in (Stage.LOOKING, Stage.APPLYING)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a retriage is. `differences` are the first of `found`; `failed` could not be triaged and stay."""

    stage: Stage = Stage.NONE
    by: str = ""
    chosen: tuple[str, ...] = ()
    looked_at: int = 0
    failed: int = 0
    found: int = 0
    changed: int = 0
    differences: tuple[Difference, ...] = field(default=())
    problem: str | None = None


class Rework:
    """Holds the retriage of a service's process, if there is one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._retriage: Retriage | None = None
        self._progress = Progress()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def progress(self) -> Progress:
        return self._progress

    def look(self, by: str, incident_ids: Sequence[str] = ()) -> None:
        """Begins to look at these incidents, or at all whose verdict is of other knowledge. Raises Busy."""
        with self._lock:
            self._refuse_while_busy()
            self._close()
            self._retriage = Retriage(self._service, tuple(incident_ids))
            self._progress = Progress(Stage.LOOKING, by, tuple(incident_ids))
            self._start(self._look)

    def apply(self, by: str) -> None:
        """Begins to keep what was found. Raises Busy, BadInput where nothing was."""
        with self._lock:
            self._refuse_while_busy()
            if self._progress.stage is not Stage.FOUND:
                raise BadInput("there is no retriage that could be applied")
            self._progress = replace(self._progress, stage=Stage.APPLYING)
            self._start(partial(self._apply, by))

    def discard(self) -> None:
        """Forgets what was found. Raises Busy."""
        with self._lock:
            self._refuse_while_busy()
            self._close()
            self._progress = Progress()

    def wait(self) -> None:
        """Waits until what is under way has ended."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Ends a look that is under way as soon as it can, and waits for changes that are."""
        self._stopping.set()
        self.wait()
        self._close()

    def _start(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, name="retriage", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        retriage = self._known()
        try:
            for difference in retriage.look():
                progress = self._progress
                shown = progress.differences
                self._progress = replace(
                    progress,
                    looked_at=retriage.looked_at,
                    failed=retriage.failed,
                    found=progress.found + 1,
                    differences=shown if len(shown) == MOST_SHOWN else (*shown, difference),
                )
                if self._stopping.is_set():
                    return
        except TriageError as error:
            self._progress = replace(self._progress, stage=Stage.BROKEN, problem=error.message)
            return
        self._progress = replace(
            self._progress, stage=Stage.FOUND, looked_at=retriage.looked_at, failed=retriage.failed
        )

    def _apply(self, by: str) -> None:
        try:
            changed = self._known().change(by)
        except TriageError as error:
            self._progress = replace(self._progress, stage=Stage.BROKEN, problem=error.message)
            return
        self._progress = replace(self._progress, stage=Stage.APPLIED, changed=changed)

    def _known(self) -> Retriage:
        assert self._retriage is not None
        return self._retriage

    def _refuse_while_busy(self) -> None:
        if self._progress.stage.under_way:
            raise Busy("a retriage is under way; wait until it has ended")

    def _close(self) -> None:
        if self._retriage is not None:
            self._retriage.close()
            self._retriage = None
