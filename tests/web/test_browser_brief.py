"""The brief and a language model's claims on an incident's page, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.conftest import serving
from tests.language_model import claims, model
from tests.logs import PEER_CLOSED, WAITING, steps, text, traceback
from tests.web.test_browser import COPIED, objections

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LOG = text(
    steps(range(4)),
    traceback("DriftError: layer 7", prefix="[rank1]: "),
    traceback(PEER_CLOSED, WAITING, "[rank0]: "),
)


@pytest.mark.slow
def test_the_brief_is_copied_and_claims_stand_beside_the_verdict(browser: Browser, tmp_path: Path) -> None:
    said = claims(
        {"says": "Layer 7 <b>drifted</b>.", "line": 84, "quote": "DriftError: layer 7"},
        {"says": "The disk is full.", "line": 3, "quote": "No space left on device"},
    )
    with (
        model() as fake,
        serving(tmp_path, llm_url=fake.url, llm_model="m-1") as server,
        browser.new_context(permissions=["clipboard-read", "clipboard-write"], locale="en-GB") as context,
    ):
        fake.says = lambda _: said
        page = context.new_page()
        incident = httpx2.post(f"{server.url}/api/v1/incidents?wait=60", content=LOG, timeout=120).json()["id"]
        page.goto(f"{server.url}/incidents/{incident}")
        page.get_by_role("button", name="Copy brief").click()
        page.get_by_text("Copied").wait_for()
        copied = page.evaluate(COPIED)
        assert copied.startswith("# Brief: ")
        assert "> 84 [rank1]: DriftError: layer 7" in copied
        assert not fake.asked
        page.get_by_role("button", name="Ask the language model").click()
        page.locator(".claims li").first.wait_for(timeout=30_000)
        assert len(fake.asked) == 1
        struck = page.locator(".claims s")
        assert struck.all_inner_texts() == ["The disk is full."]
        assert "line-through" in struck.evaluate("one => getComputedStyle(one).textDecorationLine")
        assert page.locator(".claims li").first.inner_text().startswith("Layer 7 <b>drifted</b>. 84")
        assert not objections(page)
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        page.locator(".claims a.n").first.click()
        page.wait_for_url(f"{server.url}/incidents/{incident}/log?line=84#L84")
        assert "DriftError" in page.locator("li:target").inner_text()
