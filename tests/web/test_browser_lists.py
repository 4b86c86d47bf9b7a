"""Lists, groups, dashboard, hosts and settings in a real browser, in both languages, with nothing that axe objects to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.browser import LANGUAGES, there_are, views
from tests.web.logs import OOM

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

    from tests.conftest import LiveServer

pytestmark = pytest.mark.first
ECC = "Nov 16 10:00:00 gpu-{} kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, name=python, DBE (double bit error)\n"
JAMMED = 'Traceback (most recent call last):\n  File "/work/train.py", line 7, in step\n    turn()\nwidgets.{}: <img src=x> jammed\n'
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
PAGES = ("/connect", "/connect?from=curl", "/incidents", "/incidents/values", "/incidents?cluster=blue&outcome=explained", "/incidents?user=nobody", "/groups", "/groups/1",
         "/groups?status=resolved", "/unexplained", "/drafts", "/drafts/new?group=2", "/dashboard", "/dashboard?days=365",
         "/dashboard?since=2020-01-01&until=2020-01-02", "/decisions", "/decisions?grade=wrong", "/alerts", "/alerts?state=failed", "/drafts/new?group=1&case=1", "/hosts", "/hosts/gpu-7", "/hosts?host=no", "/settings", "/changes", "/changes?by=nobody&since=never",
         "/retriage", "/docs", "/guides", "/guides/slurm", "/guides/operating")  # fmt: skip


def post(server: LiveServer, text: str, path: str = "/api/v1/incidents", **job: str) -> None:
    facts = {"gpus": "8", "started_at": "2026-05-01T09:00:00Z", "ended_at": "2026-05-01T10:00:00Z", "wait": "60"} | job
    headers = {"Content-Type": "text/plain"}
    address = f"{server.url}{path}?{urlencode(facts)}"
    urlopen(Request(address, text.encode(), headers)).read()


@pytest.fixture
def filled(live_server: LiveServer) -> LiveServer:
    """Group 1 is of CUDA's memory, 2 and 3 are unexplained, 4 is a host's own failure."""
    for number in range(3):
        post(live_server, OOM, job_id=str(number), cluster="blue" if number else "green", user="ann")
    for name in ("WidgetError", "WidgetsError"):
        post(live_server, JAMMED.format(name), job_id=name, cluster="green", user="bob")
    for number in range(2):
        post(
            live_server, ECC.format(7), "/api/v1/decision", job_id=f"ecc {number}", cluster="green", attempt=str(number)
        )
    return live_server


@pytest.fixture(params=LANGUAGES)
def context(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    """In English, and in the slow suite in Chinese."""
    with browser.new_context(locale=LOCALES[request.param], permissions=["clipboard-read", "clipboard-write"]) as made:
        yield made


def objections(page: Page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{page.url} {one['id']}: {one['nodes'][0]['html'][:300]}" for one in found]


def listen(page: Page) -> list[str]:
    """Returns what goes wrong on a page from now on."""
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
    return failures


@pytest.mark.slow
def test_incidents_are_chosen_judged_and_deleted(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    failures = listen(page)
    page.goto(f"{filled.url}/incidents?cluster=blue")
    every = page.locator("input[data-all]")
    every.check()
    there_are(page.locator("input.pick:checked"), 2)
    page.locator("input.pick").first.uncheck()
    assert every.evaluate("box => box.indeterminate")
    page.locator("button[value=right]").click()
    page.wait_for_url(re.compile("said=right&n=1"))
    assert "1" in page.get_by_role("status").inner_text()
    page.locator("input.pick").first.check()
    page.locator("button[value=delete]").click()
    page.locator("button.danger").wait_for()
    there_are(page.locator(".row"), 1)
    page.locator("a.button").click()
    page.wait_for_url(re.compile(r"/incidents\?cluster=blue$"))
    page.locator("input.pick").first.check()
    page.locator("button[value=delete]").click()
    page.locator("button.danger").click()
    page.wait_for_url(re.compile("said=deleted"))
    there_are(page.locator(".row"), 1)
    assert not failures


@pytest.mark.slow
def test_a_list_is_gone_through_by_keys(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    failures = listen(page)
    page.goto(f"{filled.url}/incidents")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("x")
    there_are(page.locator(".row:first-child input.pick:checked"), 1)
    page.keyboard.press("?")
    page.locator("dialog#keys[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator(".row .title").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/incidents/\d+$"))
    assert not failures


@pytest.mark.slow
def test_filters_are_suggested_with_counts(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/incidents")
    page.locator("#f-cluster").focus()
    there_are(page.locator("#v-cluster option"), 2)
    assert page.locator("#v-cluster option").evaluate_all("all => all.map(one => one.label)") == [
        "green (5)",
        "blue (2)",
    ]
    assert page.locator("#f-owner option").nth(1).inner_text().endswith("(3)")


@pytest.mark.slow
def test_the_palette_leads_anywhere(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    failures = listen(page)
    page.goto(f"{filled.url}/knowledge")  # a page that has none of the lists' looks
    page.keyboard.press("Control+k")
    page.locator(".palette[open] [role=option]").first.wait_for()
    assert not objections(page)
    page.keyboard.type("nccl.timeout")
    page.locator("[role=option][data-go='/knowledge/nccl.timeout'][aria-selected=true]").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/knowledge/nccl.timeout$"))
    page.locator("[data-palette]").click()
    page.locator(".palette[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator(".palette[open]").wait_for(state="detached")
    assert not failures


@pytest.mark.slow
def test_a_key_in_the_palette_acts_on_the_answer_to_all_the_words(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    held: list[Route] = []
    page.route(re.compile(r"/palette\?q=nccl.timeout$"), lambda route: held.append(route))
    page.goto(f"{filled.url}/knowledge")
    page.keyboard.press("Control+k")
    page.locator(".palette[open] [role=option]").first.wait_for()
    with page.expect_request(re.compile(r"/palette\?q=nccl.timeout$")):
        page.keyboard.type("nccl.timeout")
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    for route in held:
        route.continue_()
    page.wait_for_url(re.compile("/knowledge/nccl.timeout$"))


@pytest.mark.slow
def test_new_incidents_are_announced_and_move_no_row(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    failures = listen(page)
    page.clock.install()
    page.goto(f"{filled.url}/incidents?cluster=green")
    there_are(page.locator(".row"), 5)
    post(filled, OOM, job_id="new", cluster="green")
    post(filled, OOM, job_id="other", cluster="blue")
    page.clock.run_for(16_000)
    page.locator(".fresh-rows button").wait_for()
    assert "1" in page.locator(".fresh-rows button").inner_text()
    there_are(page.locator(".row"), 5)
    page.locator(".fresh-rows button").click()
    there_are(page.locator(".row"), 6)
    assert not failures


@pytest.mark.slow
def test_a_view_is_saved_and_deleted_and_brought_back(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/incidents")
    page.locator("#f-cluster").fill("green")
    page.locator("form.filters button").click()
    page.wait_for_url(re.compile("cluster=green"))
    page.locator("#view-name").fill("the green ones")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("said=saved"))
    page.goto(f"{filled.url}/incidents")
    page.get_by_role("link", name="the green ones").click()
    there_are(page.locator(".row"), 5)
    page.locator("form.view button").click()
    page.wait_for_url(re.compile("said=removed"))
    there_are(page.get_by_role("link", name="the green ones"), 0)
    page.locator(".notice.done button").click()
    page.get_by_role("link", name="the green ones").wait_for()


@pytest.mark.slow
def test_chosen_incidents_are_triaged_again(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/incidents")
    page.locator("input.pick").first.check()
    page.locator("button[value=retriage]").click()
    page.wait_for_url(re.compile("/retriage$"))
    page.locator("button[value=discard]").wait_for(timeout=60_000)
    assert "1" in page.get_by_role("status").inner_text()
    page.locator("button[value=discard]").click()
    page.locator("form[action='/retriage/all']").wait_for()


@pytest.mark.slow
def test_groups_are_resolved_together_and_that_is_undone(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    failures = listen(page)
    page.goto(f"{filled.url}/groups?sort=count")
    there_are(page.locator("svg.spark"), 4)
    page.locator("input[data-all]").check()
    page.locator(".bulk button[value=resolved]").click()
    page.locator(".notice.done").wait_for()
    there_are(page.locator(".status.resolved"), 4)
    page.locator(".notice.done button").click()
    page.wait_for_url(re.compile(r"/groups\?sort=count$"))
    there_are(page.locator(".status.resolved"), 0)
    assert not failures


@pytest.mark.slow
def test_groups_are_merged_split_muted_and_noted(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/groups/2")
    page.locator("input[name=other][value='3']").check()
    page.locator("form[action$='/merge'] button").click()
    page.locator(".notice.done").wait_for()
    assert "2" in page.locator(".group-facts strong").first.inner_text()
    page.locator(".notice.done button").click()
    page.wait_for_url(re.compile("said=unmerged"))
    there_are(page.locator("input[type=checkbox][name=other][value='3']"), 1)
    page.locator("#g-owner").fill("ann")
    page.locator("#g-note").fill("seen since the upgrade")
    page.locator("#g-note + button").click()
    page.wait_for_url(re.compile(r"/groups/2$"))
    assert page.locator("#g-note").input_value() == "seen since the upgrade"
    page.locator("button[name=mute][value='7']").click()
    page.locator("button[name=mute][value='0']").click()
    page.locator("button[name=mute][value='0']").wait_for(state="detached")
    page.goto(f"{filled.url}/groups/1")
    page.locator("#g-part").select_option("cluster=green")
    page.locator("form[action$='/split'] button").click()
    page.locator(".notice.done a").click()
    page.wait_for_url(re.compile(r"/groups/5$"))
    there_are(page.locator(".row"), 1)


@pytest.mark.slow
def test_an_entry_is_drafted_from_the_work_list(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/unexplained")
    assert page.locator(".unknowns .line").first.inner_text().endswith("<img src=x> jammed")
    page.locator(".unknowns .button").first.click()
    page.wait_for_url(re.compile(r"/drafts/new\?group=\d+$"))
    assert "jammed" in page.locator("[name=sign]").input_value()


@pytest.mark.slow
def test_the_dashboard_draws_counts_and_drains(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    failures = listen(page)
    page.goto(f"{filled.url}/dashboard")
    page.wait_for_function("document.querySelectorAll('.chart .frame a path title').length >= 4")
    page.locator(".chart .frame a[href*='area=cuda'] path").first.click()
    page.wait_for_url(re.compile(r"/incidents\?day=[\d-]+&area=cuda"))
    there_are(page.locator(".row"), 3)
    page.goto(f"{filled.url}/dashboard")
    page.locator(".chart summary").first.click()
    there_are(page.locator(".chart table").first.locator("tbody tr"), 30)
    there_are(page.locator(".command code", has_text="--exclude=gpu-7"), 1)
    page.locator("#f-cluster").select_option("blue")
    page.locator("form.filters button").click()
    page.wait_for_url(re.compile("cluster=blue"))
    assert page.locator(".strip strong a").first.inner_text() == "2"
    page.locator("a[href^='/dashboard?days=7']").click()
    page.wait_for_url(re.compile("days=7&cluster=blue"))
    assert not failures


@pytest.mark.slow
def test_a_host_leads_to_its_incidents(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/hosts")
    page.get_by_role("link", name="gpu-7").click()
    there_are(page.locator(".row"), 2)
    there_are(page.locator(".command code", has_text="kubectl cordon gpu-7"), 1)
    page.locator("main table a:visible").first.click()
    page.wait_for_url(re.compile("host=gpu-7"))
    there_are(page.locator(".row"), 2)


@pytest.mark.slow
def test_a_phone_shows_all_of_a_host_and_of_a_cluster(browser: Browser, filled: LiveServer) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        for address in ("/hosts", "/dashboard"):
            page.goto(filled.url + address)
            for table in page.locator(".wide-table:visible").all():
                assert table.evaluate("one => one.scrollWidth <= one.clientWidth"), address


@pytest.mark.slow
def test_a_token_is_made_and_revoked(context: BrowserContext, filled: LiveServer) -> None:
    page = context.new_page()
    page.goto(f"{filled.url}/settings")
    page.locator("#t-name").fill("ci")
    page.locator("input[name=scope][value=submit]").check()
    page.locator("form[action^='/settings/tokens'] button").click()
    secret = page.locator(".notice .command code").inner_text()
    assert secret.startswith("tt_")
    page.goto(f"{filled.url}/settings")
    there_are(page.get_by_text(secret), 0)
    page.locator("details.ask summary").click()
    page.locator("details.ask button.danger").click()
    page.locator("details.ask").wait_for(state="detached")


@pytest.mark.slow
def test_it_all_works_without_script(browser: Browser, filled: LiveServer) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{filled.url}/groups")
        assert not page.locator("input[data-all]").is_visible()
        page.locator("input.pick").first.check()
        page.locator(".bulk button[value=ignored]").click()
        page.locator(".notice.done button").click()
        page.goto(f"{filled.url}/incidents")
        page.locator("input.pick").first.check()
        page.locator("button[value=retriage]").click()
        page.wait_for_url(re.compile("/retriage$"))


@pytest.mark.slow
def test_a_theme_is_chosen_in_the_footer_and_stays(browser: Browser, filled: LiveServer) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    with browser.new_context(color_scheme="light") as context:
        page = context.new_page()
        page.goto(f"{filled.url}/groups?status=open")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        page.get_by_role("button", name="Dark").click()
        page.wait_for_url(re.compile(r"/groups\?status=open$"))
        page.locator("html[data-theme=dark]").wait_for()
        assert page.evaluate(ground) == "rgb(19, 22, 26)"
        page.goto(f"{filled.url}/incidents")
        assert page.evaluate(ground) == "rgb(19, 22, 26)"
        page.get_by_role("button", name="System").click()
        page.locator("html:not([data-theme])").wait_for()
        assert page.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme", "lang"), views((1440, "light"), (390, "dark")))
def test_axe_finds_nothing_and_nothing_overflows(
    browser: Browser, filled: LiveServer, lang: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900}
    with browser.new_context(viewport=size, color_scheme=scheme, locale=LOCALES[lang]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        found: list[str] = []
        for address in PAGES:
            page.goto(filled.url + address)
            for summary in page.locator(".chart summary, details.ask summary").all():
                summary.click()
            found += objections(page)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{address} is wider than the window")
        assert not found
