from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

from tests.built_in import built_in_engine
from tests.web.logs import OOM
from torchtriage.domain.incident import Incident, Job, State, StoredFile, StoredLog
from torchtriage.reading.sources import from_bytes
from torchtriage.web.pages.markdown import markdown


def incident(**more: Any) -> Incident:
    log = StoredLog("a", (StoredFile("run.log", "a", 1, 1),))
    return Incident("7", State.TRIAGED, datetime.now(UTC), Job(job_name="ft", **more), log)


def test_it_says_what_to_do_and_contains_no_secret_and_no_markup_of_the_log() -> None:
    engine = built_in_engine()
    evil = OOM.replace("memory.", "memory. ``` HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789", 1)
    verdict = engine.triage(from_bytes(evil.encode()))
    told = markdown(incident(user="@everyone"), verdict, "http://here/incidents/7", "en")
    for expected in ("### The GPU ran out of memory", "http://here/incidents/7", "rank 3", "`cuda.oom`", "`@everyone`",
                     "\n1. ", "expandable_segments:True", "````text\n4: [rank3]: torch.OutOfMemoryError"):  # fmt: skip
        assert expected in told
    assert "hf_abc" not in told
    assert "重试有用吗" in markdown(incident(), verdict, "http://here/incidents/7", "zh")


def test_an_incident_without_a_verdict_says_what_it_waits_for() -> None:
    waiting = dataclasses.replace(incident(), state=State.RECEIVED)
    assert "### Waiting for triage" in markdown(waiting, None, "http://here/incidents/7", "en")
