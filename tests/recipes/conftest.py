"""A service whose decisions a test chooses, and scripts that use the recipes of deploy/ in a process of their own."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import Asked, Told, serving

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).with_name("fakes")
CLIENT = ROOT / "app" / "torchtriage" / "client" / "torchtriage_client.py"


@dataclass
class FakeService:
    """Takes reports, and decides what stands in `decisions`, one after the other, the last for all later ones."""

    url: str = ""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    reports: list[dict[str, str]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    good_ends: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, asked: Asked) -> Told:
        where = urllib.parse.urlsplit(asked.path)
        if where.path == "/api/v1/incidents":
            self.reports.append(dict(urllib.parse.parse_qsl(where.query)))
            self.logs.append(_logs_in(asked.body))
            return Told(json.dumps({"id": str(len(self.reports)), "state": "triaged"}).encode(), status=201)
        if where.path == "/api/v1/run-summaries":
            told = json.loads(asked.body)
            if "incident" not in told:
                self.good_ends.append(told)
            return Told(b'{"since_good": null}')
        assert where.path == "/api/v1/decision"
        assert json.loads(asked.body) == {"incident": str(len(self.reports))}
        made = self.decisions.pop(0) if len(self.decisions) > 1 else self.decisions[0]
        return Told(json.dumps({"mode": "enforce", "reason": "Because.", **made}).encode())


def _logs_in(bundle: bytes) -> str:
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        found = [archive.extractfile(member) for member in archive.getmembers() if member.name.endswith(".log")]
        return "".join(file.read().decode() for file in found if file)


@pytest.fixture
def service() -> Iterator[FakeService]:
    made = FakeService()
    with serving(made.answer) as url:
        made.url = url
        yield made


class Recipe:
    """A recipe's folder with the client in it, as its page says to put it. Its library is the real one where a variable
    names a Python that has it, else a fake."""

    def __init__(self, folder: Path, name: str, service: FakeService) -> None:
        self.folder, self.service = folder, service
        for path in (ROOT / "deploy" / name).glob("*.py"):
            shutil.copy(path, folder)
        shutil.copy(CLIENT, folder)
        self.python = os.environ.get(f"{name.upper()}_PYTHON")

    def run(self, script: str, *words: str, url: str | None = None) -> dict[str, Any]:
        """Returns what a script of this folder tells."""
        told = self.folder / "told.json"
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "TOLD": str(told), "TORCHTRIAGE_SPOOL": str(self.folder), "TORCHTRIAGE_SCRATCH": str(self.folder / "scratch"),
            "TORCHTRIAGE_URL": url or self.service.url, "RAY_TRAIN_V2_ENABLED": "1", "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "PYTHONPATH": os.pathsep.join([str(self.folder), *([] if self.python else [str(FAKES)])]),
        }  # fmt: skip
        command = [self.python or sys.executable, str(Path(__file__).with_name(script)), *words]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(told.read_text())
        return found | {"output": done.stdout + done.stderr}


@pytest.fixture
def airflow(tmp_path: Path, service: FakeService) -> Recipe:
    return Recipe(tmp_path, "airflow", service)


@pytest.fixture
def ray(tmp_path: Path, service: FakeService) -> Recipe:
    return Recipe(tmp_path, "ray", service)
