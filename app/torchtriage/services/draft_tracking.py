"""Counts the new incidents that match a tracked draft, and what it would have said about them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from torchtriage.domain.back_test import BackTest
from torchtriage.domain.draft import StoredDraft
from torchtriage.errors import TriageError
from torchtriage.knowledge.drafted_entry import entry_of
from torchtriage.services.back_test import counted, specific_cases
from torchtriage.services.engine_runner import KnownRun
from torchtriage.services.retriage import parts_of
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import order_of
from torchtriage.storage import drafts, retriage_reads

log = logging.getLogger(__name__)
_MAX_COUNT = 200  # maximum incidents per draft and read


def count_tracked(service: Service, stopping: Callable[[], bool] = bool) -> None:
    """For each tracked draft, checks the incidents that arrived since the last call.

    Raises StorageUnavailable.
    """
    with service.database.reading() as session:
        tracked = drafts.tracked(session)
    for draft, since, before in tracked:
        try:
            while not stopping() and (further := _count(service, draft, since, before)) is not None:
                since, before = further
        except TriageError as error:
            log.warning("cannot count the incidents of draft %s: %s", draft.id, error.message)


def _count(service: Service, draft: StoredDraft, since: int, before: BackTest) -> tuple[int, BackTest] | None:
    """Returns the id of the last incident counted and the new counts, or None if there is nothing more to count."""
    with service.database.reading() as session:
        until = retriage_reads.ended_until(session)
        new = [kept for kept in retriage_reads.triaged_after(session, since, _MAX_COUNT) if int(kept.id) <= until]
    if not new:
        return None
    entry, now = entry_of(draft.draft), before
    specific = specific_cases(service, entry)
    for part in parts_of(iter(new)):
        answers = service.triager.try_entry(entry, [KnownRun(order_of(kept.log, kept.job), kept.key) for kept in part])
        now = counted(now, entry, specific, part, answers)
    last = int(new[-1].id)
    with service.database.transaction(durable=False) as session:
        if not drafts.count(session, draft.id, since, last, replace(now, revision=draft.revision)):
            return None
    return last, now
