"""Links to where else a run stands, on the incident's page."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from torchtriage.settings import Settings
from torchtriage.web.app import create_app

LOG = b"""\
wandb: View run happy-disco-4 at: https://wandb.example.org/acme/llm/runs/m9qlbet4
Traceback (most recent call last):
  File "/home/ann/train.py", line 88, in <module>
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


def test_an_incident_links_to_its_job_elsewhere_and_to_its_page_in_a_tracker(tmp_path: Path) -> None:
    file = tmp_path / "links.toml"
    file.write_text('[[links]]\nname = "Portal"\nname_zh = "任务门户"\nurl = "https://portal.example.org/$job_id"\n')
    with TestClient(create_app(Settings(data_dir=tmp_path / "data", workers=0, links_file=file))) as client:
        made = client.post("/api/v1/incidents?job_id=4711&wait=60", content=LOG)
        address = made.headers["Location"].removeprefix("/api/v1")
        page = client.get(address).text
        assert '<a href="https://portal.example.org/4711" rel="noreferrer nofollow">Portal</a>' in page
        assert ">https://wandb.example.org/acme/llm/runs/m9qlbet4</a>" in page
        assert "任务门户" in client.get(f"{address}?lang=zh").text
        other = client.post("/api/v1/incidents?wait=60", content=LOG[LOG.index(b"Traceback") :])
        assert 'id="elsewhere"' not in client.get(other.headers["Location"].removeprefix("/api/v1")).text
