"""Makes the pictures in the README, docs/incident.png, docs/group.png and docs/terminal.png, from a service with sample
incidents: `make demo`, then `python -m scripts.readme_picture URL`."""

from __future__ import annotations

import html
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2
from playwright.sync_api import sync_playwright

from scripts.sample_logs import memory
from tests import browser as browsers

DOCS = Path(__file__).parents[1] / "docs"
LOG = "slurm-4711.out"
# Styles of the command line's output: bold, dim, red, green, yellow, cyan.
COLOURS = {"1": "font-weight:700", "2": "opacity:.65", "31": "color:#ff7b72", "32": "color:#7ee787"}
COLOURS |= {"33": "color:#e3b341", "36": "color:#79c0ff"}
STYLE = "margin:0;padding:20px 24px;background:#0d1117;color:#e6edf3;font:15px/1.45 monospace;white-space:pre"


def main() -> None:
    url = sys.argv[1].rstrip("/")
    job = {
        "job_id": "48211",
        "job_name": "llama-ft",
        "cluster": "a100",
        "user": "mia",
        "scheduler": "slurm",
        "gpus": "8",
    }
    answer = httpx2.post(
        f"{url}/api/v1/incidents", params=job, content=memory(), headers={"content-type": "text/plain"}
    )
    answer.raise_for_status()
    groups = httpx2.get(f"{url}/api/v1/groups", params={"limit": "50"}).raise_for_status().json()["items"]
    largest = max(groups, key=lambda group: group["count"])
    pages = {"incident": f"incidents/{answer.json()['id']}", "group": f"groups/{largest['id']}"}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers.find_chromium(), args=browsers.FLAGS)
        page = browser.new_page(viewport={"width": 1240, "height": 900}, color_scheme="light")
        for name, address in pages.items():
            page.goto(f"{url}/{address}")
            page.screenshot(path=DOCS / f"{name}.png")
        terminal = browser.new_page(
            viewport={"width": 1080, "height": 600}
        )  # without the policy of the service's pages
        terminal.set_content(f'<pre style="{STYLE}">{coloured(in_a_terminal())}</pre>')
        terminal.locator("pre").screenshot(path=DOCS / "terminal.png")
        browser.close()


def in_a_terminal() -> str:
    """Returns a prompt and the output of `torchtriage triage` in a terminal for the sample log."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / LOG).write_bytes(memory())
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "torchtriage.cli.main", "triage", LOG]
        subprocess.run(command, cwd=folder, env={**os.environ, "COLUMNS": "110"}, stdout=theirs, check=True)
        os.close(theirs)
        printed = b""
        while part := _read(ours):
            printed += part
    return f"\x1b[2m$\x1b[0m torchtriage triage {LOG}\n" + printed.decode().replace("\r\n", "\n").rstrip()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux raises this when the other end is closed
        return b""


def coloured(text: str) -> str:
    """Returns the text as HTML with the colors of its escape codes."""
    parts, open_spans = [], 0
    for part in re.split(r"(\x1b\[\d*m)", text):
        code = part[2:-1] if part.startswith("\x1b[") else None
        if code is None:
            parts.append(html.escape(part))
        elif code in COLOURS:
            parts.append(f'<span style="{COLOURS[code]}">')
            open_spans += 1
        else:
            parts.append("</span>" * open_spans)
            open_spans = 0
    return "".join(parts)


if __name__ == "__main__":
    main()
