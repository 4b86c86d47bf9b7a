"""A new cause is taught in the page, in a real browser."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.browser import TIMEOUT, views
from tests.drafts import SAYS, SIGN, SOUND, UNKNOWN
from tests.services.test_case_drafts import CASE
from tests.web.test_browser import objections_unfolded
from torchtriage.domain.json_form import fields_form
from torchtriage.web.pages.draft_form import values_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.conftest import LiveServer

pytestmark = pytest.mark.slow  # off the main path
LOCALES = {"en": "en-GB", "zh": "zh-CN"}


def pasted(page: Page, server: LiveServer, log: str = UNKNOWN) -> str:
    """Returns the address of the incident, whatever the page's language."""
    page.goto(server.url)
    page.locator("#pasted").fill(log)
    page.locator("form#paste button[type=submit]").click()
    page.wait_for_url(re.compile(r"/incidents/\d+$"), timeout=TIMEOUT)
    page.locator('#feedback a[href^="/drafts/new"]').wait_for(timeout=TIMEOUT)
    return page.url


def drafted(page: Page, server: LiveServer) -> None:
    """Types a whole draft from an incident that none explains."""
    pasted(page, server)
    page.locator('#feedback a[href^="/drafts/new"]').click()
    page.wait_for_url(re.compile("/drafts/new"))
    page.locator(".more-steps > summary").click()
    for name, text in values_of(SOUND).items():
        if name not in ("kind", "owner", "search_in", "retry", "example"):
            page.locator(f"#d-{name}").fill(text)


def test_problems_are_shown_while_one_types_and_a_click_inserts_a_slot(page: Page, live_server: LiveServer) -> None:
    pasted(page, live_server)
    page.locator("#feedback").get_by_role("link", name="Draft an entry").click()
    wrong = page.locator("#w-title_en")
    page.locator("#would .count").get_by_text("Not checked yet.").wait_for(timeout=TIMEOUT)
    page.locator(".last .main[value=check]").wait_for()
    assert page.locator("[aria-invalid=true], .wrong li").count() == 0  # before anybody has changed anything
    page.get_by_label("Title · English").fill("A")
    page.get_by_label("Title · English").fill("")
    wrong.get_by_text("this is missing").wait_for(timeout=TIMEOUT)
    page.get_by_label("Title · English").fill("A shard is short")
    wrong.get_by_text("this is missing").wait_for(state="detached", timeout=TIMEOUT)
    page.get_by_label("Sign").fill("Shard(?=x)")
    page.locator("#w-sign").get_by_text("RE2 rejects").wait_for(timeout=TIMEOUT)
    assert page.get_by_label("Sign").get_attribute("aria-invalid") == "true"
    page.get_by_label("Sign").fill(SIGN)
    page.get_by_label("Step 1 · English").fill("Rewrite it.")
    page.get_by_label("Sentence · English").fill("It has only ")
    page.get_by_role("button", name="{records}").click()
    assert page.get_by_label("Sentence · English").input_value() == "It has only {records}"
    page.locator("#would").get_by_text("It has only 3005").wait_for(timeout=TIMEOUT)


def test_unsaved_text_is_restored_until_it_is_saved(page: Page, live_server: LiveServer) -> None:
    drafted(page, live_server)
    page.reload()
    page.get_by_text("did not save").wait_for()
    assert page.locator("#d-says_en").input_value() == SOUND.says_en
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile(r"/drafts/\d+\?saved=1$"), timeout=TIMEOUT)
    page.reload()
    assert page.locator("#restore").is_hidden()
    page.locator("#would").get_by_text(SAYS).wait_for(timeout=TIMEOUT)
    page.locator("#d-says_en").fill("something else")
    page.reload()
    page.get_by_role("button", name="Discard it").click()
    assert page.locator("#d-says_en").input_value() == SOUND.says_en


def test_from_unexplained_to_explained_and_back(page: Page, live_server: LiveServer) -> None:
    drafted(page, live_server)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile(r"/drafts/\d+\?saved=1$"), timeout=TIMEOUT)
    page.get_by_role("link", name="Back-test").click()
    page.get_by_role("button", name="Start").click()
    page.get_by_text("Incidents checked: 1").wait_for(timeout=TIMEOUT)
    page.locator(".results a[href='/incidents/1']").wait_for()
    page.locator(".crumbs a").last.click()
    page.locator("#d-near_miss").fill("typed after it was saved")
    assert page.get_by_role("button", name="Approve and use it").is_disabled()
    page.locator("#d-near_miss").fill(SOUND.near_miss)
    page.reload()
    page.get_by_role("button", name="Approve and use it").click(timeout=TIMEOUT)
    page.get_by_text("Approved by anyone").wait_for(timeout=TIMEOUT)
    page.get_by_role("button", name="Preview the re-run (1)").click()
    page.wait_for_url(re.compile("/retriage$"))
    page.get_by_role("button", name="Apply the changes (1)").click(timeout=TIMEOUT)
    page.get_by_text("1 verdicts changed").wait_for(timeout=TIMEOUT)
    page.goto(f"{live_server.url}/incidents/1")
    page.get_by_role("heading", name=SOUND.title_en).wait_for()
    page.get_by_text(SAYS).first.wait_for()
    page.goto(f"{live_server.url}/knowledge/{SOUND.entry}")
    page.get_by_role("heading", name=SOUND.title_en).wait_for()
    page.goto(f"{live_server.url}/drafts/1")
    page.get_by_role("button", name="Undo the last change").click()
    page.get_by_text("It is not in use yet").wait_for(timeout=TIMEOUT)
    page.goto(f"{live_server.url}/knowledge/{SOUND.entry}")
    page.get_by_text("no such entry").wait_for()


def test_a_case_that_takes_anothers_example_is_not_offered_for_approval(page: Page, live_server: LiveServer) -> None:
    broad = dataclasses.replace(CASE, sign=r"FileExistsError: \[Errno 17\]", near_miss="FileExistsError: [Errno 13]")
    page.goto(f"{live_server.url}/drafts")
    made = page.request.post(f"{live_server.url}/api/v1/drafts", data=json.loads(json.dumps(fields_form(broad))))
    assert made.status == 201
    page.goto(f"{live_server.url}/drafts/{made.json()['id']}")
    page.get_by_text("It cannot be tracked or approved yet").wait_for(timeout=TIMEOUT)
    assert "another case would lose its example" in page.locator("#whole").inner_text()
    for name in ("Track only", "Approve and use it"):
        assert page.get_by_role("button", name=name).is_disabled()


def test_without_script_the_button_checks(browser: Browser, live_server: LiveServer) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(live_server.url)
        page.locator("#pasted").fill(UNKNOWN)
        page.locator("form#paste button[type=submit]").click()
        page.locator("#feedback").get_by_role("link", name="Draft an entry").click(timeout=TIMEOUT)
        page.get_by_label("Title · English").fill("A shard is short")
        page.get_by_role("button", name="Check").click()
        page.locator("#w-says_en").get_by_text("this is missing").wait_for()
        assert page.get_by_label("Title · English").input_value() == "A shard is short"


@pytest.mark.parametrize(("width", "scheme", "lang"), views((1440, "dark"), (390, "light")))
def test_axe_finds_nothing(browser: Browser, live_server: LiveServer, lang: str, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    with browser.new_context(viewport=size, color_scheme=scheme, locale=LOCALES[lang]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        found: list[str] = []

        def look() -> None:
            found.extend(objections_unfolded(page))

        page.goto(f"{live_server.url}/drafts")
        look()
        drafted(page, live_server)
        page.locator("#d-title_zh").fill("")
        page.locator("#w-title_zh li").wait_for(timeout=TIMEOUT)
        look()
        page.locator("button[name=action][value=save]").click()
        page.wait_for_url(re.compile(r"/drafts/\d+\?saved=1$"), timeout=TIMEOUT)
        look()
        page.locator('a[href$="/back-test"]').click()
        look()
        page.locator("button[name=action][value=start]").click()
        page.locator(".results a[href^='/incidents/']").wait_for(timeout=TIMEOUT)
        look()
        page.goto(f"{live_server.url}/drafts")
        look()
        assert not found
