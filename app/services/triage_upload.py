"""Triages logs that are not kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.domain.entry import Language
from app.domain.incident import StoredFile
from app.reading.unpack import Upload
from app.services.accept import logs, refuse_empty
from app.services.service import Service
from app.services.triager import Order
from app.storage.database import StorageUnavailable


def triage_upload(service: Service, uploads: Iterable[Upload], lang: Language) -> dict[str, Any]:
    """-> the verdict as JSON; nothing is left of the logs.

    Raises UnreadableLog, LogTooLarge, StorageUnavailable, CallFailed, and what reading the uploads raises.
    """
    with tempfile.TemporaryDirectory(dir=service.blobs.incoming.folder) as folder:
        paths: dict[str, Path] = {}
        for file in logs(uploads, service.settings.max_log_bytes):
            paths[file.name] = Path(folder) / str(len(paths))
            _spool(file.chunks, paths[file.name])
        files = [StoredFile(name, "", path.stat().st_size, 0) for name, path in paths.items()]
        refuse_empty(files)
        order = Order(tuple(paths.items()), sum(file.bytes for file in files), lang)
        return service.triager.run(order).verdict


def _spool(chunks: Iterator[bytes], path: Path) -> None:
    with path.open("wb") as file:
        for chunk in chunks:
            try:
                file.write(chunk)
            except OSError as error:
                raise StorageUnavailable(f"the log can't be written: {error.strerror}") from error
