"""Takes the entries that people approved in the page into use while the service runs, and those that they took back
out of it."""

from __future__ import annotations

import logging
import threading

from torchtriage.knowledge.cache import load
from torchtriage.services.knowledge_reload import KnowledgeFolders
from torchtriage.services.learned_folder import home_of, learned_folder, load_with_learned
from torchtriage.services.service import Service
from torchtriage.storage import drafts, fingerprint_upgrade

log = logging.getLogger(__name__)
_adopting = threading.Lock()


def adopt_learned(service: Service) -> bool:
    """Has the service use the entries that are approved now -> whether they are others than before. What is triaged
    from then on names the new knowledge; groups are looked at as after an upgrade.

    Folders of the operator's own are read again too. Raises KnowledgeError where these do not load, StorageUnavailable.
    """
    with _adopting:
        with service.database.reading() as session:
            wanted = learned_folder(service.settings, drafts.applied(session))
        if wanted == next((path for path in service.folders.paths if path.parent == home_of(service.settings)), None):
            return False
        folders, knowledge = load_with_learned(service.settings, service.database, load)
        if knowledge.digest == service.knowledge.digest:
            return False
        service.triager.use(knowledge)  # first: what is told of verdicts later must know their entries
        service.knowledge, service.folders = knowledge, KnowledgeFolders(folders, knowledge)
        with service.database.reading() as session:
            if fingerprint_upgrade.left(session, service.knowledge_version):
                service.settled.clear()
    log.info("using the entries that were approved in the page: %s", wanted or "none")
    return True
