"""Takes packs that were installed, and entries that people approved in the page, into use while the service runs, and
those that were removed or taken back out of it."""

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
    """Has the service use the packs that are installed and the entries that are approved now -> whether they are others
    than before. What is triaged from then on names the new knowledge; groups are looked at as after an upgrade.

    Folders of the operator's own are read again too. Raises KnowledgeError where these do not load, StorageUnavailable.
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
        service.triager.use(knowledge)  # first: what is told of verdicts later must know their entries
        service.knowledge, service.folders = knowledge, KnowledgeFolders(sound.folders, knowledge, sound)
        with service.database.reading() as session:
            if fingerprint_upgrade.left(session, service.knowledge_version):
                service.settled.clear()
    log.info(
        "using the entries of %s", [path.name for path in sound.folders if path.parent in homes] or "no pack or draft"
    )
    return True
