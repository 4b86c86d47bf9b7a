"""Measures each page in Chromium: `python -m bench.pages URL [--beside URL] [--phone] [--rounds 5]`, on the demo's data.

Prints a row per page. It is loaded by a new browser (cold), and again by the same browser after another page of the
service, with style sheet and scripts cached (warm). The columns are: bytes over the wire for the cold paint (the page, its
style sheet, scripts and icon); for both loads, the milliseconds to the server's first byte and to the first contentful
paint; how much later that is than the paint of a page of 1 KB in the same browser, cold or warm; the CPU time of the page's
main thread, which a faster core would reduce; and the layout shift of the whole visit, scrolled to its end. The figures are
medians of the rounds; the shift is the largest. With `--beside`, each page of another service, for example of older code,
is measured in turn with this one's.
"""

from __future__ import annotations

import argparse
import re
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.browser import FLAGS, find_chromium

PAGES = ("/", "/?sample=stuck", "/incidents", "/incidents?q=nccl", "/groups", "/unexplained", "/dashboard", "/dashboard?days=365",
         "/hosts", "/knowledge", "/knowledge?q=shm", "/knowledge/cuda.oom", "/settings", "/retriage", "/nothing/here")  # fmt: skip
HEADS = ("page", "its KB", "all KB", "cold: first byte, ms", "first paint", "after 1 KB", "processor: all", "layout", "style",
         "script", "warm: first byte, ms", "first paint", "after 1 KB", "processor: all", "layout shift")  # fmt: skip
_SMALL = b"<!doctype html><title>Small</title><body>" + b"<p>A page of 1 KB.</p>" * 45
_SEEN = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
_PAINTED = "performance.getEntriesByName('first-contentful-paint').length"
_TOLD = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const page = performance.getEntriesByType("navigation")[0];
  return { size: page.transferSize, byte: page.responseStart, paint: paint.startTime, shift: window.shift };
}"""
_WORK = {"all": "TaskDuration", "layout": "LayoutDuration", "style": "RecalcStyleDuration", "script": "ScriptDuration"}


@dataclass(frozen=True, slots=True)
class Look:
    """Bytes of the page itself and of everything, milliseconds to the first byte and first paint, milliseconds of CPU
    time by kind of work, and the layout shift."""

    page: int
    all: int
    byte: float
    paint: float
    work: dict[str, float]
    shift: float


@dataclass(frozen=True, slots=True)
class Visit:
    """The two loads of a page, and when the page of 1 KB was painted, cold and warm."""

    cold: Look
    warm: Look
    small_cold: float
    small_warm: float


def _worked(wire: CDPSession) -> dict[str, float]:
    told = {one["name"]: 1000 * one["value"] for one in wire.send("Performance.getMetrics")["metrics"]}
    return {kind: told[name] for kind, name in _WORK.items()}


def _look(page: Page, wire: CDPSession, url: str) -> Look:
    sizes: list[float] = []

    def loaded(told: dict[str, Any]) -> None:
        sizes.append(told["encodedDataLength"])

    wire.on("Network.loadingFinished", loaded)
    before = _worked(wire)
    page.goto(url, wait_until="load")
    while not page.evaluate(_PAINTED):
        page.wait_for_timeout(20)
    wire.remove_listener("Network.loadingFinished", loaded)
    after = _worked(wire)
    fresh = after["all"] < before["all"]  # the page of another site came from another process, which counts from 0
    work = {kind: after[kind] - (0 if fresh else before[kind]) for kind in _WORK}
    page.mouse.wheel(0, 20_000)
    page.wait_for_timeout(300)
    told: dict[str, Any] = page.evaluate(_TOLD)
    return Look(told["size"], int(sum(sizes)), told["byte"], told["paint"], work, told["shift"])


def two_looks(browser: Browser, url: str, between: str, phone: bool) -> tuple[Look, Look]:
    """Returns one load with an empty cache, and one after a visit to another page of the same service."""
    size = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
    with browser.new_context(viewport=size) as context:  # type: ignore[arg-type]  # a plain dictionary is taken
        context.add_init_script(_SEEN)
        page = context.new_page()
        wire = context.new_cdp_session(page)
        wire.send("Network.enable")
        wire.send("Performance.enable", {"timeDomain": "threadTicks"})
        cold = _look(page, wire, url)
        page.goto(between, wait_until="load")
        return cold, _look(page, wire, url)


def visit(browser: Browser, service: str, path: str, small: str, phone: bool) -> Visit:
    small_cold, small_warm = two_looks(browser, small, small, phone)
    cold, warm = two_looks(browser, service + path, f"{service}/nothing/else", phone)
    return Visit(cold, warm, small_cold.paint, small_warm.paint)


class _Small(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(_SMALL)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def small_page() -> Iterator[str]:
    """Gives the address of a page of 1 KB without further files, which shows the browser's own time."""
    with HTTPServer(("127.0.0.1", 0), _Small) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def pages_of(browser: Browser, url: str) -> list[str]:
    """Returns the fixed pages and some that the service's lists link to: incidents of all kinds, a log, a group, a
    host."""
    with browser.new_context() as context:
        page = context.new_page()
        found = list(PAGES)
        for outcome in ("explained", "unexplained", "healthy"):
            page.goto(f"{url}/incidents?outcome={outcome}")
            first = page.locator("a.title").first.get_attribute("href")
            found += [str(first), f"{first}/log"] if outcome == "explained" else [str(first)]
        for listed in ("/groups?sort=count", "/hosts", "/unexplained"):
            page.goto(url + listed)
            pattern = re.compile(rf"{listed.partition('?')[0]}/[^/]+$")
            links = page.locator("main a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
            found += [link for link in links if link and pattern.fullmatch(link)][:1]
    return found


def row(path: str, seen: list[Visit]) -> str:
    """Returns the table's row of a page."""

    def look(name: str) -> list[str]:
        looks = [getattr(one, name) for one in seen]
        later = statistics.median(getattr(one, name).paint - getattr(one, f"small_{name}") for one in seen)
        kinds = list(_WORK) if name == "cold" else ["all"]
        work = [f"{statistics.median(one.work[kind] for one in looks):.0f}" for kind in kinds]
        times = [f"{statistics.median(getattr(one, when) for one in looks):.0f}" for when in ("byte", "paint")]
        return [*times, f"{later:+.0f}", *work]

    sizes = [f"{max(getattr(one.cold, name) for one in seen) / 1000:.1f}" for name in ("page", "all")]
    shift = max(max(one.cold.shift, one.warm.shift) for one in seen)
    return f"| {' | '.join([path, *sizes, *look('cold'), *look('warm'), f'{shift:.4f}'])} |"


def _core() -> float:
    """Returns the seconds that this core takes to count to ten million."""
    began, count = time.process_time(), 0
    while count < 10_000_000:
        count += 1
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("pages", nargs="*", help="paths; without one, every kind of page")
    parser.add_argument("--beside", help="another service with the same data, measured by turns")
    parser.add_argument("--phone", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    services = [given.beside, given.url] if given.beside else [given.url]
    with small_page() as small, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        print(f"Counting to ten million takes this core {_core():.2f} s of its time.\n")
        print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
        for path in given.pages or pages_of(browser, given.url):
            rounds = [[visit(browser, one, path, small, given.phone) for one in services] for _ in range(given.rounds)]
            for service, seen in zip(services, zip(*rounds, strict=True), strict=True):
                print(row(path if service == given.url else f"{path} (beside)", list(seen)), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
