"""YAML files of the repository, read as the knowledge base is: by the parser in C, which is ten times as fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from torchtriage.knowledge.yaml_positions import Loader


def read_yaml(path: Path) -> Any:
    """-> what a file holds."""
    return yaml.load(path.read_bytes(), Loader=Loader)  # noqa: S506  # it is derived from yaml.CSafeLoader
