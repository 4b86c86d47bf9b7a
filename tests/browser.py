"""A real browser for tests: finds a Chromium on the machine, and says what is missing; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = [
    "--no-sandbox",  # a sandbox needs rights that root in a container lacks; the only pages are our own
    "--disable-dev-shm-usage",  # /dev/shm is 64 MB in many containers
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # tests use no network
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE = 120_000  # milliseconds, for a busy machine

# What a test does in English it does in Chinese in the slow suite; texts are tested without a browser.
LANGUAGES = ["en", pytest.param("zh", marks=pytest.mark.slow)]


def views(first: tuple[Any, ...], second: tuple[Any, ...]) -> list[Any]:
    """-> how a page is seen, with the language last: the first in English and the second in Chinese; slow, crosswise."""
    crosswise = [
        pytest.param(*first, "zh", marks=pytest.mark.slow),
        pytest.param(*second, "en", marks=pytest.mark.slow),
    ]
    return [(*first, "en"), (*second, "zh"), *crosswise]


def there_are(what: Locator, count: int) -> None:
    """Waits until the page, which may still be on its way, holds so many of it."""
    from playwright.sync_api import expect  # here, as it takes a third of a second

    expect(what).to_have_count(count, timeout=PATIENCE)


def has_focus(page: Page, tag: str) -> None:
    """Waits until an element of this kind has the focus."""
    page.wait_for_function("tag => document.activeElement.tagName === tag", arg=tag, timeout=PATIENCE)


def find_chromium() -> str | None:
    """-> the path of the first browser there is."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def problem() -> str | None:
    """-> why no test can run in a browser here; None where it can."""
    if find_chromium() is None:
        return "no Chromium found ($CHROMIUM, PATH)"
    # Playwright drives it with a Node.js of its own, which needs a library (libatomic1) that small systems lack.
    driver = subprocess.run([sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True)
    if driver.returncode != 0:
        reason = (driver.stderr or driver.stdout).strip().splitlines() or ["no reason given"]
        return f"Playwright does not start: {reason[-1]}"
    return None
