import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs import text, traceback
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import kept, load
from torchtriage.knowledge.loader import load as parse

LOG = text(traceback("KeyError: 'image'", prefix="[rank3]: "))


def start(home: Path, log: Path) -> subprocess.Popen[bytes]:
    """Returns a real `torchtriage triage` whose cache lies under `home`."""
    command = [sys.executable, "-m", "torchtriage.cli.main", "triage", "--json", str(log)]
    environment = os.environ | {"XDG_CACHE_HOME": str(home)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def entry(process: subprocess.Popen[bytes]) -> str:
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, b"")
    named: str = json.loads(output)["root_cause"]["entry"]
    return named


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_bytes(LOG)
    return path


@pytest.mark.slow
def test_parallel_starts_share_an_empty_cache(tmp_path: Path, log: Path) -> None:
    processes = [start(tmp_path / "home", log) for _ in range(2)]
    assert [entry(process) for process in processes] == ["usage.python-error"] * 2
    names = sorted(path.name for path in (tmp_path / "home" / "torchtriage").iterdir())
    # Patterns of raw blocks and of lines, of the environment's signs, of facts of lines, of the words of this field and
    # of devices, and of spelled secrets.
    assert [name.partition("-")[0] for name in names] == ["knowledge", *["patterns"] * 10, "required", "secrets"]
    assert all(name.endswith((".json", ".pickle", ".hs")) for name in names)
    assert entry(start(tmp_path / "home", log)) == "usage.python-error"
    assert sorted(path.name for path in (tmp_path / "home" / "torchtriage").iterdir()) == names


@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_enough(tmp_path: Path, log: Path) -> None:
    home = tmp_path / "file"  # Root may write where a mode forbids it, but nobody makes a folder inside of a file.
    home.write_bytes(b"")
    assert entry(start(home, log)) == "usage.python-error"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small knowledge base."""
    copied = tmp_path / "knowledge"
    shutil.copytree(BUILT_IN / "dataloader", copied / "dataloader")
    return copied


def test_what_is_kept_equals_what_was_parsed(tmp_path: Path, folder: Path) -> None:
    cache = tmp_path / "cache"
    assert load([folder], cache) == load([folder], cache) == parse([folder])


@pytest.fixture
def knowledge(folder: Path) -> KnowledgeBase:
    return parse([folder])


@pytest.mark.parametrize("damage", [b"", b"junk", b"garbage\n", b"\x80\x05K\x01.", b"h\xff."])
def test_a_damaged_file_is_made_again(tmp_path: Path, knowledge: KnowledgeBase, damage: bytes) -> None:
    path = tmp_path / "cache" / "knowledge-1.pickle"
    for _ in range(2):
        assert kept(path, KnowledgeBase, lambda: knowledge) == knowledge
        assert len(path.read_bytes()) > len(damage)
        path.write_bytes(damage)


class Command:
    """What somebody else would like us to run."""

    def __init__(self, ran: Path) -> None:
        self._ran = ran

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self._ran}",)


def plant(path: Path, ran: Path) -> bytes:
    """Puts a command where the parsed knowledge lies -> the file's content."""
    body = pickle.dumps(Command(ran))
    path.write_bytes(hashlib.sha256(body).digest() + body)
    return path.read_bytes()


def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 65534, -1)


@pytest.mark.parametrize(
    "expose",
    [
        lambda path: give_away(path),
        lambda path: give_away(path.parent),
        lambda path: path.chmod(0o620),
        lambda path: path.chmod(0o602),
        lambda path: path.parent.chmod(0o770),
        lambda path: path.parent.chmod(0o1777),
        lambda path: path.symlink_to(path.rename(path.parent.parent / "elsewhere")),
    ],
    ids=["file of another", "folder of another", "group's file", "anyone's file", "group's folder", "anyone's", "link"],
)
def test_what_another_user_can_have_planted_is_not_run(
    tmp_path: Path, knowledge: KnowledgeBase, expose: Callable[[Path], None]
) -> None:
    path, ran = tmp_path / "cache" / "knowledge-1.pickle", tmp_path / "ran"
    assert kept(path, KnowledgeBase, lambda: knowledge) == knowledge
    plant(path, ran)
    assert kept(path, KnowledgeBase, lambda: knowledge) == knowledge
    assert ran.exists()  # what is ours alone is believed
    ran.unlink()
    planted = plant(path, ran)
    expose(path)
    assert kept(path, KnowledgeBase, lambda: knowledge) == knowledge
    assert not ran.exists()
    folder = path.parent.stat()
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o022:
        assert path.read_bytes() == planted  # nothing is written there either
