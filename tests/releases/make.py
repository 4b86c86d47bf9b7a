"""Makes what a release left behind: a data directory with its database and logs, packed into one file.

It runs with the code of the release, so that later ones can be held to reading it. From the repository's root:

    git worktree add /tmp/release COMMIT        # 0.1.0: db06a81, 0.2.0: ba4c0c4
    cp tests/releases/make.py /tmp/release/
    cd /tmp/release && PYTHONPATH=app:. python make.py NAME.tar.xz

What people decided is in CASES; `tests/services/test_upgrade_groups.py` looks for it after today's version has opened it.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from torchtriage.domain.group import GroupChange, GroupStatus
from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services import groups, incidents
from torchtriage.services.accept import accept
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

START = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
_OUT_OF_MEMORY = """\
step 1 loss 2.5
Traceback (most recent call last):
  File "/home/{user}/train.py", line 42, in <module>
    loss = model(batch)
  File "/home/{user}/{file}", line {line}, in {function}
    return self.big(x)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}. GPU 0 has a total capacity of 79.15 GiB of \
which 1.10 GiB is free.
"""
_UNEXPLAINED = """\
Traceback (most recent call last):
  File "/home/{user}/train.py", line {line}, in <module>
    frobnicate(batch)
RuntimeError: the frobnicator of layer 7 is out of tune
"""


def log(number: int, place: str, size: str = "2.00 GiB") -> bytes:
    """Returns a log that differs from others of its place as those of one cause do; `place` is a file and a function."""
    file, _, function = place.partition(" ")
    text = _OUT_OF_MEMORY if function else _UNEXPLAINED
    return text.format(user="ann", line=number, file=file, function=function, size=size).encode()


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(Settings(data_dir=Path(folder), workers=0), lambda *_: None, working=False)
        _fill(service)
        close_service(service)
        with tarfile.open(target, "w:xz") as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and path.name != "lock":
                    archive.add(path, path.relative_to(folder).as_posix(), filter=_nameless)


def _fill(service: Service) -> None:
    ignored, *_ = (_come(service, n, "model.py forward", "512.00 MiB" if n % 6 == 5 else "2.00 GiB") for n in range(20))
    kept, *_ = (_come(service, n, "text.py encode") for n in (30, 31, 32))
    joined, *_ = (_come(service, n, "text.py decode") for n in (40, 41))
    parted, *_ = (_come(service, n, "optim.py step", cluster="blue" if n % 2 else "green") for n in range(50, 55))
    _come(service, 60, "eval.py evaluate")
    muted, *_ = (_come(service, n, "odd") for n in (70, 71))
    known = GroupChange(GroupStatus.IGNORED, "ann", "known: the big batch of the nightly run")
    groups.change_group(service, ignored, known, "ann")
    groups.change_group(service, kept, GroupChange(owner="bo", note="both are the tokenizer's"), "bo")
    groups.merge_groups(service, kept, [joined], "bo")
    blue = groups.split_group(service, parted, "cluster", "blue", "chen").id
    groups.change_group(service, blue, GroupChange(GroupStatus.IGNORED, note="blue has small cards"), "chen")
    groups.change_group(service, muted, GroupChange(mute=timedelta(days=36500)), "dara")


def _come(service: Service, number: int, place: str, size: str = "2.00 GiB", cluster: str = "green") -> str:
    """Returns the group of a new incident."""
    upload = Upload("run.log", iter([log(number, place, size)]))
    job = Job(job_id=str(number), user="ann", cluster=cluster)
    incident = accept(service, job, [upload], START + timedelta(minutes=number)).incident_id
    triage_incident(service, incident)
    group = incidents.read_incident(service, incident).group
    assert group is not None
    return group.id


def _nameless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what tells of the machine that made it."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
