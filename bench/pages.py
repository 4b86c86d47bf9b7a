"""Measures each page in Chromium: `python -m bench.pages URL [--phone] [--rounds 5]`, on a service that holds the demo.

A row is a page, asked for by a browser that was never there: bytes over the wire of all that the first paint needs (the
page, its style sheet, scripts and icon), milliseconds until the server's first byte and until the first contentful
paint, how much later that is than the paint of a page of 1 KB asked for just before by the same browser, and the layout
shift of the whole visit, scrolled to its end. Medians of the rounds; the shift is the largest.
"""

from __future__ import annotations

import argparse
import re
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.browser import FLAGS, find_chromium

PAGES = ("/", "/?sample=stuck", "/incidents", "/incidents?q=nccl", "/groups", "/unexplained", "/dashboard", "/dashboard?days=365",
         "/hosts", "/knowledge", "/knowledge?q=shm", "/knowledge/cuda.oom", "/settings", "/retriage", "/nothing/here")  # fmt: skip
_SMALL = b"<!doctype html><title>Small</title><body>" + b"<p>A page of 1 KB.</p>" * 45
_SEEN = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
_TOLD = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const page = performance.getEntriesByType("navigation")[0];
  return { size: page.transferSize, byte: page.responseStart, paint: paint ? paint.startTime : 0, shift: window.shift };
}"""


@dataclass(frozen=True, slots=True)
class Visit:
    """Bytes of the page itself and of all, milliseconds to the first byte and the first paint, and the layout shift."""

    page: int
    all: int
    byte: float
    paint: float
    shift: float


def visit(browser: Browser, url: str, phone: bool) -> Visit:
    """-> one visit of a browser with an empty cache."""
    size = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
    with browser.new_context(viewport=size) as context:  # type: ignore[arg-type]  # a plain dictionary is taken
        context.add_init_script(_SEEN)
        page = context.new_page()
        wire = context.new_cdp_session(page)
        wire.send("Network.enable")
        sizes: list[float] = []
        wire.on("Network.loadingFinished", lambda told: sizes.append(told["encodedDataLength"]))
        page.goto(url, wait_until="load")
        while not page.evaluate("performance.getEntriesByName('first-contentful-paint').length"):
            page.wait_for_timeout(20)
        first = list(sizes)
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(300)
        told: dict[str, Any] = page.evaluate(_TOLD)
    return Visit(told["size"], int(sum(first)), told["byte"], told["paint"], told["shift"])


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
    """-> the address of a page of 1 KB that needs nothing else: what the browser itself takes."""
    with HTTPServer(("127.0.0.1", 0), _Small) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def pages_of(browser: Browser, url: str) -> list[str]:
    """-> the fixed pages and some that the service's own lists lead to: incidents of all kinds, a log, a group, a host."""
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


def _row(pairs: list[tuple[float, Visit]]) -> str:
    seen = [one for _, one in pairs]
    later = statistics.median(one.paint - small for small, one in pairs)
    byte, paint = (statistics.median(getattr(one, name) for one in seen) for name in ("byte", "paint"))
    sizes = f"{max(one.page for one in seen) / 1000:.1f} | {max(one.all for one in seen) / 1000:.1f}"
    return f"{sizes} | {byte:.0f} | {paint:.0f} | {later:+.0f} | {max(one.shift for one in seen):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("pages", nargs="*", help="paths; without one, every kind of page")
    parser.add_argument("--phone", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with small_page() as small, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        print("| page | its KB | all KB | first byte, ms | first paint, ms | after that of 1 KB, ms | layout shift |")
        print("|---|---|---|---|---|---|---|")
        for path in given.pages or pages_of(browser, given.url):
            pairs = [
                (visit(browser, small, given.phone).paint, visit(browser, given.url + path, given.phone))
                for _ in range(given.rounds)
            ]
            print(f"| {path} | {_row(pairs)} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
