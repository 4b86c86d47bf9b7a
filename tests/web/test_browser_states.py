"""What people rarely see, in a real browser, in both languages: failed triages, lost logs, errors, logins, paper."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import there_are, views
from tests.web.live import serving
from tests.web.logs import OOM
from torchtriage.domain.access import Scope
from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services import incidents, tokens
from torchtriage.services.accept import accept
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import verdicts

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOCALES = {"en": "en-GB", "zh": "zh-CN"}
SHIFT = """
window.shift = 0;
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value; })
  .observe({ type: "layout-shift", buffered: true });
"""
HOST = "node-of-a-cluster-with-a-very-long-name-" * 4 + "7"
XID = f"Nov 16 10:00:00 {HOST} kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, name=python, DBE (double bit error)\n"
HOSTILE = 'Traceback (most recent call last):\n  File "/w/<b>.py", line 7, in step\n    turn()\nwidgets.Jam' + "X" * 300
HOSTILE += ": <img src=x onerror=\"document.title='owned'\"> \u202e\x1b[31m " + "W" * 900 + "\n"


def waiting(ranks: int) -> str:
    """Returns a log in which one rank runs out of memory and all others wait for it."""
    lines = [OOM.replace("rank3", f"rank{ranks // 3}")]
    lines += [
        f"[rank{rank}]:[E1120 09:20:00.104000000 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=78, OpType=ALLREDUCE, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600012 "
        "milliseconds before timing out.\n"
        for rank in range(ranks)
        if rank != ranks // 3
    ]
    return "".join(lines)


def opened(folder: Path, **more: object) -> Service:
    return open_service(Settings(data_dir=folder, workers=0, **more), triage_incident, working=False)  # type: ignore[arg-type]


def given(service: Service, text: str) -> str:
    incident = accept(service, Job(), [Upload("run.log", iter([text.encode()]))]).incident_id
    triage_incident(service, incident)
    return incident


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """Returns the address of a service, and the paths of its pages that are out of the ordinary."""
    service = opened(tmp_path_factory.mktemp("odd"))
    many = [given(service, text) for text in (waiting(512), waiting(2000), XID, HOSTILE)]
    gone, failed = given(service, OOM), accept(service, Job(), [Upload("run.log", iter([b"step 1\n"]))]).incident_id
    service.blobs.remove(incidents.read_incident(service, gone).log.files[0].sha256)
    with service.database.transaction() as session:
        verdicts.save_failure(
            session, failed, "the triage took longer than 900 seconds and was ended", datetime.now(UTC)
        )
    paths = [f"/incidents/{incident}" for incident in (*many, gone, failed)]
    paths += [
        f"/incidents/{many[1]}/log",
        f"/incidents/{many[3]}/log",
        f"/incidents/{gone}/log",
        "/incidents",
        "/groups",
    ]
    paths += [
        "/unexplained",
        "/hosts",
        f"/hosts/{HOST}",
        "/incidents?cursor=nonsense",
        "/incidents/999",
        "/nothing/here",
    ]
    with serving(service, posting=False) as url:
        yield url, paths
    close_service(service)


def problems_of(page: Page, path: str) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = [f"{path} {one['id']}: {one['nodes'][0]['html'][:200]}" for one in Axe().run(page).response["violations"]]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append(f"{path} is wider than the window")
    shift = page.evaluate("window.shift")
    # A busy machine can paint a text before its last blank is parsed, which counts as a thousandth.
    return [*found, *([f"{path} moved by {shift}"] if shift > 0.01 else [])]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme", "lang"), views((1440, "light"), (390, "dark")))
def test_pages_out_of_the_ordinary_are_whole_and_still(
    browser: Browser, odd: tuple[str, list[str]], lang: str, width: int, scheme: str
) -> None:
    url, paths = odd
    found: list[str] = []
    size = {"width": width, "height": 844}
    with browser.new_context(viewport=size, color_scheme=scheme, locale=LOCALES[lang]) as context:  # type: ignore[arg-type]
        context.add_init_script(SHIFT)
        page = context.new_page()
        page.on("pageerror", lambda error: found.append(str(error)))
        for path in paths:
            answer = page.goto(url + path)
            assert answer is not None
            assert answer.status in (200, 400, 404), path
            assert page.title() != "owned"
            found += problems_of(page, path)
    assert not found


@pytest.mark.slow
def test_the_rank_that_failed_first_is_on_top(page: Page, odd: tuple[str, list[str]]) -> None:
    page.goto(odd[0] + odd[1][1])
    lanes = page.locator("#timeline .lane:not(.tl-curves) .who").all_inner_texts()
    assert lanes[0].startswith("rank 666")
    # Numbers of four digits stand beside the line's text and not over it.
    number, line = page.locator(".log .who").last, page.locator(".log .who + code").last
    assert number.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert number.bounding_box()["x"] < line.bounding_box()["x"]  # type: ignore[index]


@pytest.mark.slow
def test_on_paper_an_incident_is_light_and_holds_every_cause(browser: Browser, odd: tuple[str, list[str]]) -> None:
    with browser.new_context(color_scheme="dark") as context:
        page = context.new_page()
        page.goto(odd[0] + odd[1][0])
        assert not page.locator(".part .causes li").last.is_visible()
        page.emulate_media(media="print")
        assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator(".part .causes li").last.is_visible()
        assert not page.locator(".top").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "lang"), views((1440,), (390,)))
def test_a_login_leads_on_and_forbids_what_the_token_does_not_allow(
    browser: Browser, tmp_path: Path, lang: str, width: int
) -> None:
    service = opened(tmp_path, auth="tokens")
    secrets = [
        tokens.create(service.database, "ann", [scope], None, "a test")[0] for scope in (Scope.READ, Scope.ADMIN)
    ]
    found: list[str] = []
    with serving(service, posting=False) as url:
        for secret in secrets:
            with browser.new_context(viewport={"width": width, "height": 844}, locale=LOCALES[lang]) as context:
                context.add_init_script(SHIFT)
                page = context.new_page()
                page.goto(f"{url}/settings")
                found += problems_of(page, "/login")
                page.locator("#token").fill("wrong")
                page.keyboard.press("Enter")
                page.get_by_role("alert").wait_for()
                found += problems_of(page, "/login, refused")
                page.locator("#token").fill(secret)
                page.keyboard.press("Enter")
                page.wait_for_url(f"{url}/settings")
                found += problems_of(page, "/settings")
                allowed = secret == secrets[1]
                there_are(page.locator("#tokens"), int(allowed))
                there_are(page.locator(".status-code"), int(not allowed))
    close_service(service)
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_inconclusive_log_is_neither_green_nor_red(browser: Browser, tmp_path: Path, lang: str) -> None:
    service = opened(tmp_path)
    text = "".join(f"step {step} loss 0.5\n" for step in range(9)) + "Terminating process\n"
    with serving(service, posting=False) as url:
        page = browser.new_page(locale=LOCALES[lang])
        page.goto(f"{url}/incidents/{given(service, text)}")
        shown = page.locator(".badge.inconclusive").first
        greens = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--green')")
        colour = shown.evaluate("one => getComputedStyle(one).color")
        tried = "c => { const p = document.createElement('p'); p.style.color = c; document.body.append(p); return getComputedStyle(p).color }"
        reds = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--red')")
        assert colour not in (page.evaluate(tried, greens), page.evaluate(tried, reds))
        page.locator(".notice.inconclusive").wait_for()
        there_are(page.locator(".do li"), 3)
        page.locator("#unknown").wait_for()
        page.close()
    close_service(service)
