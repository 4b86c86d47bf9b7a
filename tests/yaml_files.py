"""Reads YAML files of the repository with the same fast C parser as the knowledge base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from torchtriage.knowledge.yaml_positions import Loader


def read_yaml(path: Path) -> Any:
    """Returns the content of a file."""
    return yaml.load(path.read_bytes(), Loader=Loader)  # noqa: S506  # it is derived from yaml.CSafeLoader
