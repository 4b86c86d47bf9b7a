"""An incident's page in a real browser: the first screen, ranks over time, why not, feedback, Markdown, deleting."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.browser import there_are, views
from tests.logs import PEER_CLOSED, WAITING, steps, text, traceback
from tests.web.test_browser import COPIED, objections
from torchtriage.web.pages.home import SAMPLES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.conftest import LiveServer


def sample(page: Page, server: LiveServer, name: str) -> str:
    """Hands one of our samples in -> the address of its incident."""
    page.goto(f"{server.url}/?sample={name}")
    page.locator("form#paste button.main").click()
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    page.locator(".strip").wait_for(timeout=60_000)
    return page.url


def many_ranks(count: int) -> str:
    """Returns a run in which rank 17 fails, and all others wait for it."""
    failed = traceback("ValueError: a NaN in the loss", prefix="[rank17]: ")
    waiting = [
        line for rank in range(count) if rank != 17 for line in traceback(PEER_CLOSED, WAITING, f"[rank{rank}]: ")
    ]
    return text(steps(range(4)), failed, waiting).decode()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height", "lang"), views((1440, 900), (390, 844)))
def test_the_first_screen_answers_without_scrolling(
    browser: Browser, shared_server: LiveServer, lang: str, width: int, height: int
) -> None:
    size = {"width": width, "height": height}
    with browser.new_context(viewport=size, locale={"en": "en-GB", "zh": "zh-CN"}[lang]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        below: list[str] = []
        for name in SAMPLES:
            page.goto(sample(page, shared_server, name))
            for part in ("h1", ".strip > :nth-child(1)", ".strip > :nth-child(2)", ".strip > :nth-child(3)",
                         ".answer .evidence li:first-child", ".do .fixes > li:first-child h3"):  # fmt: skip
                box = page.locator(part).first.bounding_box()
                if box is None or box["y"] + box["height"] > height:
                    below.append(f"{name}: {part} {box}")
        assert not below


def test_the_timeline_leads_to_lines_and_its_tables_say_the_same(page: Page, shared_server: LiveServer) -> None:
    sample(page, shared_server, "stuck")
    timeline = page.locator("#timeline")
    assert "rank 3" in timeline.locator(".lane.missing").inner_text()
    timeline.locator(".tl-host > summary .who").click()
    there_are(timeline.locator(".lane.inner.waited:visible"), 7)
    timeline.get_by_text("Ranks as a table").click()
    row = page.get_by_role("row").filter(has_text="waited for other ranks").first
    assert "10 min" in row.inner_text()
    assert "No progress for 10 min" in timeline.locator(".tl-events").inner_text()
    timeline.locator(".lane.inner.waited a").nth(1).click()
    page.wait_for_url(re.compile(r"/log\?line=\d+#L\d+"))
    assert "[rank1]:" in page.locator("li:target").inner_text()


def sent(server: LiveServer, log: str | bytes) -> str:
    """Returns the address of its incident."""
    taken = httpx2.post(f"{server.url}/api/v1/incidents?wait=60", content=log, timeout=120)
    return f"{server.url}/incidents/{taken.json()['id']}"


def timed_run() -> bytes:
    began = datetime(2026, 5, 1, 9)
    told = [f"{began + timedelta(seconds=9 * step)} | step {step} | loss {3 / (step + 1):.3f}" for step in range(60)]
    told.insert(30, f"{began + timedelta(seconds=265)} Saved checkpoint to /out/checkpoint-29")
    return text(told, f"{began + timedelta(hours=1)} | retrying", traceback("ValueError: a NaN in the loss"))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_the_curves_lead_to_their_lines(browser: Browser, shared_server: LiveServer, width: int) -> None:
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.goto(sent(shared_server, timed_run()))
        drawn = page.locator("#timeline")
        assert "usually 9 s a step" in drawn.inner_text()
        there_are(drawn.locator(".curve"), 3)
        assert not objections(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        drawn.get_by_text("Values as a table").click()
        drawn.get_by_role("row").nth(1).get_by_role("link").click()
        page.wait_for_url(re.compile(r"/log\?line=1#L1"))
        assert "step 0 " in page.locator("li:target").inner_text()


@pytest.mark.slow
def test_a_stretch_that_is_drawn_narrows_the_events_and_leads_to_its_lines(
    page: Page, shared_server: LiveServer
) -> None:
    address = sent(shared_server, timed_run())
    page.goto(address)
    timeline, events = page.locator("#timeline"), page.locator(".tl-events li:visible")
    there_are(events, 3)
    timeline.locator(".tl-axis").scroll_into_view_if_needed()
    frame = timeline.locator(".tl-curves svg").bounding_box()
    assert frame is not None
    y = frame["y"] + frame["height"] / 2
    page.mouse.move(frame["x"] + 0.005 * frame["width"], y)
    page.mouse.down()
    page.mouse.move(frame["x"] + 0.12 * frame["width"], y, steps=5)
    page.mouse.up()
    assert page.url == address  # What was drawn over does not open.
    there_are(events, 1)
    assert "Checkpoint" in events.inner_text()
    assert "1 of 3" in timeline.locator(".tl-chosen").inner_text()
    timeline.locator(".tl-chosen a").click()
    page.wait_for_url(re.compile(r"/log\?line=\d+-\d+#L\d+$"))
    assert page.locator("li.focus").count() > 2
    page.go_back()
    page.locator(".tl").focus()
    page.keyboard.press("Escape")
    there_are(events, 3)


@pytest.mark.slow
def test_keys_go_from_event_to_event_and_choose_a_stretch(page: Page, shared_server: LiveServer) -> None:
    page.goto(sent(shared_server, timed_run()))
    page.locator(".tl").focus()
    page.keyboard.press("ArrowRight")
    assert "Checkpoint" in page.locator(".tl-tip").inner_text()
    assert "Checkpoint" in page.locator(".tl-events li.here").inner_text()
    page.keyboard.press("Shift+ArrowRight")
    there_are(page.locator(".tl-events li:visible"), 2)
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/log\?line=\d+#L\d+"))
    assert page.locator("li.evidence:target").count() == 1


@pytest.mark.slow
def test_without_script_the_timeline_unfolds_and_leads_to_lines(browser: Browser, shared_server: LiveServer) -> None:
    address = sent(shared_server, many_ranks(40))
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)
        there_are(page.locator(".tl-tip"), 0)
        page.locator(".tl-events a.n").first.click()
        page.wait_for_url(re.compile(r"/log\?line=\d+#L\d+"))


@pytest.mark.slow
def test_many_ranks_are_folded_and_lines_without_times_say_so(page: Page, shared_server: LiveServer) -> None:
    page.goto(sent(shared_server, many_ranks(512)))
    there_are(page.locator("#timeline .lane:is(.first, .waited)"), 2)
    assert "0-16,18-511" in page.locator(".lane.waited").inner_text()
    page.get_by_text("in line order, not to scale").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize(("zone", "offset"), [("Asia/Shanghai", 8), ("America/Phoenix", -7)])
def test_times_are_shown_in_the_readers_zone(
    browser: Browser, shared_server: LiveServer, zone: str, offset: int
) -> None:
    began = datetime(2026, 5, 1, 9)
    told = [
        f"{began + timedelta(seconds=9 * step)}+00:00 | step {step} | loss {3 / (step + 1):.3f}" for step in range(60)
    ]
    address = sent(shared_server, text(told, traceback("ValueError: a NaN in the loss")))
    with browser.new_context(timezone_id=zone) as context:
        page = context.new_page()
        page.goto(address)
        began += timedelta(hours=offset)
        assert f"{began}" in page.locator(".tl-axis").inner_text()
        assert "Times are in your time zone." in page.locator("#timeline").inner_text()
        received = page.locator("aside time[data-ago]").first
        assert re.fullmatch(r"just now|\d+ min ago", received.inner_text())
        assert f"UTC{offset:+d}" in (received.get_attribute("title") or "")


@pytest.mark.slow
def test_keys_step_through_the_evidence_and_are_listed(page: Page, shared_server: LiveServer) -> None:
    sample(page, shared_server, "memory")
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Next evidence line").wait_for()
    page.keyboard.press("Escape")
    focused = "document.activeElement.getAttribute('aria-label')"
    page.keyboard.press("j")
    first = page.evaluate(focused)
    page.keyboard.press("j")
    assert re.fullmatch(r"line \d+", first)
    assert page.evaluate(focused) != first
    page.keyboard.press("k")
    assert page.evaluate(focused) == first
    page.keyboard.press("l")
    page.wait_for_url(re.compile("/log"))


@pytest.mark.slow
def test_it_is_copied_as_markdown(browser: Browser, shared_server: LiveServer) -> None:
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        address = sample(page, shared_server, "hardware")
        page.get_by_role("button", name="Copy as Markdown").click()
        page.get_by_text("Copied").wait_for()
        copied = page.evaluate(COPIED)
        for expected in ("### GPU memory has", "rank 2 · `gpu-013`", "--exclude=gpu-013", "uncorrectable ECC", address):
            assert expected in copied
        page.get_by_role("button", name="Copy link").click()
        page.wait_for_function(f"navigator.clipboard.readText().then((text) => text === '{address}')")


@pytest.mark.slow
def test_it_says_why_it_was_not_another_entry(page: Page, shared_server: LiveServer) -> None:
    address = sample(page, shared_server, "hardware")
    page.get_by_role("link", name=re.compile("^and .* more")).click()  # opens the fold that it leads to
    candidate = page.locator(".candidates li").filter(has_text="cuda.launch-failure")
    candidate.get_by_role("link", name=re.compile("Why not")).click()
    page.wait_for_url(re.compile("/why\\?entry="))
    page.get_by_text(re.compile("it matched, but cuda.ecc")).wait_for()
    page.locator(".why-signs .nearest").first.wait_for()
    assert not objections(page)
    page.goto(f"{address}#why")
    page.get_by_label("Check another entry").fill("no.such-entry")
    page.keyboard.press("Enter")
    page.get_by_text("no such entry").wait_for()


@pytest.mark.slow
def test_a_note_on_what_helped_is_shown_at_the_next_similar_incident(page: Page, shared_server: LiveServer) -> None:
    first = sample(page, shared_server, "memory")
    page.get_by_text("No, or add a comment").click()
    page.get_by_label("What helped").fill("gradient checkpointing")
    page.get_by_role("button", name="Verdict is right").click()
    page.get_by_text("Thank you").wait_for()
    page.goto(f"{shared_server.url}/?sample=memory")
    page.locator("#pasted").fill(page.locator("#pasted").input_value() + "one more line\n")
    page.get_by_role("button", name="Triage", exact=True).click()
    before = page.locator("section", has=page.locator("#before"))
    before.get_by_text("gradient checkpointing").first.wait_for()
    before.get_by_role("link", name=f"#{first.rsplit('/', 1)[1]}", exact=True).first.click()
    page.wait_for_url(first)


@pytest.mark.slow
def test_it_is_deleted_once_the_question_is_answered(page: Page, shared_server: LiveServer) -> None:
    address = sample(page, shared_server, "killed")
    page.get_by_text("Delete …").click()
    page.get_by_role("button", name="Delete permanently").click()
    page.wait_for_url(re.compile(r"/incidents$"))
    page.goto(address)
    page.get_by_text("Not found").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme", "lang"), views((1440, "dark"), (390, "light")))
def test_axe_finds_nothing(browser: Browser, shared_server: LiveServer, lang: str, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    locale = {"en": "en-GB", "zh": "zh-CN"}[lang]
    with browser.new_context(viewport=size, color_scheme=scheme, locale=locale) as context:  # type: ignore[arg-type]
        page = context.new_page()
        found: list[str] = []
        for name in ("stuck", "hardware"):
            page.goto(sample(page, shared_server, name))
            for details in page.locator("main details").all():
                details.evaluate("one => { one.open = true; }")
            found += objections(page)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{page.url} is wider than the window")
        page.keyboard.press("?")
        found += objections(page)
        assert not found


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_list_of_changes_works_without_script_and_axe_finds_no_problem(
    browser: Browser, shared_server: LiveServer, lang: str
) -> None:
    told = {"job_name": "axe-of-changes", "job_id": "1", "versions": {"torch": "2.5.1"}}
    httpx2.post(f"{shared_server.url}/api/v1/run-summaries", json=told).raise_for_status()
    query = {"job_name": "axe-of-changes", "job_id": f"2{lang}", "wait": "60"}
    made = httpx2.post(f"{shared_server.url}/api/v1/incidents", params=query, content=b"KeyError: 'a'\n", timeout=90)
    now = {"incident": made.json()["id"], "job_id": f"2{lang}", "versions": {"torch": "2.6.0"}}
    httpx2.post(f"{shared_server.url}/api/v1/run-summaries", json=now).raise_for_status()
    locale = {"en": "en-GB", "zh": "zh-CN"}[lang]
    address = f"{shared_server.url}/incidents/{now['incident']}"
    with browser.new_context(viewport={"width": 390, "height": 900}, locale=locale, java_script_enabled=False) as plain:
        page = plain.new_page()
        page.goto(address)
        page.get_by_text("torch 2.5.1 → 2.6.0").wait_for()
        assert (
            page.locator(".since-good h2").inner_text()
            == {
                "en": "What changed since it worked",
                "zh": "与上次成功时相比的变化",
            }[lang]
        )
    with browser.new_context(viewport={"width": 390, "height": 900}, locale=locale) as context:
        page = context.new_page()
        page.goto(address)
        assert not objections(page)
