"""Logs and uploads for tests of the services."""

from __future__ import annotations

import dataclasses
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident

OUT_OF_MEMORY = b"""\
step 1 loss 2.5
Traceback (most recent call last):
  File "/home/ann/train.py", line 42, in <module>
    loss = model(batch)
  File "/home/ann/model.py", line 7, in forward
    return self.big(x)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of \
which 1.10 GiB is free.
"""
HEALTHY = b"step 1 loss 2.5\nstep 2 loss 2.4\ntraining finished\n"


def upload(*chunks: bytes, name: str = "log") -> Upload:
    return Upload(name, iter(chunks))


def triaged(service: Service, log: bytes, job: str) -> str:
    """Returns the id of an incident whose triage is done."""
    incident_id = accept(service, Job(job_id=job), [upload(log)]).incident_id
    triage_incident(service, incident_id)
    return incident_id


def with_triager(service: Service, run: Callable[..., Any]) -> Service:
    """Returns the same service with another triager."""
    triager: Any = SimpleNamespace(run=run)
    return dataclasses.replace(service, triager=triager)


def tar(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def kept(service: Service) -> list[Path]:
    """Returns every file of the log store, those under way included."""
    root = service.blobs.incoming.folder.parents[1]
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name != "lock")
