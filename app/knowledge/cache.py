"""The user's cache folder, and the parsed knowledge base kept there from one start to the next."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterable
from pathlib import Path

from app import __version__
from app.domain.entry import KnowledgeBase
from app.errors import KnowledgeError
from app.reading.scan import keep


def cache_folder() -> Path:
    """-> `torchtriage` under XDG_CACHE_HOME or ~/.cache; it need not exist."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "torchtriage"


def load(folders: Iterable[Path], cache: Path) -> KnowledgeBase:
    """-> the knowledge base of `folders`, parsed once per content of their files.

    Raises KnowledgeError with all problems of all files.
    """
    folders = list(folders)
    digest = hashlib.sha256(__version__.encode())
    for folder in folders:
        if not folder.is_dir():
            raise KnowledgeError([f"{folder}: no such folder of knowledge"])
        for path in sorted(folder.glob("*/*.yaml")):
            digest.update(str(path).encode() + path.read_bytes())
    path = cache / f"knowledge-{digest.hexdigest()[:32]}.pickle"
    try:
        known = pickle.loads(path.read_bytes())  # The user's own folder, like compiled bytecode.
    except (OSError, pickle.UnpicklingError, AttributeError, EOFError, ImportError, TypeError):
        known = None
    if isinstance(known, KnowledgeBase):
        return known
    from app.knowledge import loader

    knowledge = loader.load(folders)
    keep(path, pickle.dumps(knowledge, protocol=5))
    return knowledge
