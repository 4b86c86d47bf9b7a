"""What other users of the machine can open: nothing of what is kept."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings
from torchtriage.storage.backup import backup
from torchtriage.storage.file_permissions import make_private
from torchtriage.storage.schema_upgrade import upgrade


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def opened(folder: Path) -> Service:
    return open_service(Settings(data_dir=folder, workers=0), lambda *_: None, working=False)


def modes(folder: Path) -> dict[str, int]:
    """Returns the rights of the folder and of the database's files."""
    paths = [folder, *folder.glob("torchtriage.db*")]
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}


OWN = {"data": 0o700, "torchtriage.db": 0o600, "torchtriage.db-wal": 0o600, "torchtriage.db-shm": 0o600}


def test_files_made_at_a_start_belong_to_the_service_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = opened(tmp_path / "data")
    service.database.check()  # its connection stays open, and with it the files beside the database
    assert modes(tmp_path / "data") == OWN
    close_service(service)
    assert "other users" not in caplog.text


def test_open_permissions_are_removed_at_the_start_and_logged_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    data = tmp_path / "data"
    first = opened(data)
    first.database.check()
    for path in (data, *data.glob("torchtriage.db*")):
        path.chmod(0o755 if path == data else 0o644)
    second = opened(data)
    assert modes(data) == OWN
    close_service(second)
    close_service(first)
    close_service(opened(data))
    (line,) = [line for line in caplog.messages if "other users" in line]
    assert line.startswith(f"other users could read {data}, {data}/torchtriage.db, ")


def test_a_shared_folder_does_not_change_and_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o1777)
    close_service(opened(data))
    assert modes(data) == {"data": 0o1777, "torchtriage.db": 0o600}
    assert f"other users can read {data} (a folder that all share)" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user and be that user")
def test_a_folder_of_another_user_is_logged_and_does_not_prevent_the_start(caplog: pytest.LogCaptureFixture) -> None:
    data = Path(tempfile.mkdtemp())
    try:
        data.chmod(0o777)
        os.seteuid(65534)
        make_private(data, f"sqlite:///{data / 'torchtriage.db'}")
        assert f"other users can read {data} (Operation not permitted)" in caplog.text
    finally:
        os.seteuid(0)
        shutil.rmtree(data)


def test_a_copy_of_the_database_is_private(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'triage.db'}"
    upgrade(url)
    (tmp_path / "copy.db.part").write_bytes(b"what a killed copy left")
    backup(url, tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
