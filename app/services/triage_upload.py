"""Triages logs that are not kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.domain.entry import Language
from app.domain.incident import StoredFile
from app.reading.unpack import Upload
from app.services.accept import logs, refuse_empty
from app.services.service import Service
from app.services.triager import Order
from app.storage.blob_writer import spool


def triage_upload(service: Service, uploads: Iterable[Upload], lang: Language) -> dict[str, Any]:
    """-> the verdict as JSON; nothing is left of the logs.

    Raises UnreadableLog, LogTooLarge, StorageUnavailable, CallFailed, and what reading the uploads raises.
    """
    with service.blobs.folder() as folder:
        paths: dict[str, Path] = {}
        files: list[StoredFile] = []
        for file in logs(uploads, service.settings.max_log_bytes):
            paths[file.name] = folder / str(len(paths))
            files.append(StoredFile(file.name, "", spool(file.chunks, paths[file.name]), 0))
        refuse_empty(files)
        order = Order(tuple(paths.items()), sum(file.bytes for file in files), lang)
        return service.triager.run(order).verdict
