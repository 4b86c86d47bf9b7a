"""The log viewer in a real browser: pieces as they are scrolled to, search, ranks, errors, keys; and without script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.browser import there_are
from tests.web.logs import OOM
from tests.web.test_browser import objections

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.conftest import LiveServer

LINES = 8_000


def long_log() -> str:
    """Returns four ranks' steps, one failure in the middle, warnings that repeat, colours."""
    middle = LINES // 2
    says = ["at step", "waits at"]  # no progress comes after the failure, or the run would have survived it
    steps = [f"[rank {line % 4}] {says[line >= middle]} {line} ..." for line in range(LINES)]
    steps[middle + 500] = "\x1b[1;31mERROR\x1b[0m: tracker did not answer <b>"
    steps[100:130] = ["the very same warning"] * 30
    return "\n".join([*steps[:middle], *OOM.splitlines(), *steps[middle:]]) + "\n"


@pytest.fixture(scope="module")
def log(shared_server: LiveServer) -> str:
    """The address of a long log's viewer."""
    taken = httpx2.post(f"{shared_server.url}/api/v1/incidents?wait=60", content=long_log(), timeout=120)
    assert taken.json()["state"] == "triaged"
    return f"{shared_server.url}/incidents/{taken.json()['id']}/log"


def shown(page: Page) -> tuple[int, int]:
    """Returns the first and last line that are in the page."""
    numbers = page.locator("ol.piece > li").evaluate_all("lines => lines.map((line) => Number(line.id.slice(1)))")
    return min(numbers), max(numbers)


def in_view(page: Page, line: int) -> bool:
    return bool(page.locator(f"#L{line}").evaluate(
        "line => { const { top, bottom } = line.getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; }"
    ))  # fmt: skip


def test_it_opens_at_the_evidence_and_loads_what_is_scrolled_to(page: Page, log: str) -> None:
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
    page.goto(log)
    evidence = LINES // 2 + 4
    assert page.locator(f"#L{evidence}.evidence").is_visible()
    first, last = shown(page)
    for _ in range(6):
        page.mouse.wheel(0, 20_000)
        page.wait_for_function(
            "(last) => Number(document.querySelector('ol.piece:last-of-type').dataset.last) > last", arg=last
        )
        last = shown(page)[1]
    for _ in range(3):
        page.mouse.wheel(0, -100_000)
        page.wait_for_function("(first) => Number(document.querySelector('ol.piece').dataset.first) < first", arg=first)
        first = shown(page)[0]
    numbers = page.locator("ol.piece > li").evaluate_all("lines => lines.map((line) => Number(line.id.slice(1)))")
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert not failures


@pytest.mark.slow
def test_lines_have_addresses(page: Page, log: str) -> None:
    page.goto(f"{log}?line=6000#L6000")
    assert in_view(page, 6000)
    page.locator("#L6000 > a").first.click()
    page.keyboard.press("g")
    page.keyboard.type("42")
    page.keyboard.press("Enter")
    page.locator("#L42.focus").wait_for()
    assert in_view(page, 42)
    assert page.url.endswith("?line=42#L42")


@pytest.mark.slow
def test_a_range_of_lines_is_chosen_and_copied(browser: Browser, log: str) -> None:
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.goto(f"{log}?line=6000#L6000")
        page.locator("#L6000 > a").first.click()
        page.locator("#L6003 > a").first.click(modifiers=["Shift"])
        assert page.url.endswith("?line=6000-6003#L6000")
        assert page.locator("#said").inner_text().startswith("Lines 6,000–6,003 selected")
        page.keyboard.press("K")
        there_are(page.locator("li.focus"), 3)
        page.keyboard.press("c")
        page.get_by_text("Copied").wait_for()
        copied = page.evaluate("() => navigator.clipboard.readText()").splitlines()
        assert copied == [page.locator(f"#L{line} code").inner_text() for line in (6000, 6001, 6002)]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["?line=6000-6002", "?line=6002-6000", "#L6000-L6002"])
def test_the_address_of_a_range_leads_to_it(page: Page, log: str, ending: str) -> None:
    page.goto(log + ending)
    page.locator("#L6002.focus").wait_for()
    chosen = page.locator("li.focus").evaluate_all("lines => lines.map((line) => line.id)")
    assert chosen == ["L6000", "L6001", "L6002"]


@pytest.mark.slow
def test_a_range_is_shown_without_script_and_the_log_is_saved_as_it_is(browser: Browser, log: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{log}?line=6000-6002")
        there_are(page.locator("li.focus"), 3)
        there_are(page.locator("#copy-lines:visible"), 0)
        with page.expect_download() as saved:
            page.get_by_role("link", name="Download").click()
        assert saved.value.path().read_text() == long_log()


@pytest.mark.slow
def test_words_are_found_forwards_and_backwards(page: Page, log: str) -> None:
    page.goto(log)
    page.keyboard.press("/")
    page.keyboard.type("WAITS at 5432 ")
    page.keyboard.press("Enter")
    page.locator("#L5437.focus mark").wait_for()
    assert page.locator("#L5437 mark").inner_text() == "waits at 5432"
    page.locator("#q").fill("out of memory")
    page.get_by_role("button", name="Previous match", exact=True).click()
    page.locator(f"#L{LINES // 2 + 4}.focus").wait_for()
    page.keyboard.press("n")
    page.get_by_text("Continued from the beginning.").wait_for()
    page.locator(f"#L{LINES // 2 + 4}.focus").wait_for()
    page.locator("#q").fill("in no line of it")
    page.keyboard.press("Enter")
    page.get_by_text("No more matches.").wait_for()
    page.locator("#q").fill("waits at 7999 ")
    page.get_by_role("button", name="Previous match", exact=True).click()
    page.get_by_text("Continued from the end.").wait_for()
    page.wait_for_url(re.compile(rf"#L{LINES + 4}$"))


@pytest.mark.slow
def test_the_next_error_is_found(page: Page, log: str) -> None:
    page.goto(f"{log}?from=1")
    page.locator("#L1").wait_for()
    page.get_by_role("button", name="Next error").click()
    page.locator(f"#L{LINES // 2 + 1}.focus").wait_for()
    page.goto(f"{log}?line={LINES // 2 + 10}")
    page.locator("body").press("e")
    page.locator(f"#L{LINES // 2 + 505}.focus .c-red.bold").wait_for()
    assert "<b>" in page.locator(f"#L{LINES // 2 + 505}").inner_text()


@pytest.mark.slow
def test_all_hits_of_a_regex_are_counted_and_listed(page: Page, log: str) -> None:
    page.goto(log)
    page.locator("#q").fill(r"at step (12|13)\d\d ")
    page.get_by_label("Regex").check()
    page.get_by_role("button", name="All", exact=True).click()
    there_are(page.locator("#found .hits li"), 200)
    page.get_by_role("status").get_by_text("200 matching lines").wait_for()
    there_are(page.locator(".map .hit"), 200)
    page.locator("#found .hits a").nth(1).click()
    page.locator("#L1202.focus mark").wait_for()
    assert page.locator("#L1202 mark").inner_text() == "at step 1201"
    assert "regex=1" in page.url
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()


@pytest.mark.slow
def test_an_invalid_regex_is_reported_at_its_field(page: Page, log: str) -> None:
    page.goto(log)
    page.get_by_label("Regex").check()
    page.locator("#q").fill("(unclosed")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("the regular expression cannot be used: missing ): (unclosed").wait_for()
    assert page.locator("#q").input_value() == "(unclosed"
    assert page.locator("#q").get_attribute("aria-invalid") == "true"


@pytest.mark.slow
def test_escape_gives_the_focus_back_to_the_line(page: Page, log: str) -> None:
    page.goto(f"{log}?line=6000#L6000")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.closest('li').id") == "L6000"


@pytest.mark.slow
def test_a_range_in_the_address_is_in_view_and_stays(page: Page, log: str) -> None:
    page.goto(f"{log}?line=6000-6004")
    page.wait_for_function("() => document.querySelectorAll('ol.piece').length > 1")  # more lines have come below
    assert in_view(page, 6000)
    assert page.url.endswith("?line=6000-6004")
    assert page.locator("#said").inner_text().startswith("Lines 6,000–6,004 selected")


@pytest.mark.slow
def test_long_lines_are_broken_or_not(browser: Browser, log: str) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        page.goto(f"{log}?line={LINES // 2 + 4}")
        line = page.locator(f"#L{LINES // 2 + 4} code")
        high = line.bounding_box()
        page.get_by_text("More", exact=True).click()  # a phone shows the search alone
        page.get_by_text("Do not wrap lines").click()
        low = line.bounding_box()
        assert high is not None
        assert low is not None
        assert low["height"] < high["height"]
        assert "wrap=0" in page.url
        assert page.evaluate("document.documentElement.scrollWidth") <= 390  # The lines scroll, not the page.
        page.reload()
        page.locator(".viewer.unwrapped").wait_for()


@pytest.mark.slow
def test_a_phone_opens_at_the_evidence_with_the_search_at_hand(browser: Browser, shared_server: LiveServer) -> None:
    steps = "".join(f"rank {at % 4} writes a long line about step {at} with loss {5 - at / 50}\n" for at in range(40))
    taken = httpx2.post(f"{shared_server.url}/api/v1/incidents?wait=60", content=steps + OOM, timeout=120).json()
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        page.goto(f"{shared_server.url}/incidents/{taken['id']}/log")
        page.locator("li.evidence").first.wait_for()
        assert shown(page)[0] == 1  # the log is short, so all of it is there
        assert in_view(page, 44)
        tools, status = page.locator(".tools").bounding_box(), page.locator(".status").bounding_box()
        assert tools is not None
        assert status is not None
        assert tools["y"] == 0
        assert tools["height"] < 60
        assert status["y"] + status["height"] <= 844.5
        page.get_by_label("Search this log").fill("step 3 ")
        page.get_by_role("button", name="Next ↓").click()
        page.locator("#L4.focus").wait_for()
        page.get_by_role("button", name="Next error").click()
        page.locator("#L41.focus").wait_for()
        there_are(page.get_by_label("Regex").locator("visible=true"), 0)
        page.get_by_text("More", exact=True).click()
        there_are(page.get_by_label("Regex").locator("visible=true"), 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_one_rank_alone(page: Page, log: str) -> None:
    page.goto(f"{log}?line=3000")
    page.locator("#L3000 .who").click()
    page.wait_for_url(re.compile("rank=3"))
    ranks = page.locator("ol.piece .who").all_text_contents()
    assert set(ranks) == {"3"}
    last = shown(page)[1]
    page.mouse.wheel(0, 50_000)
    page.wait_for_function(
        "(last) => Number(document.querySelector('ol.piece:last-of-type').dataset.last) > last", arg=last
    )
    assert set(page.locator("ol.piece .who").all_text_contents()) == {"3"}
    page.mouse.wheel(0, -500_000)
    page.get_by_role("link", name="All ranks").click()
    page.wait_for_url(lambda url: "rank" not in url)


@pytest.mark.slow
def test_equal_lines_are_folded(page: Page, log: str) -> None:
    page.goto(f"{log}?from=95")
    folded = page.locator("details.equal").first
    assert "29 identical lines" in folded.inner_text()
    folded.locator("summary").click()
    there_are(folded.locator("li"), 29)


@pytest.mark.slow
def test_keys_step_from_mark_to_mark(page: Page, log: str) -> None:
    page.goto(f"{log}?from=1")
    page.locator("#L1").wait_for()
    page.keyboard.press("j")
    page.locator("li.evidence.focus").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()


@pytest.mark.slow
def test_all_of_it_works_without_script(browser: Browser, log: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(log)
        assert page.locator(f"#L{LINES // 2 + 4}").is_visible()
        last = shown(page)[1]
        page.get_by_role("link", name="Later ↓").click()
        page.locator(f"ol.piece > li:first-child#L{last + 1}").wait_for()
        page.get_by_role("link", name="↑ Earlier").click()
        page.locator(f"ol.piece > li:last-child#L{last}").wait_for()
        page.get_by_label("Search this log").fill("waits at 7999 ")
        page.get_by_role("button", name="Next ↓").click()
        page.wait_for_url(re.compile(rf"line={LINES + 4}.*#L{LINES + 4}$"))
        assert page.locator("li.focus mark").inner_text() == "waits at 7999"
        page.get_by_role("button", name="Next ↓").click()
        page.get_by_role("status").get_by_text("No more matches. Search from the beginning").wait_for()
        page.get_by_role("link", name="Search from the beginning").click()
        assert page.locator("li.focus mark").inner_text() == "waits at 7999"
        page.get_by_label("Search this log").fill("in no line")
        page.get_by_role("button", name="Next ↓").click()
        page.get_by_role("link", name="Search from the beginning").click()
        page.get_by_role("status").get_by_text("No more matches.", exact=True).wait_for()
        page.get_by_label("Search this log").fill("very same warning")
        page.get_by_role("button", name="All", exact=True).click()
        there_are(page.locator("#found .hits li"), 30)
        page.get_by_label("rank", exact=True).fill("2")
        page.get_by_label("Line", exact=True).fill("500")
        page.locator("#goto button").click()
        page.wait_for_url(re.compile("rank=2"))
        assert set(page.locator("ol.piece .who").all_text_contents()) == {"2"}


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme", "lang"), [(1440, "light", "en"), (390, "dark", "zh")])
def test_axe_finds_nothing(browser: Browser, log: str, width: int, scheme: str, lang: str) -> None:
    size = {"width": width, "height": 900}
    locale = {"en": "en-GB", "zh": "zh-CN"}[lang]
    with browser.new_context(viewport=size, color_scheme=scheme, locale=locale) as context:  # type: ignore[arg-type]
        page = context.new_page()
        found: list[str] = []
        for query in ("", "?rank=2&q=step&line=3000", "?from=90"):
            page.goto(log + query)
            found += objections(page)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{page.url} is wider than the window")
        assert not found
