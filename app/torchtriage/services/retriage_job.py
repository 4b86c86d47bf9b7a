"""Retriage in the background of a service: first what today's knowledge would change, then, if somebody says so, that.

One at a time for a database. Its progress is stored there, so that every server shows the same, and each can apply
what another found.
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
from torchtriage.storage.retriage_job import Noted

MOST_SHOWN = 200  # differences that are told one by one
_PATIENCE = 5.0  # seconds that what is under way has when the service stops
_NOTED = 2.0  # seconds between two notes of how far it is
_GONE = timedelta(seconds=30)  # without a note, after which its process is taken for dead


class Busy(BadInput):
    """A retriage is under way."""

    status = 409
    code = "retriage_under_way"


class Outdated(BadInput):
    """The knowledge base is another one than when a preview was made."""

    status = 409
    code = "retriage_outdated"


class Stage(StrEnum):
    """looking → found → applying → applied, or broken. What was found is outdated once other knowledge is in use."""

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
    """How far a retriage is. `found` counts the incidents of which it says otherwise now, `failed` those that could not
    be triaged and stay; `differences` are the first of both. `reanswered` counts those found whose cause stays and that
    another case answers. `ids` are those found, once all were looked at. `knowledge` names what it was looked at with.
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
    """The retriages of a database, as one server of it sees and begins them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._doing: _Doing | None = None

    @property
    def progress(self) -> Progress:
        with self._service.database.reading() as session:
            return self._told(retriage_job.read(session))

    @property
    def older(self) -> int:
        """How many incidents a look at all of them would begin with: their verdict is of other knowledge."""
        with self._service.database.reading() as session:
            return retriage_reads.count_of_other_knowledge(session, self._service.knowledge_version)

    def start_preview(self, by: str, incident_ids: Sequence[str] = ()) -> None:
        """Begins to look at these incidents, or at all whose verdict is of other knowledge. Raises Busy."""
        self._begin(lambda _: self._looking(by, tuple(incident_ids)))

    def look_again(self, by: str) -> None:
        """Begins to look at the incidents that were chosen last. Raises Busy, BadInput where none were."""
        self._begin(partial(self._looking_again, by))

    def apply(self, by: str) -> None:
        """Begins to keep what was found. Raises Busy, Outdated, BadInput where nothing was."""
        self._begin(partial(_applying, by))

    def discard(self) -> None:
        """Forgets what was found. Raises Busy."""
        with self._service.database.transaction() as session:
            _not_busy(_progress(retriage_job.hold(session)))
            retriage_job.discard(session)

    def wait(self) -> None:
        """Waits until what this server does has ended."""
        if self._doing is not None:
            self._doing.thread.join()

    def close(self) -> None:
        """Ends what this server does, between two incidents, or within one that takes long."""
        if self._doing is not None:
            self._doing.retriage.stop()
            self._doing.thread.join(_PATIENCE)
            if self._doing.thread.is_alive():
                self._service.triager.interrupt()
            self.wait()

    def _begin(self, following: Callable[[Progress], Progress]) -> None:
        run = uuid.uuid4().hex
        with self._service.database.transaction() as session:
            progress = following(_not_busy(self._told(retriage_job.hold(session))))
            retriage_job.begin(session, _noted(run, progress))
        self._doing = _Doing(self._service, run, progress)
        self._doing.thread.start()

    def _looking(self, by: str, chosen: tuple[str, ...]) -> Progress:
        return Progress(Stage.LOOKING, by, chosen, knowledge=self._service.knowledge_version)

    def _looking_again(self, by: str, before: Progress) -> Progress:
        if not before.chosen:
            raise BadInput("no incident to re-triage")
        return self._looking(by, before.chosen)

    def _told(self, noted: Noted | None) -> Progress:
        """-> how far it is; what was found with other knowledge than that in use here is outdated."""
        progress = _progress(noted)
        if progress.stage is Stage.FOUND and progress.knowledge != self._service.knowledge_version:
            return replace(progress, stage=Stage.OUTDATED)
        return progress


class _Doing:
    """One look, or one change of what was found, in a thread of its own; a second one notes how far it is."""

    def __init__(self, service: Service, run: str, progress: Progress) -> None:
        self._service, self._run, self._begun = service, run, progress
        self._looking = progress.stage is Stage.LOOKING
        self._shown: list[Difference] = []
        self._ended = threading.Event()
        self.retriage = Retriage(service, progress.chosen if self._looking else progress.ids)
        self.thread = threading.Thread(target=self._work, name="retriage")

    def _work(self) -> None:
        noting = threading.Thread(target=self._keep_noting, name="retriage-notes")
        noting.start()
        last = self._broken("it was interrupted; see the service's log")
        try:
            for difference in self.retriage.preview() if self._looking else self.retriage.change(self._begun.by):
                if len(self._shown) < MOST_SHOWN:
                    self._shown.append(difference)
            last = self._broken("the service was stopped") if self.retriage.stopped else self._done()
        except TriageError as error:
            last = self._broken(error.message)
        finally:
            self._ended.set()
            noting.join()
            self._note(last)

    def _keep_noting(self) -> None:
        while not self._ended.wait(_NOTED):
            self._note(self._now())

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

    def _note(self, progress: Progress) -> None:
        # Where the database is away the next note may get there; without one it is taken for dead, which is told too.
        with suppress(StorageUnavailable), self._service.database.transaction(durable=False) as session:
            retriage_job.note(session, _noted(self._run, progress))


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


def _noted(run: str, progress: Progress) -> Noted:
    return Noted(run, progress.stage, datetime.now(UTC), fields_form(progress))


def _progress(noted: Noted | None) -> Progress:
    if noted is None:
        return Progress()
    progress = from_json_form(Progress, noted.told | {"stage": noted.stage})
    if progress.stage.under_way and abs(datetime.now(UTC) - noted.seen_at) > _GONE:
        return replace(progress, stage=Stage.BROKEN, problem="its process is gone")
    return progress
