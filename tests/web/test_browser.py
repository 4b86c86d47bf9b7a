"""The pages in a real browser, with script: hand in, look around, both languages, nothing that axe-core objects to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import has_focus, there_are, views
from tests.web.logs import OOM

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.conftest import LiveServer

UNKNOWN = (
    "Traceback (most recent call last):\n"
    '  File "/work/train.py", line 7, in <module>\n'
    "    widget.turn()\n"
    "widgets.WidgetJammed: <img src=x onerror=\"document.title='owned'\">\n"
)
# Files can't be dragged from outside by a test, so the page is given the event that dragging ends with.
DROP = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  const on = (kind) => document.body.dispatchEvent(
    new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: files }));
  on("dragenter"); on("dragover"); on("drop");
}"""
COPIED = "() => navigator.clipboard.readText()"


def hand_in(page: Page, server: LiveServer, text: str = OOM) -> str:
    """Pastes a log -> the address of its incident."""
    page.goto(server.url)
    page.get_by_role("textbox", name="log").fill(text)
    page.locator("form#paste button[type=submit]").click()
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    page.locator("[data-wait]").wait_for(state="detached", timeout=60_000)  # a busy machine triages later
    return page.url


def objections(page: Page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{page.url} {one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def objections_unfolded(page: Page) -> list[str]:
    """Returns what axe finds with everything unfolded, and whether the page is wider than its window."""
    for details in page.locator("main details").all():
        details.evaluate("one => { one.open = true; }")
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [*objections(page), *([f"{page.url} is wider than the window"] if wide else [])]


def test_a_pasted_log_gets_its_verdict(page: Page, live_server: LiveServer) -> None:
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
    hand_in(page, live_server)
    assert "memory" in page.locator("h1").inner_text()
    strip = page.locator(".strip").inner_text()
    assert "rank 3" in strip
    evidence = page.locator("ol.evidence").first
    assert "CUDA out of memory. Tried to allocate" in evidence.inner_text()
    evidence.get_by_role("link", name="line 4").click()
    page.wait_for_url(re.compile("#L4$"))
    page.locator("#L4").wait_for()
    assert not failures


@pytest.mark.slow
def test_an_empty_box_is_reported_without_a_request(page: Page, live_server: LiveServer) -> None:
    page.goto(live_server.url)
    page.locator("form#paste button[type=submit]").click()
    assert page.get_by_role("alert").inner_text() == "Paste a log or choose a file first."


@pytest.mark.slow
def test_a_dropped_file_gets_its_verdict(page: Page, live_server: LiveServer) -> None:
    page.goto(live_server.url)
    page.evaluate(DROP, ["rank_3.log", OOM])
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    assert "memory" in page.locator("h1").inner_text()


@pytest.mark.slow
def test_chosen_files_are_sent_and_their_problems_reported(page: Page, live_server: LiveServer, tmp_path: Path) -> None:
    broken = tmp_path / "broken.log.gz"
    broken.write_bytes(b"\x1f\x8b\x08broken")
    page.goto(live_server.url)
    page.locator("#log").set_input_files(broken)
    page.locator("form#paste button[type=submit]").click()
    page.get_by_role("alert").wait_for()
    assert "broken archive" in page.get_by_role("alert").inner_text()
    assert page.locator("form#paste button[type=submit]").is_enabled()


@pytest.mark.slow
def test_it_all_works_without_script(browser: Browser, live_server: LiveServer) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        hand_in(page, live_server)
        assert "rank 3" in page.locator(".strip").inner_text()
        there_are(page.locator("button.copy:visible"), 0)
        page.get_by_role("link", name="Group 1").click()
        page.get_by_role("button", name="Ignore").click()
        page.locator(".strip .status.ignored").wait_for()


@pytest.mark.slow
def test_a_command_is_copied(browser: Browser, live_server: LiveServer) -> None:
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        hand_in(page, live_server)
        command = page.locator(".fixes .command").first
        command.get_by_role("button").click()
        command.get_by_text("Copied").wait_for()
        assert page.evaluate(COPIED) == command.locator("code").inner_text()


def test_the_list_is_filtered_by_a_form_and_its_chips(page: Page, live_server: LiveServer) -> None:
    hand_in(page, live_server)
    hand_in(page, live_server, UNKNOWN)
    assert "owned" not in page.title()
    page.goto(f"{live_server.url}/incidents")
    there_are(page.locator(".row"), 2)
    page.get_by_label("Outcome").select_option("unexplained")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("outcome=unexplained"))
    there_are(page.locator(".row"), 1)
    page.get_by_role("link", name=re.compile("remove this filter")).click()
    page.wait_for_url(re.compile(r"/incidents$"))
    there_are(page.locator(".row"), 2)
    page.get_by_role("searchbox", name="Search, or #123").fill("WidgetJammed")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q=WidgetJammed"))
    there_are(page.locator(".row"), 1)


def test_a_group_is_resolved(page: Page, live_server: LiveServer) -> None:
    hand_in(page, live_server)
    page.get_by_role("link", name="Groups").click()
    page.locator("ol.groups a.title").click()
    page.get_by_role("button", name="Resolve").click()
    page.locator(".strip .status.resolved").wait_for()
    assert page.get_by_role("button", name="Resolve").is_disabled()
    there_are(page.locator(".row"), 1)


@pytest.mark.slow
def test_an_entry_is_found_and_leads_to_its_incidents(page: Page, live_server: LiveServer) -> None:
    incident = hand_in(page, live_server)
    page.goto(f"{live_server.url}/knowledge")
    page.get_by_label("Symptom or error message").fill("cuda.oom")
    page.keyboard.press("Enter")
    page.locator('.found a[href="/knowledge/cuda.oom"]').click()
    page.wait_for_url(re.compile("/knowledge/cuda.oom"))
    page.locator(".rows .what a").click()
    page.wait_for_url(incident)


@pytest.mark.slow
def test_answers_follow_a_symptom_while_it_is_typed(page: Page, live_server: LiveServer) -> None:
    page.goto(f"{live_server.url}/knowledge")
    question = page.get_by_label("Symptom or error message")
    question.press_sequentially("训练卡住 no eror")
    page.locator('.found a[href="/knowledge/perf.hang"]').wait_for()
    page.wait_for_url(re.compile("/knowledge\\?q="))
    assert question.input_value() == "训练卡住 no eror"
    question.fill("")
    page.locator(".entries").first.wait_for()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme", "lang"), views((1440, "light"), (390, "dark")))
def test_axe_finds_nothing_and_nothing_overflows(
    browser: Browser, live_server: LiveServer, lang: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900}
    locale = {"en": "en-GB", "zh": "zh-CN"}[lang]
    with browser.new_context(viewport=size, color_scheme=scheme, locale=locale) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(live_server.url)
        page.locator("#pasted").fill(OOM)
        page.locator("form#paste button[type=submit]").click()
        page.wait_for_url(re.compile(r"/incidents/\d+$"))
        assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-Hans"}[lang]
        incident = page.url.removeprefix(live_server.url)
        found: list[str] = []
        for address in ("/", incident, "/incidents?user=x", "/incidents", "/groups", "/groups/1", "/knowledge",
                        "/knowledge?q=gpu0",
                        "/knowledge/cuda.oom", "/nothing"):  # fmt: skip
            page.goto(live_server.url + address)
            found += objections(page)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{address} is wider than the window")
        assert not found


@pytest.mark.slow
def test_the_keyboard_alone_leads_from_a_paste_to_its_line_and_back(page: Page, live_server: LiveServer) -> None:
    page.goto(f"{live_server.url}/incidents")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "skip"
    page.goto(live_server.url)
    has_focus(page, "TEXTAREA")
    page.keyboard.insert_text(OOM)
    while page.evaluate("() => document.activeElement.type") != "submit":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    verdict = page.url
    page.locator(".strip").wait_for()
    has_focus(page, "H1")  # a screen reader begins with the verdict
    page.keyboard.press("j")
    assert page.evaluate("() => document.activeElement.getAttribute('href')") == "#L4"
    page.keyboard.press("l")
    page.wait_for_url(re.compile("/log"))
    page.locator("#L4.focus").wait_for()
    page.keyboard.press("j")
    page.go_back()
    page.wait_for_url(verdict)
    page.locator("h1").wait_for()


@pytest.mark.slow
def test_a_copy_works_where_the_browser_keeps_its_clipboard_back(browser: Browser, live_server: LiveServer) -> None:
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        hand_in(page, live_server)
        # As on a plain http address that is not this machine's.
        page.evaluate("""() => {
            window.kept = navigator.clipboard;
            Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined });
        }""")
        page.locator(".fixes .command button:visible").first.click()
        page.get_by_text("Copied").first.wait_for()
        pasted = page.evaluate("() => window.kept.readText()")
        assert pasted == page.locator(".fixes .command code").first.inner_text()
