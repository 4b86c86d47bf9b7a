"""A log that shows neither a failure nor a good end, wherever it is read: neither green nor red, and no alarm."""

from __future__ import annotations

import html
import re
from typing import cast

import pytest
from fastapi.testclient import TestClient

from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.localized_verdict import localized
from torchtriage.chat.plain_text import text
from torchtriage.chat.slack_blocks import message
from torchtriage.cli.verdict_report import report
from torchtriage.client.torchtriage_client import status_of, summary_lines
from torchtriage.domain.notice import NoticeKind
from torchtriage.services.incidents import read_incident
from torchtriage.services.notices import notice_of
from torchtriage.services.service import Service

STEPS = "".join(f"step {step} loss {3 / (step + 1):.3f}\n" for step in range(30))
LAST = "gpu-3:812:1200 [2] transport/net.cc:77 NCCL WARN NET/IB : something that nobody knows"


def bare(shown: str) -> str:
    return re.sub(r"[\s`\\]", "", html.unescape(re.sub(r"<[^>]+>", "", shown)))


def handed_in(client: TestClient, log: str, query: str = "") -> str:
    answer = client.post(f"/api/v1/incidents?wait=60{query}", content=log.encode()).json()
    assert answer["verdict"]["outcome"] == "inconclusive"
    return str(answer["id"])


def service_of(client: TestClient) -> Service:
    return cast(Service, client.app.state.service)  # type: ignore[attr-defined]


def test_lists_and_titles_say_what_was_handed_in(client: TestClient) -> None:
    asked = handed_in(client, "how do I fix cuda out of memory?")
    handed_in(client, STEPS + LAST)
    page = client.get("/incidents").text
    assert "Not the log of a run" in page
    assert "something that nobody knows" in page
    assert "<h1" in (own := client.get(f"/incidents/{asked}").text)
    assert "Not the log of a run" in own
    assert "不是运行日志" in client.get(f"/incidents/{asked}?lang=zh").text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_faces_say_what_is_missing_and_where_it_is(client: TestClient, lang: str) -> None:
    number = handed_in(client, STEPS + LAST)
    service = service_of(client)
    incident = read_incident(service, number)
    assert incident.verdict is not None
    assert incident.group is None
    verdict = localized(incident.verdict, service.knowledge, "zh" if lang == "zh" else "en")
    screen = first_screen(verdict, "zh" if lang == "zh" else "en")
    assert screen.why is not None
    assert screen.why.line == 31
    notice = notice_of(service, NoticeKind.ANSWER, incident, None, 0, {})
    shown = {
        "terminal": report(verdict, "zh" if lang == "zh" else "en", colour=False),
        "page": client.get(f"/incidents/{number}?lang={lang}").text,
        "markdown": client.get(f"/incidents/{number}.md?lang={lang}").text,
        "brief": client.get(f"/api/v1/incidents/{number}/brief?lang={lang}").text,
    }
    if lang == "en":
        shown |= {
            "chat": text(notice),
            "slack": str(message(notice)),
            "client": "\n".join(summary_lines(incident.as_dict("x"))),
        }
    for place, page in shown.items():
        what = screen.what_beside if place == "page" else screen.what  # the page shows the line next to it
        for part in (what[:60], screen.unknown or "", *(step.do for step in screen.steps)):
            assert bare(part)[:60] in bare(page), (place, part)
    client.cookies.clear()


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (LAST, LAST),
        ("\n".join(f"saving shard {shard} to /data/run" for shard in range(40)), "saving shard 39 to /data/run"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_shows_the_line_once_and_marks_it_in_the_log(
    client: TestClient, lang: str, end: str, line: str
) -> None:
    number = handed_in(client, STEPS + end)
    page = client.get(f"/incidents/{number}?lang={lang}").text
    above, log = page.split('<section class="log"')
    assert bare(above).count(bare(line)) == 1
    marked = re.search(r'<li id="L(\d+)" class="evidence">', log)
    assert marked is not None
    assert f'href="/incidents/{number}/log?line={marked[1]}#L{marked[1]}"' in above
    assert bare(client.get(f"/incidents/{number}.md?lang={lang}").text).count(bare(line)) >= 1
    client.cookies.clear()


def test_the_page_is_neither_green_nor_red(client: TestClient) -> None:
    number = handed_in(client, STEPS + LAST)
    page = client.get(f"/incidents/{number}?lang=en").text
    assert 'class="badge inconclusive"' in page
    assert "notice inconclusive" in page
    assert "notice healthy" not in page
    assert "notice failed" not in page
    assert 'class="retry-' not in page
    listed = client.get("/incidents?outcome=inconclusive&lang=en").text
    assert f'href="/incidents/{number}"' in listed
    assert f'href="/incidents/{number}"' not in client.get("/incidents?outcome=healthy&lang=en").text
    client.cookies.clear()


def test_the_terminal_shows_it_in_yellow(client: TestClient) -> None:
    number = handed_in(client, STEPS + LAST)
    verdict = read_incident(service_of(client), number).verdict
    assert verdict is not None
    first = report(verdict, "en", colour=True).split("\n")[1]
    assert "\x1b[33m" in first
    assert "\x1b[31m" not in first
    assert "\x1b[32m" not in first


def test_a_question_leads_to_the_symptom_search(client: TestClient) -> None:
    page = client.get(f"/incidents/{handed_in(client, 'my training is slow')}?lang=en").text
    assert 'href="/knowledge?q=my%20training%20is%20slow"' in page
    client.cookies.clear()


def test_the_exit_code_that_the_sender_gives_counts(client: TestClient) -> None:
    number = handed_in(client, STEPS, "&exit_code=137&scheduler=slurm&job_id=4711")
    answer = client.get(f"/api/v1/incidents/{number}").json()["verdict"]["answer"]
    assert "exit 137 is SIGKILL" in answer["says"]
    assert any("sacct -j 4711" in (step["run"] or "") for step in answer["steps"])
    handed_in(client, STEPS + "\n", "&state=OUT_OF_MEMORY")


def test_an_empty_log_is_kept_where_its_sender_says_how_the_job_ended(client: TestClient) -> None:
    number = handed_in(client, "", "&exit_code=137&scheduler=slurm&job_id=4712")
    page = client.get(f"/incidents/{number}?lang=en")
    assert page.status_code == 200
    assert "exit137isSIGKILL" in bare(page.text)
    refused = client.post("/api/v1/incidents?job_id=4713", content=b"")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "unreadable_log")


def test_it_counts_as_no_failure(client: TestClient) -> None:
    before = client.get("/api/v1/dashboard").json()["count"]
    number = handed_in(
        client, STEPS + LAST + " 2", "&gpus=8&started_at=2026-05-01T09:00:00Z&ended_at=2026-05-01T10:00:00Z"
    )
    incident = client.get(f"/api/v1/incidents/{number}").json()
    assert incident["gpu_hours_lost"] is None
    assert incident["group"] is None
    assert client.get("/api/v1/dashboard").json()["count"] == before
    assert incident["verdict"]["action"]["retry"] == "no"
    assert status_of(incident) == 13


def test_the_api_knows_the_outcome(client: TestClient) -> None:
    assert "inconclusive" in client.get("/openapi.json").text
    assert client.get("/api/v1/incidents?outcome=inconclusive").status_code == 200
    assert client.get("/api/v1/incidents?outcome=unknown").status_code == 422
