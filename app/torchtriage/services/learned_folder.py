"""The entries that people wrote in the page and that are in use: rows of the database in, a folder of files out.

The database holds them; the folder is a copy for this process, named by its content and written before it is read, so
that a server never sees half of it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

from torchtriage.domain.draft import StoredDraft
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import cache_folder
from torchtriage.knowledge.drafted_entry import yaml_of
from torchtriage.settings import Settings
from torchtriage.storage import drafts
from torchtriage.storage.database import Database

log = logging.getLogger(__name__)
Load = Callable[[Sequence[Path], Path], KnowledgeBase]


def load_with_learned(settings: Settings, database: Database, load: Load) -> tuple[list[Path], KnowledgeBase]:
    """-> the folders, and the knowledge base of all, those entries included that people wrote here.

    Where these do not load with this version, the others do, and the log says so. Raises KnowledgeError where the
    operator's own folders do not load, StorageUnavailable.
    """
    folders = [BUILT_IN, *settings.knowledge_dirs]
    with database.reading() as session:
        learned = learned_folder(settings, drafts.applied(session))
    if learned is not None:
        try:
            return [*folders, learned], load([*folders, learned], cache_folder())
        except KnowledgeError as error:
            broken = error
        base = load(folders, cache_folder())
        log.error("cannot load the entries that were written in the page, going on without them: %s", broken)
        return folders, base
    return folders, load(folders, cache_folder())


def home_of(settings: Settings) -> Path:
    """-> where those folders are."""
    return settings.data_dir / "learned"


def learned_folder(settings: Settings, applied: Sequence[StoredDraft]) -> Path | None:
    """-> the folder with the files of these entries; None where there are none."""
    if not applied:
        return None
    files = {f"{one.draft.entry.replace('.', '/', 1)}.yaml": yaml_of(one.draft, one.expect) for one in applied}
    digest = hashlib.sha256("\0".join(part for item in sorted(files.items()) for part in item).encode()).hexdigest()
    home = home_of(settings)
    place = home / digest[:16]
    if not place.is_dir():
        made = home / f".{uuid4().hex}"
        for name, text in files.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (made / name).write_text(text, encoding="utf-8")
        try:
            os.rename(made, place)
        except OSError:  # another process made the same one
            shutil.rmtree(made)
    return place
