"""The knowledge base in a real browser: narrowed and searched, an entry with its history, a text tried against it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser import there_are, views
from tests.web.logs import OOM
from tests.web.test_browser import hand_in, objections_unfolded

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.conftest import LiveServer

ENTRY = "dataloader.shm-bus-error"
NEAR = "RuntimeError: DataLoader worker (pid 7) is now killed by signal: Killed. <b>\n"
HIT = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. \n"
LOCALES = {"en": "en-GB", "zh": "zh-CN"}


@pytest.mark.slow
def test_owner_and_kind_narrow_what_is_found_and_stay_in_the_address(page: Page, shared_server: LiveServer) -> None:
    page.goto(f"{shared_server.url}/knowledge")
    everything = page.locator(".entries li").count()
    page.get_by_label("Owner").select_option("hardware")
    page.wait_for_url(re.compile(r"\?owner=hardware$"))
    page.wait_for_function(f"document.querySelectorAll('.entries li').length < {everything}")
    page.get_by_label("Symptom").press_sequentially("nvlink eror")
    page.locator('.found a[href="/knowledge/hw.nvlink"]').wait_for()
    page.wait_for_url(re.compile(r"q=nvlink\+eror&owner=hardware"))
    page.reload()
    there_are(page.locator('.found a[href="/knowledge/hw.nvlink"]'), 1)
    page.get_by_label("Kind").select_option("advice")
    page.get_by_text("Nothing found").wait_for()


def test_an_area_is_a_step_away(page: Page, shared_server: LiveServer) -> None:
    page.goto(f"{shared_server.url}/knowledge")
    page.get_by_role("navigation", name="Areas").get_by_role("link", name=re.compile("DataLoader")).click()
    page.wait_for_url(re.compile("area=dataloader"))
    there_are(page.locator(".area"), 1)
    page.get_by_role("link", name="All areas").click()
    page.wait_for_url(re.compile("/knowledge$"))


@pytest.mark.slow
def test_an_entry_shows_its_history(page: Page, live_server: LiveServer) -> None:
    page.goto(f"{live_server.url}/knowledge/cuda.oom")
    assert "Never" in page.locator(".strip").inner_text()
    assert "No feedback yet" in page.locator(".strip").inner_text()
    incident = hand_in(page, live_server)
    page.get_by_text("No, or add a comment").click()
    page.get_by_label("What helped").fill("half the batch")
    page.get_by_role("button", name="Verdict is right").click()
    page.get_by_text("Thank you").wait_for()
    page.goto(f"{live_server.url}/knowledge/cuda.oom")
    strip = page.locator(".strip").inner_text()
    assert "Incidents: 1" in strip
    assert "1 of 1" in strip
    assert "Too little feedback" in strip
    assert "half the batch" in page.locator("section", has=page.locator("#notes")).inner_text()
    page.locator("section", has=page.locator("#groups")).get_by_role("link").click()
    page.wait_for_url(re.compile("/groups/1$"))
    page.go_back()
    page.locator(".rows .what a").click()
    page.wait_for_url(incident)


@pytest.mark.slow
def test_entries_lead_to_what_they_explain_and_back(page: Page, shared_server: LiveServer) -> None:
    page.goto(f"{shared_server.url}/knowledge/{ENTRY}")
    page.locator("section", has=page.locator("#explains")).locator('a[href="/knowledge/process.sigbus"]').click()
    page.wait_for_url(re.compile("process.sigbus$"))
    explained_by = page.locator("section", has=page.locator("#explained_by"))
    explained_by.locator(f'a[href="/knowledge/{ENTRY}"]').first.wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("script", [True, False])
def test_a_text_is_tried_against_an_entry(browser: Browser, shared_server: LiveServer, script: bool) -> None:
    with browser.new_context(java_script_enabled=script) as context:
        page = context.new_page()
        page.goto(f"{shared_server.url}/knowledge/{ENTRY}")
        page.get_by_label("Text of a log").fill("first\n" + NEAR)
        page.get_by_role("button", name="Test", exact=True).click()
        page.get_by_text("no sign matched").wait_for()
        assert (
            page.get_by_role("status").get_by_role("link").get_attribute("href")
            == "/knowledge/dataloader.worker-killed"
        )
        nearest = page.locator(".why-signs li").first
        assert nearest.locator("ins").inner_text() == "now"
        assert nearest.locator("del").inner_text() == "Bus error"
        assert "line 2" in nearest.inner_text()
        assert "◐" in nearest.inner_text()
        page.get_by_label("Text of a log").fill(HIT)
        page.get_by_role("button", name="Test", exact=True).click()
        page.get_by_text("it is the root cause").wait_for()
        assert "✓" in page.locator(".why-signs li.matched").first.inner_text()


@pytest.mark.slow
def test_symptoms_are_found_without_script(browser: Browser, shared_server: LiveServer) -> None:
    with browser.new_context(java_script_enabled=False, locale="zh-CN") as context:
        page = context.new_page()
        page.goto(f"{shared_server.url}/knowledge")
        page.get_by_label("现象或报错信息").fill("显存不足")
        page.get_by_label("由谁处理").select_option("user")
        page.get_by_role("button", name="搜索", exact=True).click()
        page.wait_for_url(re.compile("owner=user"))
        page.locator('.found a[href="/knowledge/cuda.oom"]').click()
        page.get_by_role("heading", name="识别特征").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme", "lang"), views((1440, "dark"), (390, "light")))
def test_axe_finds_nothing(browser: Browser, shared_server: LiveServer, lang: str, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    with browser.new_context(viewport=size, color_scheme=scheme, locale=LOCALES[lang]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        found: list[str] = []

        def look() -> None:
            found.extend(objections_unfolded(page))

        hand_in_somehow(page, shared_server)
        for address in ("/knowledge?area=nccl&owner=user", "/knowledge?q=zzqq", "/knowledge/cuda.oom",
                        "/knowledge/concept.data-parallel-flow", f"/knowledge/{ENTRY}"):  # fmt: skip
            page.goto(shared_server.url + address)
            look()
        page.locator("#text").fill(NEAR)
        page.locator(".try button").click()
        page.locator(".why-signs").wait_for()
        look()
        assert not found


def hand_in_somehow(page: Page, server: LiveServer) -> None:
    """Pastes a log, whatever the page's language."""
    page.goto(server.url)
    page.locator("#pasted").fill(OOM)
    page.locator("form#paste button[type=submit]").click()
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
