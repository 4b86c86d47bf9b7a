"""The knowledge base: YAML files in, entries of app.domain out."""

from pathlib import Path

BUILT_IN = Path(__file__).resolve().parents[2] / "knowledge_base"
