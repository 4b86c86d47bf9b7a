"""Retriage in the background of a service: a preview first, then, if somebody confirms it, the change.

One runs at a time per database. Its progress is stored there, so that each server shows the same and can apply what
another found.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial

from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.errors import BadInput, TriageError
from torchtriage.services.retriage import Difference, Retriage
from torchtriage.services.service import Service
from torchtriage.storage import retriage_job, retriage_reads
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.retriage_job import StoredProgress

MAX_SHOWN = 200  # maximum differences that are listed one by one
_TIMEOUT = 5.0  # seconds that the current work may take after the service begins to stop
_NOTED = 2.0  # seconds between two writes of the progress
_GONE = timedelta(seconds=30)  # after this time without a write, the process counts as dead


class Busy(BadInput):
    """A retriage is running."""

    status = 409
    code = "retriage_under_way"


class Outdated(BadInput):
    """The knowledge has changed since the preview."""

    status = 409
    code = "retriage_outdated"


class Stage(StrEnum):
    """looking → found → applying → applied, or broken. A preview (found) becomes outdated when the
    knowledge changes."""

    NONE = "none"
    LOOKING = "looking"
    FOUND = "found"
    OUTDATED = "outdated"
    APPLYING = "applying"
    APPLIED = "applied"
    BROKEN = "broken"

    @property
    def under_way(self) -> bool:
        return self in (Stage.LOOKING, Stage.APPLYING)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a retriage.

    `found` counts the incidents whose verdict differs, `failed` those that could not be triaged and do not change;
    `differences` lists the first of both. `reanswered` counts those found with the same cause and another case. `ids`
    are those found, set when the preview is complete. `knowledge` is the version used.
    """

    stage: Stage = Stage.NONE
    by: str = ""
    chosen: tuple[str, ...] = ()
    looked_at: int = 0
    failed: int = 0
    found: int = 0
    changed: int = 0
    differences: tuple[Difference, ...] = ()
    ids: tuple[str, ...] = ()
    problem: str | None = None
    reanswered: int = 0
    knowledge: str = ""


class RetriageJobs:
    """Starts, shows and applies the retriages of a database. One object per server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._doing: _RunningRetriage | None = None

    @property
    def progress(self) -> Progress:
        with self._service.database.reading() as session:
            return self._current_progress(retriage_job.read(session))

    @property
    def older(self) -> int:
        """The number of incidents with a verdict of other knowledge, which a preview of all would triage."""
        with self._service.database.reading() as session:
            return retriage_reads.count_of_other_knowledge(session, self._service.knowledge_version)

    def start_preview(self, by: str, incident_ids: Sequence[str] = ()) -> None:
        """Starts a preview of these incidents, or of all with a verdict of other knowledge. Raises Busy."""
        self._begin(lambda _: self._looking(by, tuple(incident_ids)))

    def preview_again(self, by: str) -> None:
        """Starts a preview of the incidents chosen last. Raises Busy, and BadInput if none were chosen."""
        self._begin(partial(self._looking_again, by))

    def apply(self, by: str) -> None:
        """Starts to apply the preview. Raises Busy, Outdated, and BadInput if there is none."""
        self._begin(partial(_applying, by))

    def discard(self) -> None:
        """Deletes the preview. Raises Busy."""
        with self._service.database.transaction() as session:
            _not_busy(_progress(retriage_job.hold(session)))
            retriage_job.discard(session)

    def wait(self) -> None:
        """Waits until the retriage of this server has ended."""
        if self._doing is not None:
            self._doing.thread.join()

    def close(self) -> None:
        """Ends the retriage of this server after the current incident, or during one that takes long."""
        if self._doing is not None:
            self._doing.retriage.stop()
            self._doing.thread.join(_TIMEOUT)
            if self._doing.thread.is_alive():
                self._service.triager.interrupt()
            self.wait()

    def _begin(self, following: Callable[[Progress], Progress]) -> None:
        run = uuid.uuid4().hex
        with self._service.database.transaction() as session:
            progress = following(_not_busy(self._current_progress(retriage_job.hold(session))))
            retriage_job.begin(session, _to_stored(run, progress))
        self._doing = _RunningRetriage(self._service, run, progress)
        self._doing.thread.start()

    def _looking(self, by: str, chosen: tuple[str, ...]) -> Progress:
        return Progress(Stage.LOOKING, by, chosen, knowledge=self._service.knowledge_version)

    def _looking_again(self, by: str, before: Progress) -> Progress:
        if not before.chosen:
            raise BadInput("no incident to re-triage")
        return self._looking(by, before.chosen)

    def _current_progress(self, noted: StoredProgress | None) -> Progress:
        """Returns the progress. A preview with other knowledge than that in use here is outdated."""
        progress = _progress(noted)
        if progress.stage is Stage.FOUND and progress.knowledge != self._service.knowledge_version:
            return replace(progress, stage=Stage.OUTDATED)
        return progress


class _RunningRetriage:
    """One preview, or one change, in its own thread. A second thread stores the progress."""

    def __init__(self, service: Service, run: str, progress: Progress) -> None:
        self._service, self._run, self._begun = service, run, progress
        self._looking = progress.stage is Stage.LOOKING
        self._shown: list[Difference] = []
        self._ended = threading.Event()
        self.retriage = Retriage(service, progress.chosen if self._looking else progress.ids)
        self.thread = threading.Thread(target=self._work, name="retriage")

    def _work(self) -> None:
        noting = threading.Thread(target=self._save_periodically, name="retriage-notes")
        noting.start()
        last = self._broken("it was interrupted; see the service's log")
        try:
            for difference in self.retriage.preview() if self._looking else self.retriage.change(self._begun.by):
                if len(self._shown) < MAX_SHOWN:
                    self._shown.append(difference)
            last = self._broken("the service was stopped") if self.retriage.stopped else self._done()
        except TriageError as error:
            last = self._broken(error.message)
        finally:
            self._ended.set()
            noting.join()
            self._save_progress(last)

    def _save_periodically(self) -> None:
        while not self._ended.wait(_NOTED):
            self._save_progress(self._now())

    def _now(self) -> Progress:
        retriage = self.retriage
        if not self._looking:
            return replace(self._begun, changed=retriage.changed)
        return replace(
            self._begun,
            looked_at=retriage.looked_at,
            found=len(retriage.found),
            failed=retriage.failed,
            reanswered=retriage.reanswered,
            differences=tuple(self._shown),
        )

    def _done(self) -> Progress:
        if self._looking:
            return replace(self._now(), stage=Stage.FOUND, ids=tuple(self.retriage.found))
        return replace(self._now(), stage=Stage.APPLIED)

    def _broken(self, problem: str) -> Progress:
        return replace(self._now(), stage=Stage.BROKEN, problem=problem)

    def _save_progress(self, progress: Progress) -> None:
        # If the database is unavailable, the next write may succeed. Without any write, the process counts as dead, and
        # the page says so.
        with suppress(StorageUnavailable), self._service.database.transaction(durable=False) as session:
            retriage_job.note(session, _to_stored(self._run, progress))


def _applying(by: str, before: Progress) -> Progress:
    if before.stage is Stage.OUTDATED:
        raise Outdated("the knowledge base has changed since this preview; run it again")
    if before.stage is not Stage.FOUND:
        raise BadInput("no finished retriage to apply")
    return replace(before, stage=Stage.APPLYING, by=by)


def _not_busy(progress: Progress) -> Progress:
    if progress.stage.under_way:
        raise Busy("a retriage is running; wait until it ends")
    return progress


def _to_stored(run: str, progress: Progress) -> StoredProgress:
    return StoredProgress(run, progress.stage, datetime.now(UTC), fields_form(progress))


def _progress(noted: StoredProgress | None) -> Progress:
    if noted is None:
        return Progress()
    progress = from_json_form(Progress, noted.progress | {"stage": noted.stage})
    if progress.stage.under_way and abs(datetime.now(UTC) - noted.seen_at) > _GONE:
        return replace(progress, stage=Stage.BROKEN, problem="its process is gone")
    return progress
