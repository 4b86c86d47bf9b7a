"""A report of a run that has not ended, over HTTP and on its page, and the one that replaces it."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

HANGS = "step 1 loss 2.5\nstep 2 loss 2.4\ntorchtriage watch: no output for 95 s (limit 90 s); reached 2\n"


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "Provisional: the job had not ended"), ("zh", "临时结论：上报时任务尚未结束")]
)
def test_the_page_says_that_it_is_provisional_until_the_run_ends(both: TestClient, lang: str, words: str) -> None:
    query = "/api/v1/incidents?wait=60&job_id=4711&provisional="
    first = both.post(f"{query}true", content=HANGS.encode())
    assert (first.status_code, first.json()["verdict"]["provisional"]) == (201, True)
    assert first.json()["job"] == {"job_id": "4711", "provisional": True}
    page = f"/incidents/{first.json()['id']}?lang={lang}"
    assert words in both.get(page).text
    last = both.post(f"{query}false&exit_code=0", content=b"step 3 loss 2.3\ntraining finished\n")
    assert (last.status_code, last.json()["id"]) == (201, first.json()["id"])
    assert last.json()["verdict"]["provisional"] is False
    assert words not in both.get(page).text
    listed = both.get("/api/v1/incidents").json()["items"]
    assert [(one["id"], one["verdict"]["outcome"]) for one in listed] == [(first.json()["id"], "healthy")]
