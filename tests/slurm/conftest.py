from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LiveServer, serving
from tests.slurm.cluster import Cluster, missing

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with what docs/slurm.md says to install."""
    folder = tmp_path_factory.mktemp("opt") / "torchtriage"
    shutil.copytree(ROOT / "deploy" / "slurm", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app" / "torchtriage" / "client" / "torchtriage_client.py", folder)
    return folder


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serving(tmp_path_factory.mktemp("service"), decisions="enforce") as server:
        yield server


@pytest.fixture(scope="session")
def cluster(installed: Path, service: LiveServer) -> Iterator[Cluster]:
    """A real Slurm, where there can be one."""
    problem = missing()
    if problem:
        pytest.skip(problem)
    with Cluster(installed, service.url) as made:
        yield made
