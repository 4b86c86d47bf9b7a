"""Copies the entries that people wrote on the page, and that are in use, from the database to a folder.

The folder's name is a digest of its content, and it is complete before it is read. So a server never sees half of it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

from torchtriage.domain.draft import StoredDraft
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.added_cases import file_of
from torchtriage.knowledge.drafted_entry import yaml_of
from torchtriage.knowledge.folders import home_of_packs, packs_in
from torchtriage.knowledge.lenient_loader import Load, LoadedFolders, load_folders
from torchtriage.settings import Settings
from torchtriage.storage import drafts
from torchtriage.storage.database import Database

log = logging.getLogger(__name__)


def load_with_learned(settings: Settings, database: Database, load: Load) -> LoadedFolders:
    """Loads the knowledge base from all folders, including packs and the entries written on the page.

    Files of packs or of these entries that this version cannot load are omitted and logged. Raises KnowledgeError if
    the operator's own folders cannot be loaded, and StorageUnavailable.
    """
    packs = packs_in(home_of_packs(settings.data_dir))
    with database.reading() as session:
        learned = learned_folder(settings, drafts.applied(session))
    sound = load_folders(partial(_ordered, settings), [*packs, *([learned] if learned else [])], load)
    for line in sound.problems:
        log.error("%s", line)
    return sound


def _ordered(settings: Settings, added: Sequence[Path]) -> list[Path]:
    """Returns the folders in order: built-in, packs, the operator's own, and the entries written on the page."""
    packs = [folder for folder in added if folder.parent == home_of_packs(settings.data_dir)]
    return [BUILT_IN, *packs, *settings.knowledge_dirs, *(folder for folder in added if folder not in packs)]


def home_of(settings: Settings) -> Path:
    """Returns the parent of those folders."""
    return settings.data_dir / "learned"


def learned_folder(settings: Settings, applied: Sequence[StoredDraft]) -> Path | None:
    """Returns the folder with the files of these entries, or None if there are no entries."""
    if not applied:
        return None
    files = {file_of(one.draft.entry): yaml_of(one.draft, one.expect) for one in applied}
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
        except OSError:  # another process has made the same folder
            shutil.rmtree(made)
    return place
