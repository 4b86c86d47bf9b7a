"""A real browser for tests. Finds an installed Chromium or says what is missing. Downloads nothing."""

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
    "--no-sandbox",  # the sandbox needs rights that root in a container lacks; we open only our own pages
    "--disable-dev-shm-usage",  # /dev/shm is 64 MB in many containers
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # tests use no network
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

TIMEOUT = 120_000  # milliseconds, for a busy machine

# Tests run in English. The slow suite repeats them in Chinese; texts are tested without a browser.
LANGUAGES = ["en", pytest.param("zh", marks=pytest.mark.slow)]


def views(first: tuple[Any, ...], second: tuple[Any, ...]) -> list[Any]:
    """Returns the parameters of a page's views with the language last: `first` in English and `second` in Chinese; in
    the slow suite also the reverse."""
    crosswise = [
        pytest.param(*first, "zh", marks=pytest.mark.slow),
        pytest.param(*second, "en", marks=pytest.mark.slow),
    ]
    return [(*first, "en"), (*second, "zh"), *crosswise]


def there_are(what: Locator, count: int) -> None:
    """Waits until the page, which may still be loading, contains `count` of these elements."""
    from playwright.sync_api import expect  # imported here because it takes a third of a second

    expect(what).to_have_count(count, timeout=TIMEOUT)


def has_focus(page: Page, tag: str) -> None:
    """Waits until an element with this tag has the focus."""
    page.wait_for_function("tag => document.activeElement.tagName === tag", arg=tag, timeout=TIMEOUT)


def find_chromium() -> str | None:
    """Returns the path of the first browser found, or None."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def problem() -> str | None:
    """Returns why browser tests cannot run here, or None if they can."""
    if find_chromium() is None:
        return "no Chromium found ($CHROMIUM, PATH)"
    # Playwright uses its own Node.js, which needs a library (libatomic1) that small systems lack.
    driver = subprocess.run([sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True)
    if driver.returncode != 0:
        reason = (driver.stderr or driver.stdout).strip().splitlines() or ["no reason given"]
        return f"Playwright does not start: {reason[-1]}"
    return None
