"""Makes the pictures in the README, docs/incident.png and docs/group.png, from a service with sample incidents:
`make demo`, then `python -m scripts.readme_picture URL`."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx2
from playwright.sync_api import sync_playwright

from scripts.sample_logs import memory
from tests import browser as browsers


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
            page.screenshot(path=Path(__file__).parents[1] / "docs" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
