"""Triages logs without storing them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from torchtriage.domain.entry import Language
from torchtriage.domain.incident import StoredFile
from torchtriage.domain.verdict import Verdict
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import logs, refuse_empty
from torchtriage.services.engine_runner import Order
from torchtriage.services.service import Service
from torchtriage.storage import blob_writer


def triage_upload(service: Service, uploads: Iterable[Upload], lang: Language) -> Verdict:
    """Returns the verdict. Nothing of the logs is kept. Raises the errors of `spool` and `triage_spooled`."""
    return triage_spooled(service, *spool(service, uploads, lang))


def spool(service: Service, uploads: Iterable[Upload], lang: Language) -> tuple[Order, AbstractContextManager[Any]]:
    """Unpacks the logs. Returns the order and the temporary folder, both for `triage_spooled`.

    Raises UnreadableLog, LogTooLarge, StorageUnavailable and the errors of reading the uploads; then nothing is left.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(service.blobs.folder())
        paths: dict[str, Path] = {}
        files: list[StoredFile] = []
        for file in logs(uploads, service.settings.max_log_bytes):
            paths[file.name] = folder / str(len(paths))
            files.append(StoredFile(file.name, "", blob_writer.spool(file.chunks, paths[file.name]), 0))
        refuse_empty(files)
        return Order(tuple(paths.items()), sum(file.bytes for file in files), lang), stack.pop_all()


def triage_spooled(service: Service, order: Order, folder: AbstractContextManager[Any]) -> Verdict:
    """Returns the verdict and removes the folder. Raises UnreadableLog, CallFailed and Interrupted."""
    with folder:
        return service.triager.run(order).verdict
