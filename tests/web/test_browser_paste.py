"""Handing a log in, in a real browser: by paste, files, folder, drop and sample; the verdict in the same view."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import has_focus, there_are
from tests.web.logs import OOM
from tests.web.test_browser import hand_in, objections
from torchtriage.web.pages.home import SAMPLES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.conftest import LiveServer

# A folder can't be dragged from outside by a test, so the page is given what such a drop holds.
DROP_FOLDER = """([name, text]) => {
  const file = { isFile: true, isDirectory: false, name, file: (done) => done(new File([text], name)) };
  const weights = { isFile: true, isDirectory: false, name: "model.pt", file: (done) => done(new File(["x"], "model.pt")) };
  let asked = 0;
  const folder = { isFile: false, isDirectory: true, name: "run7",
    createReader: () => ({ readEntries: (done) => done(asked++ ? [] : [file, weights]) }) };
  const transfer = { types: ["Files"], items: [{ webkitGetAsEntry: () => folder }], files: [] };
  const event = new Event("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: transfer });
  document.body.dispatchEvent(event);
}"""


def arrived(page: Page) -> None:
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    page.locator("h1").wait_for()


def test_the_verdict_appears_in_the_same_view_with_a_link_to_share(page: Page, shared_server: LiveServer) -> None:
    page.goto(shared_server.url)
    page.evaluate("window.here = true")
    page.locator("#pasted").fill(OOM)
    page.get_by_role("button", name="Triage", exact=True).click()
    arrived(page)
    assert page.evaluate("window.here"), "the page was loaded anew"
    assert "memory" in page.locator("h1").inner_text()
    has_focus(page, "H1")
    page.locator(".actions").get_by_role("button", name="Copy link").wait_for()
    page.get_by_text("Triage another log").click()
    page.locator("#pasted").fill(OOM.replace("rank3", "rank1"))
    page.get_by_role("button", name="Triage", exact=True).click()
    page.locator(".strip").get_by_text("rank 1").wait_for()
    page.go_back()
    page.locator(".strip").get_by_text("rank 3").wait_for()


@pytest.mark.slow
def test_back_from_a_reloaded_verdict_leads_to_the_form(page: Page, shared_server: LiveServer) -> None:
    page.goto(shared_server.url)
    page.locator("#pasted").fill(OOM)
    page.get_by_role("button", name="Triage", exact=True).click()
    arrived(page)
    page.reload()
    page.locator(".answer .evidence a.n").first.click()  # a place within the page is no other page
    page.wait_for_url(re.compile("#L"))
    page.go_back()
    page.go_back()
    page.locator("#pasted").wait_for()
    there_are(page.locator(".strip"), 0)


@pytest.mark.slow
def test_a_folder_is_one_run_and_what_is_no_log_is_left_out(
    page: Page, shared_server: LiveServer, tmp_path: Path
) -> None:
    folder = tmp_path / "chosen" / "attempt_0"
    for rank in ("0", "1"):
        (folder / rank).mkdir(parents=True)
        (folder / rank / "stderr.log").write_text(OOM if rank == "1" else "step 1\n")
    (folder / "weights.pt").write_bytes(b"PK\x03\x04")
    page.goto(shared_server.url)
    page.locator("#folder").set_input_files(folder.parent)
    page.get_by_text("1 skipped, not logs").wait_for()
    page.get_by_role("button", name="Triage", exact=True).click()
    arrived(page)
    page.get_by_role("link", name="Open the whole log").first.click()
    there_are(page.locator("#file option"), 2)
    names = page.locator("#file option").all_inner_texts()
    assert all(name.endswith("/stderr.log") for name in names)


@pytest.mark.slow
def test_a_dropped_folder_is_one_run(page: Page, shared_server: LiveServer) -> None:
    page.goto(shared_server.url)
    page.evaluate(DROP_FOLDER, ["rank_3.log", OOM])
    arrived(page)
    assert "memory" in page.locator("h1").inner_text()


@pytest.mark.slow
def test_an_upload_shows_how_far_it_is_and_can_be_stopped(
    page: Page, shared_server: LiveServer, tmp_path: Path
) -> None:
    page.goto(shared_server.url)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 400_000}
    session.send("Network.emulateNetworkConditions", slow)
    big = tmp_path / "big.log"
    big.write_text("step 1 loss 0.5\n" * 400_000)
    page.locator("#log").set_input_files(big)
    page.get_by_role("button", name="Triage", exact=True).click()
    page.get_by_text(re.compile(r"Uploading \d+ % · .* of 6\.4 MB · \d+ s left")).wait_for()
    page.get_by_role("button", name="Cancel").click()
    assert page.get_by_role("alert").inner_text() == "Upload cancelled; nothing was stored."
    assert page.get_by_role("button", name="Triage", exact=True).is_enabled()


@pytest.mark.slow
@pytest.mark.parametrize("script", [True, False])
def test_samples_fill_the_form(browser: Browser, shared_server: LiveServer, script: bool) -> None:
    with browser.new_context(java_script_enabled=script) as context:
        page = context.new_page()
        page.goto(shared_server.url)
        there_are(page.locator(".samples a"), len(SAMPLES))
        page.get_by_role("link", name="A broken GPU").click()
        page.wait_for_function("document.querySelector('#pasted')?.value.includes('ECC')")
        page.get_by_role("button", name="Triage", exact=True).click()
        page.wait_for_url(re.compile(r"/incidents/\d+$"))
        page.locator(".strip").get_by_text("Yes, on other hosts").wait_for()
        page.locator(".strip code").get_by_text("--exclude=gpu-013").wait_for()


@pytest.mark.slow
def test_feedback_can_be_given_without_script(browser: Browser, shared_server: LiveServer) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        hand_in(page, shared_server)
        page.get_by_text("No, or add a comment").click()
        page.get_by_label("The right entry").fill("nccl.timeout")
        page.get_by_label("What helped").fill("<b>halved</b> the batch")
        page.get_by_role("button", name="Verdict is wrong").click()
        page.get_by_text("Thank you, saved.").wait_for()
        said = page.locator(".said").inner_text()
        for expected in ("Wrong", "nccl.timeout", "<b>halved</b> the batch"):
            assert expected in said
        page.get_by_role("button", name="Yes", exact=True).click()
        page.locator(".said").get_by_text("Right").first.wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_axe_finds_nothing_once_the_verdict_is_shown(browser: Browser, shared_server: LiveServer, lang: str) -> None:
    with browser.new_context(locale={"en": "en-GB", "zh": "zh-CN"}[lang]) as context:
        page = context.new_page()
        page.goto(f"{shared_server.url}/?sample=stuck")
        assert not objections(page)
        page.locator("form#paste button.main").click()
        arrived(page)
        assert not objections(page)


PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
}"""


@pytest.mark.slow
def test_text_pasted_anywhere_goes_into_the_box_and_ctrl_enter_submits(page: Page, shared_server: LiveServer) -> None:
    page.goto(shared_server.url)
    has_focus(page, "TEXTAREA")
    page.locator("h1").click()
    page.evaluate(PASTE, OOM)
    assert page.locator("#pasted").input_value() == OOM
    has_focus(page, "TEXTAREA")
    page.keyboard.press("Control+Enter")
    arrived(page)
    assert "memory" in page.locator("h1").inner_text()
