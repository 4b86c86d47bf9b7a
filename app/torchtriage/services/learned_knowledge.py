"""Starts and stops using packs and approved entries while the service runs."""

from __future__ import annotations

import logging
import threading

from torchtriage.knowledge.cache import load
from torchtriage.knowledge.folders import home_of_packs, packs_in
from torchtriage.services.knowledge_reload import KnowledgeFolders
from torchtriage.services.learned_folder import home_of, learned_folder, load_with_learned
from torchtriage.services.service import Service
from torchtriage.storage import drafts, fingerprint_upgrade

log = logging.getLogger(__name__)
_adopting = threading.Lock()


def adopt_learned(service: Service) -> bool:
    """Makes the service use the packs and approved entries of now, and returns whether that changed anything. Later
    verdicts name the new knowledge, and groups are checked as after an upgrade.

    Reads the operator's own folders again, too. Raises KnowledgeError if they cannot be loaded, and StorageUnavailable.
    """
    with _adopting:
        with service.database.reading() as session:
            wanted = learned_folder(service.settings, drafts.applied(session))
        packs = home_of_packs(service.settings.data_dir)
        homes = (packs, home_of(service.settings))
        used = [path for path in service.folders.paths if path.parent in homes]
        if used == [*packs_in(packs), *([wanted] if wanted else [])]:
            return False
        sound = load_with_learned(service.settings, service.database, load)
        knowledge = sound.knowledge
        if knowledge.digest == service.knowledge.digest:
            return False
        service.triager.use(knowledge)  # first, because the service must know the entries of all later verdicts
        service.knowledge, service.folders = knowledge, KnowledgeFolders(sound.folders, knowledge, sound)
        with service.database.reading() as session:
            if fingerprint_upgrade.left(session, service.knowledge_version):
                service.settled.clear()
    log.info(
        "using the entries of %s", [path.name for path in sound.folders if path.parent in homes] or "no pack or draft"
    )
    return True
