"""Triages logs that are not kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.domain.entry import Language
from app.domain.incident import StoredFile
from app.errors import StorageUnavailable
from app.reading.unpack import Upload
from app.services.accept import logs, refuse_empty
from app.services.service import Service
from app.services.triager import Order


def triage_upload(service: Service, uploads: Iterable[Upload], lang: Language) -> dict[str, Any]:
    """-> the verdict as JSON; nothing is left of the logs. Raises what `spool` and `triage_spooled` do."""
    return triage_spooled(service, *spool(service, uploads, lang))


def spool(service: Service, uploads: Iterable[Upload], lang: Language) -> tuple[Order, Path]:
    """-> what is to be triaged, and the folder that its logs were unpacked to, for `triage_spooled`.

    Raises UnreadableLog, LogTooLarge, StorageUnavailable, and what reading the uploads raises; nothing is left then.
    """
    folder = Path(tempfile.mkdtemp(dir=service.blobs.incoming.folder))
    try:
        paths: dict[str, Path] = {}
        for file in logs(uploads, service.settings.max_log_bytes):
            paths[file.name] = folder / str(len(paths))
            _write(file.chunks, paths[file.name])
        files = [StoredFile(name, "", path.stat().st_size, 0) for name, path in paths.items()]
        refuse_empty(files)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Order(tuple(paths.items()), sum(file.bytes for file in files), lang), folder


def triage_spooled(service: Service, order: Order, folder: Path) -> dict[str, Any]:
    """-> the verdict as JSON; removes the folder. Raises UnreadableLog, CallFailed, Interrupted."""
    try:
        return service.triager.run(order).verdict
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(chunks: Iterator[bytes], path: Path) -> None:
    with path.open("wb") as file:
        for chunk in chunks:
            try:
                file.write(chunk)
            except OSError as error:
                raise StorageUnavailable(f"the log can't be written: {error.strerror}") from error
