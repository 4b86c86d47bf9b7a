"""Back-tests: runs a draft on the stored incidents in the background, and reports what it would change.

One back-test runs at a time per database. Its progress is stored there, so that each server can show and cancel it.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from torchtriage.answer.case_selection import explains_message
from torchtriage.domain.back_test import BackTest, BackTestStage, ShownIn
from torchtriage.domain.draft import Draft, StoredDraft
from torchtriage.domain.entry import Entry
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.errors import BadInput, TriageError
from torchtriage.knowledge.drafted_entry import rough_entry_of, yaml_of
from torchtriage.services.drafts import check, read_draft
from torchtriage.services.engine_runner import DraftResult, KnownRun
from torchtriage.services.retriage import parts_of
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import order_of
from torchtriage.storage import back_tests, retriage_reads
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.retriage_job import StoredProgress
from torchtriage.storage.retriage_reads import TriagedIncident

MAX_SHOWN = 100  # maximum incidents of each kind that are listed one by one
KINDS = ("explains", "takes", "refines", "overrides", "alarms", "beside")
_BATCH_SIZE = 200  # incidents per read
_AHEAD = 4  # queued parts per process, so that no process waits for the database
_NOTED = 1.0  # seconds between two writes of the progress
_GONE = timedelta(seconds=30)  # after this time without a write, the process counts as dead

_Part = list[TriagedIncident]
_Answers = list[DraftResult | TriageError | None]


class BackTestRuns(BadInput):
    """Another back-test is running."""

    status = 409
    code = "back_test_under_way"


class BackTestJobs:
    """Starts, shows and cancels the back-tests of a database. One object per server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._doing: _RunningBackTest | None = None

    def progress(self, draft_id: str) -> BackTest:
        """Returns the draft's latest back-test."""
        with self._service.database.reading() as session:
            return _from_stored(back_tests.read(session, draft_id))

    def start(self, draft_id: str, by: str) -> None:
        """Starts a back-test of the draft on all incidents. Raises NotFound, BackTestRuns, and BadInput if the draft
        has no valid sign."""
        stored = read_draft(self._service, draft_id)
        entry = _entry(self._service, stored.draft)
        run, now = uuid.uuid4().hex, datetime.now(UTC)
        with self._service.database.transaction() as session:
            other = back_tests.hold(session, BackTestStage.RUNNING, now - _GONE)
            if other is not None:
                raise BackTestRuns(f"the back-test of draft {other} is running; wait until it ends", draft=other)
            total = retriage_reads.count_triaged(session)
            test = BackTest(BackTestStage.RUNNING, by, stored.revision, total, content=content_of(stored.draft))
            back_tests.begin(session, draft_id, _to_stored(run, test))
        self._doing = _RunningBackTest(self._service, entry, run, test)
        self._doing.thread.start()

    def cancel(self, draft_id: str) -> None:
        """Cancels the back-test of a draft, on whichever server it runs. Its results so far can still be read."""
        with self._service.database.transaction() as session:
            back_tests.cancel(session, draft_id, BackTestStage.RUNNING, BackTestStage.CANCELLED)

    def wait(self) -> None:
        """Waits until the back-test of this server has ended."""
        if self._doing is not None:
            self._doing.thread.join()

    def close(self) -> None:
        """Ends the back-test of this server after its current part."""
        if self._doing is not None:
            self._doing.stopping.set()
            self.wait()


class _RunningBackTest:
    """One back-test in its own thread. A second thread stores the progress."""

    def __init__(self, service: Service, entry: Entry, run: str, test: BackTest) -> None:
        self._service, self._entry, self._run, self._now = service, entry, run, test
        self._specific = specific_cases(service, entry)
        self._began = time.monotonic()
        self._ended = threading.Event()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, name="back-test")

    def _work(self) -> None:
        noting = threading.Thread(target=self._save_periodically, name="back-test-notes")
        noting.start()
        stage, problem = BackTestStage.BROKEN, "it was interrupted; see the service's log"
        try:
            for part, answers in self._answered():
                self._now = counted(self._now, self._entry, self._specific, part, answers)
            stage, problem = BackTestStage.DONE, ""
            if self.stopping.is_set():
                stage, problem = BackTestStage.BROKEN, "the service was stopped"
        except TriageError as error:
            problem = error.message
        finally:
            self._ended.set()
            noting.join()
            self._now = replace(self._now, stage=stage, problem=problem or None)
            self._save_progress()

    def _answered(self) -> Iterator[tuple[_Part, _Answers]]:
        workers = max(1, self._service.settings.workers)
        pool = ThreadPoolExecutor(workers)
        under_way: deque[tuple[_Part, Future[_Answers]]] = deque()
        try:
            for part in parts_of(self._incidents()):
                if self.stopping.is_set():
                    return
                under_way.append((part, pool.submit(self._triage_with_draft, part)))
                if len(under_way) > workers * _AHEAD:
                    known, answers = under_way.popleft()
                    yield known, answers.result()
            while under_way and not self.stopping.is_set():
                known, answers = under_way.popleft()
                yield known, answers.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _triage_with_draft(self, part: _Part) -> _Answers:
        known = [KnownRun(order_of(kept.log, kept.job), kept.key) for kept in part]
        return self._service.triager.try_entry(self._entry, known)

    def _incidents(self) -> Iterator[TriagedIncident]:
        last = 0
        while True:
            with self._service.database.reading() as session:
                known = retriage_reads.triaged_after(session, last, _BATCH_SIZE)
            if not known:
                return
            last = int(known[-1].id)
            yield from known

    def _save_periodically(self) -> None:
        while not self._ended.wait(_NOTED):
            if not self._save_progress():
                self.stopping.set()

    def _save_progress(self) -> bool:
        """Stores the progress. Returns False if the back-test was cancelled."""
        now = replace(self._now, seconds=round(time.monotonic() - self._began, 1))
        with suppress(StorageUnavailable), self._service.database.transaction(durable=False) as session:
            return back_tests.note(session, _to_stored(self._run, now))
        return True  # the database is unavailable; the next write may succeed


def is_stale(test: BackTest, stored: StoredDraft) -> bool:
    """Returns whether the text of a draft has changed since its back-test. Tracking or approving it changes no text."""
    if test.stage is BackTestStage.NONE:
        return False
    return test.content != content_of(stored.draft) if test.content else test.revision != stored.revision


def content_of(draft: Draft) -> str:
    """Returns a digest of a draft's text."""
    return hashlib.sha256(yaml_of(draft).encode()).hexdigest()[:16]


def specific_cases(service: Service, entry: Entry) -> frozenset[str]:
    """Returns the ids of the cases that identify a certain message or branch, in the entry to which the draft adds a
    case. Its last case, which applies to all other failures, is not among them. Empty if the draft is a whole entry."""
    known = service.knowledge.entries.get(entry.id) if entry.addition else None
    own = known.cases if known else ()
    return frozenset(case.id for case in own if (case.signs or case.when) and explains_message(case))


def counted(now: BackTest, entry: Entry, specific: Collection[str], part: _Part, answers: _Answers) -> BackTest:
    """Returns the back-test with the results for more incidents added. `specific` is the result of `specific_cases`."""
    found = {kind: list(getattr(now, kind)) for kind in KINDS}
    counts, changed, failed = dict(now.counts), list(now.changed), now.failed
    for kept, tried in zip(part, answers, strict=True):
        if isinstance(tried, TriageError):
            failed += 1
        kind = _kind(entry, specific, kept, tried) if isinstance(tried, DraftResult) else None
        if kind is None or kept.key is None:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        if len(found[kind]) < MAX_SHOWN:
            found[kind].append(ShownIn(kept.id, kept.key.outcome, kept.key.entry, kept.key.case or None))
        if kind != "beside":
            changed.append(kept.id)
    return replace(
        now,
        looked_at=now.looked_at + len(part),
        failed=failed,
        counts=counts,
        explains=tuple(found["explains"]),
        takes=tuple(found["takes"]),
        refines=tuple(found["refines"]),
        overrides=tuple(found["overrides"]),
        alarms=tuple(found["alarms"]),
        beside=tuple(found["beside"]),
        changed=tuple(changed),
    )


def _kind(entry: Entry, specific: Collection[str], kept: TriagedIncident, tried: DraftResult) -> str | None:
    """Returns what the entry, or the case added to one, would do to an incident. None if it changes nothing, or is
    already the incident's answer."""
    if kept.key is None or not tried.shown:
        return None
    if entry.addition and (tried.entry != entry.id or tried.case not in {case.id for case in entry.cases}):
        return None
    if kept.key.entry == entry.id:
        if not entry.addition or kept.key.case == tried.case:
            return None
        return "overrides" if kept.key.case in specific else "refines"
    if tried.entry != entry.id:
        return "beside"
    if kept.key.outcome == "healthy":
        return "alarms"
    return "takes" if kept.key.entry else "explains"


def _entry(service: Service, draft: Draft) -> Entry:
    checked = check(service, draft)
    if not draft.sign or any(problem.field == "sign" and not problem.warning for problem in checked.problems):
        raise BadInput("fix the sign first; the back-test looks for it")
    return rough_entry_of(draft)


def _to_stored(run: str, test: BackTest) -> StoredProgress:
    return StoredProgress(run, test.stage, datetime.now(UTC), fields_form(test))


def _from_stored(noted: StoredProgress | None) -> BackTest:
    if noted is None:
        return BackTest()
    test = from_json_form(BackTest, noted.progress | {"stage": noted.stage})
    if test.stage is BackTestStage.RUNNING and abs(datetime.now(UTC) - noted.seen_at) > _GONE:
        return replace(test, stage=BackTestStage.BROKEN, problem="its process is gone")
    return test
