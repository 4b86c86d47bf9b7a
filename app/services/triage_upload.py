"""Triages logs that are not kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from app.domain.entry import Language
from app.domain.incident import StoredFile
from app.domain.verdict import Verdict
from app.reading.sources import LogFile, Run
from app.reading.unpack import Upload
from app.services.accept import logs, refuse_empty
from app.services.service import Service
from app.storage.database import StorageUnavailable

_CHUNK = 1 << 20


def triage_upload(service: Service, uploads: Iterable[Upload], lang: Language) -> Verdict:
    """-> the verdict; nothing is left of the logs.

    Raises UnreadableLog, LogTooLarge, StorageUnavailable, and what reading the uploads raises.
    """
    with tempfile.TemporaryDirectory(dir=service.blobs.incoming.folder) as folder:
        paths: dict[str, Path] = {}
        for file in logs(uploads, service.settings.max_log_bytes):
            paths[file.name] = Path(folder) / str(len(paths))
            _spool(file.chunks, paths[file.name])
        refuse_empty([StoredFile(name, "", path.stat().st_size, 0) for name, path in paths.items()])
        return service.engine.triage(_run(paths), lang)


def _spool(chunks: Iterator[bytes], path: Path) -> None:
    with path.open("wb") as file:
        for chunk in chunks:
            try:
                file.write(chunk)
            except OSError as error:
                raise StorageUnavailable(f"the log can't be written: {error.strerror}") from error


def _run(paths: dict[str, Path]) -> Run:
    def chunks(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def files() -> Iterator[LogFile]:
        for name in sorted(paths):
            yield LogFile(name, partial(chunks, paths[name]))

    name = next(iter(paths)) if len(paths) == 1 else f"{len(paths)} files"
    return Run(name, files, several=len(paths) > 1)
