"""`torchtriage kb pack`: what is built, installed, listed and removed, and what a broken pack leaves as it was."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.drafts import SAYS, SOUND, UNKNOWN
from tests.services.test_case_drafts import CASE, LOCKED
from tests.services.test_case_drafts import ENTRY as ENTRY_OF_CASE
from torchtriage.cli.main import main
from torchtriage.domain.entry import Text
from torchtriage.knowledge.drafted_entry import yaml_of

ENTRY = yaml_of(SOUND, Text(SAYS, "/data/a.idx 的分片 3 只有 3005 条记录。"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("TRIAGE_KNOWLEDGE_DIRS", raising=False)
    return tmp_path / "data" / "packs"


def source(folder: Path, text: str = ENTRY) -> Path:
    (folder / "ourdata").mkdir(parents=True)
    (folder / "ourdata" / "shard-too-short.yaml").write_text(text)
    return folder


def built(folder: Path, version: str = "1.0.0") -> Path:
    made = folder / f"ours-{version}.tar.gz"
    entries = folder / "entries"
    if not entries.exists():
        source(entries)
    assert main(["kb", "pack", "build", str(entries), "--name", "ours", "--version", version, "-o", str(made)]) == 0
    return made


def archive(folder: Path, files: dict[str, bytes], link: str = "") -> Path:
    made = folder / "made.tar.gz"
    with tarfile.open(made, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo("ourdata/link.yaml")
            member.type, member.linkname = tarfile.SYMTYPE, link
            tar.addfile(member)
    return made


def state(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*")) if home.exists() else []


def test_a_pack_explains_until_it_is_removed(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.log"
    log.write_text(UNKNOWN)
    made = built(tmp_path)
    first = made.read_bytes()
    assert built(tmp_path).read_bytes() == first
    assert main(["kb", "pack", "install", str(made)]) == 0
    assert "installed ours 1.0.0, 1 entry, sha256:" in capsys.readouterr().out
    assert main(["triage", str(log)]) == 0
    assert "(pack ours 1.0.0)" in capsys.readouterr().out
    assert main(["triage", str(log), "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["root_cause"]["entry"] == SOUND.entry
    assert verdict["answer"]["says"].startswith(SAYS)
    assert main(["kb", "show", SOUND.entry]) == 0
    assert "\npack ours 1.0.0\n" in capsys.readouterr().out
    assert main(["kb", "show", SOUND.entry, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pack"] == "ours 1.0.0"
    assert main(["kb", "pack", "install", str(built(tmp_path, "1.1.0"))]) == 0
    capsys.readouterr()
    assert main(["kb", "pack", "list", "--json"]) == 0
    (pack,) = json.loads(capsys.readouterr().out)
    assert (pack["name"], pack["version"], pack["entries"]) == ("ours", "1.1.0", [SOUND.entry])
    assert main(["kb", "pack", "remove", "ours"]) == 0
    capsys.readouterr()
    assert main(["triage", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "unexplained"
    assert state(home) == [".lock"]
    assert main(["kb", "pack", "remove", "ours"]) != 0
    assert "no pack ours is installed" in capsys.readouterr().err


CASE_FILE = "storage/output-path+frobnicator-lock.yaml"
CASE_TEXT = yaml_of(CASE, Text(CASE.says_en, CASE.says_zh))
CASE_ID = f"{ENTRY_OF_CASE}/frobnicator-lock"


def with_case(folder: Path, files: dict[str, str]) -> Path:
    """Returns a folder of these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
def test_a_pack_adds_a_case_to_an_entry_that_ships(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, made = tmp_path / "run.log", tmp_path / "ours.tar.gz"
    log.write_bytes(LOCKED)
    entries = source(with_case(tmp_path / "entries", {CASE_FILE: CASE_TEXT}))
    build = ["kb", "pack", "build", str(entries), "--name", "ours", "--version", "1.0.0", "-o", str(made), "--json"]
    assert main(build) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["entries"], told["cases"]) == ([SOUND.entry], [CASE_ID])
    assert main(["kb", "pack", "install", str(made)]) == 0
    assert "installed ours 1.0.0, 1 entry, 1 case, sha256:" in capsys.readouterr().out
    assert main(["kb", "pack", "list"]) == 0
    assert f"\n  {SOUND.entry}, {CASE_ID}\n" in capsys.readouterr().out
    assert main(["triage", str(log)]) == 0
    assert f"{CASE_ID} (pack ours 1.0.0)" in capsys.readouterr().out
    assert main(["triage", str(log), "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["root_cause"]["entry"], verdict["root_cause"]["pack"]) == (ENTRY_OF_CASE, None)
    assert (verdict["answer"]["case"], verdict["answer"]["pack"]) == ("frobnicator-lock", "ours 1.0.0")
    assert main(["kb", "show", ENTRY_OF_CASE]) == 0
    assert capsys.readouterr().out.count("pack ours 1.0.0") == 1
    assert main(["kb", "pack", "remove", "ours"]) == 0
    capsys.readouterr()
    assert main(["triage", str(log), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["answer"]
    assert (answer["case"], answer["pack"]) == ("exists-race", None)


OF_ENTRY = CASE_TEXT.replace(f"adds_to: {ENTRY_OF_CASE}", f"adds_to: {SOUND.entry}")
BROAD_CASE = yaml_of(replace(CASE, sign=r"FileExistsError: \[Errno 17\]"), Text(CASE.says_en, CASE.says_zh))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"storage/output-path.yaml": CASE_TEXT}, "the id storage.output-path is taken by a built-in entry"),
        ({"storage/new.yaml": CASE_TEXT}, f"storage/new.yaml:1: in a pack, a file must add exactly one case and have the name {CASE_FILE}"),
        ({"storage/output-path+lock.yaml": CASE_TEXT}, f"have the name {CASE_FILE}"),
        ({"storage/nowhere+x.yaml": CASE_TEXT.replace(ENTRY_OF_CASE, "storage.nowhere")}, "there is no such entry"),
        (
            {"storage/output-path+exists-race.yaml": CASE_TEXT.replace("id: frobnicator-lock", "id: exists-race")},
            "the id storage.output-path/exists-race is taken by a case of storage.output-path",
        ),
        (
            {"ourdata/shard-too-short.yaml": ENTRY, "ourdata/shard-too-short+frobnicator-lock.yaml": OF_ENTRY},
            "the entry is in this pack; add the case to its file",
        ),
        ({CASE_FILE: CASE_TEXT.replace("File exists: ''frob", "File exists: ''fob")}, f"pack ours: {CASE_FILE}:"),
        ({CASE_FILE: BROAD_CASE}, "another case would lose its example: exists-race"),
        ({CASE_FILE: CASE_TEXT.replace("frobnicator.out", "frobnicator.lock")}, "the sign matches it"),
    ],
)  # fmt: skip
def test_a_case_that_does_not_hold_makes_no_pack(
    files: dict[str, str], reason: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = with_case(tmp_path / "entries", files)
    assert main(["kb", "pack", "build", str(entries), "--name", "ours", "--version", "1"]) != 0
    assert reason in capsys.readouterr().err


def test_no_case_is_added_to_the_entry_of_another_pack(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "pack", "install", str(built(tmp_path))]) == 0
    files = {"ourdata/shard-too-short+frobnicator-lock.yaml": OF_ENTRY}
    files["pack.json"] = manifest(OF_ENTRY.encode(), "theirs", next(iter(files))).decode()
    capsys.readouterr()
    assert main(["kb", "pack", "install", str(with_case(tmp_path / "theirs", files))]) != 0
    assert f"{SOUND.entry} is in pack ours 1.0.0, which may be removed" in capsys.readouterr().err


def test_a_folder_is_installed_too(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tarfile.open(built(tmp_path)) as tar:
        tar.extractall(tmp_path, filter="data")
    assert main(["kb", "pack", "install", str(tmp_path / "ours-1.0.0")]) == 0
    assert main(["kb", "pack", "install", str(tmp_path / "ours-1.0.0")]) == 0
    assert [name for name in state(home) if name.endswith(".yaml")] != []


def manifest(text: bytes, name: str = "ours", path: str = "ourdata/shard-too-short.yaml") -> bytes:
    digest = hashlib.sha256(path.encode() + b"\0" + str(len(text)).encode() + b"\0" + text).hexdigest()
    return json.dumps({"name": name, "version": "2.0.0", "digest": f"sha256:{digest}"}).encode()


SIGNLESS = ENTRY.replace("ShardTooShort: shard (?P<shard>", "ShardTooLong: shard (?P<shard>")
BROKEN: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no manifest": (lambda at: archive(at, {"ourdata/shard-too-short.yaml": ENTRY.encode()}), "it has no pack.json"),
    "other digest": (
        lambda at: archive(at, {"pack.json": manifest(b"x"), "ourdata/shard-too-short.yaml": ENTRY.encode()}),
        "do not fit the digest",
    ),
    "unproved sign": (
        lambda at: archive(
            at, {"pack.json": manifest(SIGNLESS.encode()), "ourdata/shard-too-short.yaml": SIGNLESS.encode()}
        ),
        "pack ours: ourdata/shard-too-short.yaml",
    ),
    "no yaml": (
        lambda at: archive(at, {"pack.json": manifest(b"a: ["), "ourdata/shard-too-short.yaml": b"a: ["}),
        "ourdata/shard-too-short.yaml:2",
    ),
    "way out": (
        lambda at: archive(at, {"pack.json": manifest(b"x"), "../../etc/cron.txt": b"x"}),
        "does not belong in a pack",
    ),
    "bad name": (
        lambda at: archive(
            at, {"pack.json": manifest(ENTRY.encode(), "../up"), "ourdata/shard-too-short.yaml": ENTRY.encode()}
        ),
        "is not a valid pack name",
    ),
    "manifest of a list": (lambda at: archive(at, {"pack.json": b"[1]"}), "needs name, version and digest"),
    "no archive": (lambda at: (at / "a.tar.gz").write_text("hello") and at / "a.tar.gz", "not an archive"),  # type: ignore[dict-item,return-value]
    "not there": (lambda at: at / "nowhere.tar.gz", "No such file"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_pack_changes_nothing(
    name: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "pack", "install", str(built(tmp_path))]) == 0
    before = state(home)
    capsys.readouterr()
    make, reason = BROKEN[name]
    assert main(["kb", "pack", "install", str(make(tmp_path))]) != 0
    assert reason in capsys.readouterr().err
    assert state(home) == before


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://127.0.0.1/ours.tar.gz", "cannot download ours.tar.gz: 127.0.0.1 resolves to a non-public address"),
        ("http://example.org/ours.tar.gz", "only https:// URLs are allowed"),
        ("file:///etc/passwd", "it must begin with https://"),
    ],
)
def test_packs_come_from_public_places_over_https(
    url: str, reason: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "pack", "install", url]) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count("\n") == 1
    assert state(home) == []


@pytest.mark.slow
def test_an_id_that_is_taken_is_refused_in_one_line(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "pack", "install", str(built(tmp_path))]) == 0
    other = archive(
        tmp_path,
        {"pack.json": manifest(ENTRY.encode(), "theirs"), "ourdata/shard-too-short.yaml": ENTRY.encode()},
    )
    before = state(home)
    capsys.readouterr()
    assert main(["kb", "pack", "install", str(other)]) != 0
    told = capsys.readouterr().err
    assert f"pack theirs: the id {SOUND.entry} is taken by pack ours 1.0.0; rename it in the pack" in told
    assert told.count("\n") == 1
    assert state(home) == before


def test_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("key: 1")
    made = archive(
        tmp_path,
        {"pack.json": manifest(ENTRY.encode()), "ourdata/shard-too-short.yaml": ENTRY.encode()},
        link=str(secret),
    )
    assert main(["kb", "pack", "install", str(made)]) == 0
    assert not [name for name in state(home) if "link" in name]


def signed(secret: Ed25519PrivateKey, content: bytes, number: bytes = b"12345678") -> str:
    own = secret.sign(hashlib.blake2b(content).digest())
    comment = "timestamp:1"
    lines = [base64.b64encode(b"ED" + number + own), base64.b64encode(secret.sign(own + comment.encode()))]
    return f"untrusted comment: x\n{lines[0].decode()}\ntrusted comment: {comment}\n{lines[1].decode()}\n"


def test_a_signature_is_checked_with_the_key(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret, made = Ed25519PrivateKey.generate(), built(tmp_path)
    public = secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    key = base64.b64encode(b"Ed" + b"12345678" + public).decode()
    install = ["kb", "pack", "install", str(made), "--key", key]
    signature = Path(f"{made}.minisig")
    assert main(install) != 0
    assert "minisig" in capsys.readouterr().err
    good = signed(secret, made.read_bytes())
    for text, reason in (
        (signed(secret, b"other"), "the signature is wrong"),
        (signed(Ed25519PrivateKey.generate(), made.read_bytes()), "the signature is wrong"),
        (signed(secret, made.read_bytes(), b"87654321"), "another key"),
        (good.replace("timestamp:1", "timestamp:2"), "the signature is wrong"),
        ("hello", "not in the format of minisign"),
    ):
        signature.write_text(text)
        assert main(install) == 2
        assert reason in capsys.readouterr().err
    assert state(home) == []
    signature.write_text(good)
    (tmp_path / "key.pub").write_text(f"untrusted comment: minisign public key\n{key}\n")
    assert main([*install[:-1], str(tmp_path / "key.pub")]) == 0


def test_the_signature_that_minisign_itself_made_is_taken() -> None:
    from torchtriage.knowledge.minisign import verify

    verify(
        b"test",
        "untrusted comment: signature from minisign secret key\n"
        "RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n"
        "trusted comment: timestamp:1555779966\tfile:test\n"
        "QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n",
        "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
    )


def test_a_pack_that_does_not_load_any_more_stops_no_command(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text(UNKNOWN)
    theirs = home / "theirs@1-0"
    (theirs / "x").mkdir(parents=True)
    (theirs / "x" / "y.yaml").write_text("id: [")
    (theirs / "pack.json").write_text(json.dumps({"name": "theirs", "version": "1"}))
    assert main(["kb", "pack", "install", str(built(tmp_path))]) == 0  # another pack's fault is not its own
    place = next(home.glob("ours@*"))
    (place / "process").mkdir()
    (place / "process" / "gone+later.yaml").write_text("adds_to: process.gone\nname: later\n")
    capsys.readouterr()
    assert main(["triage", "--json", str(log)]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["root_cause"]["entry"] == SOUND.entry  # what loads of the pack still explains
    warnings = sorted(told.err.splitlines())
    assert [line.partition(": skipped, because it does not load: ")[0] for line in warnings] == [
        "torchtriage: warning: pack ours 1.0.0",
        "torchtriage: warning: pack theirs 1",
    ]
    assert "process/gone+later.yaml:1: " in warnings[0]
    assert "x/y.yaml:" in warnings[1]
    assert main(["kb", "check", SOUND.entry]) == 0
    assert main(["kb", "pack", "remove", "theirs"]) == 0
    capsys.readouterr()
    assert main(["kb", "show", SOUND.entry]) == 0
    assert "theirs" not in capsys.readouterr().err


def test_own_folders_that_do_not_load_stop_a_command(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text(UNKNOWN)
    assert main(["kb", "pack", "install", str(built(tmp_path))]) == 0
    own = source(tmp_path / "own", "id: [")
    monkeypatch.setenv("TRIAGE_KNOWLEDGE_DIRS", str(own))
    assert main(["triage", str(log)]) == 1
    assert "ourdata/shard-too-short.yaml:2: " in capsys.readouterr().err
