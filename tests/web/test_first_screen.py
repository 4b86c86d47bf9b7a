"""Terminal, pages, Markdown, chats, client and agents show the same parts first."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import cast

import pytest
from fastapi.testclient import TestClient

from tests.corpus.fingerprints import CORPUS
from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.localized_verdict import localized
from torchtriage.chat.plain_text import text
from torchtriage.chat.slack_blocks import message
from torchtriage.cli.verdict_report import report
from torchtriage.client.torchtriage_client import summary_lines
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.notice import NoticeKind
from torchtriage.services.incidents import read_incident
from torchtriage.services.notices import notice_of
from torchtriage.services.service import Service

UNKNOWN = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 3, in <module>\n    run(`x`)\nDriftError: layer 7\n'
)
LOGS = {
    "known": (CORPUS / "attribute_rank2" / "log.txt").read_bytes(),
    "once": (CORPUS / "world_too_large" / "log.txt").read_bytes(),
    "bad host": (Path(__file__).parents[2] / "app/torchtriage/web/samples/hardware.log").read_bytes(),
    "unknown": UNKNOWN.encode(),
}


def bare(shown: str) -> str:
    """Returns a text without its space and Markdown's signs, in which parts are looked for."""
    return re.sub(r"[\s`\\]", "", shown)


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def parts(screen: FirstScreen) -> list[str]:
    found = [screen.because, screen.exclusion, screen.unknown or "", screen.frame or ""]
    found += [step.do for step in screen.steps]
    return [bare(part) for part in found if part]


def handed_in(client: TestClient, log: bytes) -> str:
    return str(client.post("/api/v1/incidents?wait=60", content=log).json()["id"])


@pytest.mark.parametrize("name", LOGS)
def test_every_channel_shows_the_same_first_screen(client: TestClient, name: str) -> None:
    number = handed_in(client, LOGS[name])
    service = cast(Service, client.app.state.service)  # type: ignore[attr-defined]
    incident = read_incident(service, number)
    assert incident.verdict is not None
    assert incident.group is not None
    for lang in ("en", "zh"):
        verdict = localized(incident.verdict, service.knowledge, lang)
        screen = first_screen(verdict, lang)
        assert verdict.root_cause is not None
        assert screen.why is not None
        title = verdict.root_cause.title
        places = {
            "terminal": report(verdict, lang, colour=False),
            "page": text_of(client.get(f"/incidents/{number}?lang={lang}").text),
            "group": text_of(client.get(f"/groups/{incident.group.id}?lang={lang}").text),
            "markdown": client.get(f"/incidents/{number}.md?lang={lang}").text,
        }
        for place, shown in places.items():
            for part in [*parts(screen), bare(screen.below(title))]:
                assert part in bare(shown), (place, part)
            assert bare(screen.why.text)[:60] in bare(shown), place
            assert bare(title)[:60] in bare(shown) or place == "terminal"
    client.cookies.clear()


@pytest.mark.parametrize("name", LOGS)
def test_chats_and_the_client_tell_the_same(client: TestClient, name: str) -> None:
    number = handed_in(client, LOGS[name])
    service = cast(Service, client.app.state.service)  # type: ignore[attr-defined]
    incident = read_incident(service, number)
    notice = notice_of(service, NoticeKind.NEW, incident, None, 0, {})
    assert notice.screen is not None
    assert incident.verdict is not None
    assert notice.screen == first_screen(localized(incident.verdict, service.knowledge, "en"), "en")
    below = bare(notice.screen.below(notice.title))
    slack = str(message(notice)["blocks"]).replace("\\'", "'").replace('\\"', '"')
    for shown in (text(notice), slack):
        assert all(part[:150] in bare(shown) for part in [*parts(notice.screen), below]), shown
        for step in notice.screen.steps:
            assert step.run is None or len(step.run) > 200 or bare(step.run) in bare(shown)
    lines = summary_lines(incident.as_dict("http://here"))
    assert len(lines) <= 20
    shown = "\n".join(lines)
    for part in [*parts(notice.screen), bare(notice.screen.what)]:
        if part != bare(notice.screen.exclusion):  # the client names the hosts themselves
            assert part[:400] in bare(shown), part
    assert all(host in shown for host in incident.verdict.action.exclude_hosts)


def test_a_rank_that_never_arrived_has_no_time(client: TestClient) -> None:
    log = Path(__file__).parents[2] / "app/torchtriage/web/samples/stuck.log"
    number = handed_in(client, log.read_bytes())
    incident = read_incident(cast(Service, client.app.state.service), number)  # type: ignore[attr-defined]
    assert incident.verdict is not None
    assert incident.root_cause is not None
    assert incident.root_cause.time is not None  # of those who waited for it
    assert first_screen(incident.verdict, "en").where == ("rank 3",)
    page = client.get(f"/incidents/{number}?lang=en").text
    cell = page.split("Failed first", 1)[1].split("Will a retry help?", 1)[0]
    assert "09:12" not in cell
    assert "6 more like it:" in page
    never = page.split("<b>Never arrived</b>", 1)[1].split("</li>", 1)[0]
    assert "×" not in never


def test_a_link_in_the_first_screen_leads_to_the_details(client: TestClient) -> None:
    page = client.get(f"/incidents/{handed_in(client, LOGS['known'])}?lang=en").text
    first, behind = page.split('class="actions"', 1)
    assert "#why" in first
    assert '<details class="fold part" id="why">' in behind
    assert "Possible causes" in behind
    assert "Possible causes" not in first
    assert page.count("<details open") == 0
    client.cookies.clear()
