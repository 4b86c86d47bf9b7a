"""Packs: archives of entries with a name, a version and a digest. Builds packs, and installs them as knowledge
folders."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from torchtriage.domain.byte_sizes import limit_text
from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.errors import BadInput, KnowledgeError, NotFound
from torchtriage.knowledge import BUILT_IN, checks, loader
from torchtriage.knowledge.added_cases import file_of, is_in_use, split_id
from torchtriage.knowledge.cache import cache_folder
from torchtriage.knowledge.folders import MANIFEST, packs_in
from torchtriage.knowledge.lenient_loader import load_folders
from torchtriage.reading.unpack import UnpackBudget, Upload, unpack

MAX_PACKED, MAX_UNPACKED = 8 << 20, 32 << 20  # bytes of an archive, and of its content
_MAX_FILES = 2000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,40}")
_FILE = re.compile(r"(?:^|/)((?:[a-z0-9][a-z0-9-]*)/(?:[a-z0-9][a-z0-9-]*)(?:\+[a-z0-9][a-z0-9-]*)?\.yaml)$")


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack. `digest` is `sha256:…` of its files. `entries` are the ids of its entries; `cases` are the cases that it
    adds to other entries, as `area.name/case`."""

    name: str
    version: str
    digest: str
    entries: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


def installed(home: Path) -> list[Pack]:
    """Returns the installed packs, sorted by name. Raises BadInput if files of a pack do not fit its digest."""
    return [_pack(_files_of_folder(folder), str(folder)) for folder in packs_in(home)]


def build(source: Path, name: str, version: str, other_folders: Sequence[Path]) -> tuple[Pack, bytes]:
    """Builds a pack from the entries in the folder `source` and returns it with its archive. The same files give the
    same bytes. The pack is checked together with the folders `beside`. Raises BadInput and KnowledgeError."""
    files = {path: text for path, text in _files_of_folder(source).items() if path != MANIFEST}
    pack = _described(files, name, version)
    files[MANIFEST] = _manifest(pack)
    _check(pack, source, other_folders)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w") as tar,
    ):
        for path in sorted(files):
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(files[path])
            tar.addfile(member, io.BytesIO(files[path]))
    return pack, packed.getvalue()


def read_folder(source: Path) -> dict[str, bytes]:
    """Returns the files of a pack that is a folder. Raises BadInput."""
    return _files_of_folder(source)


def read_archive(packed: bytes, name: str) -> dict[str, bytes]:
    """Returns the files of a pack that is an archive, by path. Only paths of the expected form are accepted. Raises
    BadInput, UnreadableLog and LogTooLarge."""
    if len(packed) > MAX_PACKED:
        raise BadInput(f"{name}: larger than the limit of {limit_text(MAX_PACKED)}")
    files: dict[str, bytes] = {}
    for file in unpack(Upload(name, iter([packed])), UnpackBudget(MAX_UNPACKED)):
        content = b"".join(file.chunks)
        if not file.member:
            raise BadInput(f"{name}: not an archive")
        _add(files, file.name, content, name)
    return files


def install(files: Mapping[str, bytes], source: str, home: Path, other_folders: Sequence[Path]) -> Pack:
    """Installs a pack, replaces an installed pack of the same name, and returns the pack. The files are written to a
    temporary folder, checked like `kb check` together with the folders `other_folders` and the other packs, and then
    renamed. A rejected pack changes nothing. Raises BadInput and KnowledgeError."""
    pack = _pack(files, source)
    with _locked(home):
        aside = home / f".{uuid4().hex}"
        try:
            for path, content in files.items():
                (aside / path).parent.mkdir(parents=True, exist_ok=True)
                (aside / path).write_bytes(content)
            earlier = [folder for folder in packs_in(home) if folder.name.startswith(f"{pack.name}@")]
            _check(pack, aside, other_folders, [folder for folder in packs_in(home) if folder not in earlier])
            place = home / f"{pack.name}@{pack.version}-{pack.digest.removeprefix('sha256:')[:12]}"
            if place not in earlier:
                os.rename(aside, place)
            for folder in earlier:
                if folder != place:
                    _drop(folder)
        except OSError as error:
            raise BadInput(f"{home}: {error.strerror}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return pack


def remove(name: str, home: Path) -> None:
    """Removes an installed pack. Raises NotFound and BadInput."""
    with _locked(home):
        found = [folder for folder in packs_in(home) if folder.name.startswith(f"{name}@")]
        if not found:
            known = ", ".join(sorted({folder.name.partition("@")[0] for folder in packs_in(home)}))
            raise NotFound(f"no pack {name} is installed" + (f"; installed are: {known}" if known else ""))
        try:
            for folder in found:
                _drop(folder)
        except OSError as error:
            raise BadInput(f"{home}: {error.strerror}") from error


def _drop(folder: Path) -> None:
    """Removes a folder: first renames it, so that it disappears at once, then deletes its files. Raises OSError."""
    gone = folder.with_name(f".{uuid4().hex}")
    os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _check(pack: Pack, folder: Path, other_folders: Sequence[Path], packs: Sequence[Path] = ()) -> None:
    """Raises KnowledgeError if an id is already taken, or if `kb check` would report problems. Files of the other
    `packs` that do not load are ignored."""
    cache = cache_folder()
    sound = load_folders(lambda added: [*other_folders, *added], packs)
    taken = sound.knowledge
    clashes = [name for name in (*pack.entries, *pack.cases) if is_in_use(name, taken.entries)]
    if clashes:
        whose = _whose(taken, clashes[0])
        more = f" (and {len(clashes) - 1} more)" if len(clashes) > 1 else ""
        raise KnowledgeError(
            [f"pack {pack.name}: the id {clashes[0]} is taken by {whose}{more}; rename it in the pack"]
        )
    own = loader.load([folder], taken.entries)
    digest = f"sha256:{hashlib.sha256((taken.digest + own.digest).encode()).hexdigest()}"
    together = KnowledgeBase(own.entries, digest, taken.vocabulary, taken.forms)
    folders, added = [*sound.folders, folder], loader.added_by(folder)
    problems = [problem for one in added if (problem := _misplaced(one, pack, taken))]
    if not problems and pack.entries:
        problems = checks.check(together, folders, cache, pack.entries).problems
    if not problems:
        found = [problem for one in added for problem in checks.problems_of_added(together, one, cache)[0]]
        problems = checks.problem_texts(found, folders)
    if problems:
        raise KnowledgeError([f"pack {pack.name}: {problem}" for problem in problems])


def _misplaced(added: Entry, pack: Pack, taken: KnowledgeBase) -> str | None:
    """Returns why a file may not add its cases to an entry, or None if it may."""
    name = file_of(f"{added.id}/{added.cases[0].id}")
    if len(added.cases) > 1 or added.file != name:
        return f"{added.file}:1: in a pack, a file must add exactly one case and have the name {name}"
    if added.id in pack.entries:
        return f"{added.file}:1: adds_to: the entry is in this pack; add the case to its file"
    if other := taken.entries[added.id].pack:
        return f"{added.file}:1: adds_to: {added.id} is in pack {other}, which may be removed"
    return None


def _whose(taken: KnowledgeBase, name: str) -> str:
    entry, case = split_id(name)
    added = [own.pack for own in taken.entries[entry].cases if own.id == case]
    if pack := added[0] if added and added[0] else taken.entries[entry].pack:
        return f"pack {pack}"
    if case and not (BUILT_IN / file_of(entry)).is_file():
        return "a case of your own folders"
    if case:
        return f"a case of {entry}"
    return "a built-in entry" if (BUILT_IN / file_of(entry)).is_file() else "an entry of your own folders"


def _pack(files: Mapping[str, bytes], source: str) -> Pack:
    """Returns the pack described by its manifest. Raises BadInput if the files do not fit the digest in the
    manifest."""
    if MANIFEST not in files:
        raise BadInput(f"{source}: not a pack: it has no {MANIFEST}; `torchtriage kb pack build` writes one")
    try:
        manifest = json.loads(files[MANIFEST])
        name, version, digest = (str(manifest[key]) for key in ("name", "version", "digest"))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise BadInput(f"{source}: {MANIFEST} needs name, version and digest") from None
    try:
        pack = _described({path: text for path, text in files.items() if path != MANIFEST}, name, version)
    except BadInput as error:
        raise BadInput(f"{source}: {error.message}") from None
    if pack.digest != digest:
        raise BadInput(f"{source}: the files do not fit the digest of pack {name} {version}")
    return pack


def _described(files: Mapping[str, bytes], name: str, version: str) -> Pack:
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name[:80]!r} is not a valid pack name: use lower-case letters, digits and hyphens")
    if not _VERSION.fullmatch(version):
        raise BadInput(f"{version[:80]!r} is not a valid version: use a form such as 1.2.0")
    if not files:
        raise BadInput("a pack needs at least one entry (AREA/NAME.yaml) or case (AREA/NAME+CASE.yaml)")
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + str(len(files[path])).encode() + b"\0" + files[path])
    ids = [path.removesuffix(".yaml").replace("/", ".", 1) for path in sorted(files)]
    entries, cases = (tuple(one for one in ids if ("+" in one) is added) for added in (False, True))
    return Pack(name, version, f"sha256:{digest.hexdigest()}", entries, tuple(one.replace("+", "/") for one in cases))


def _manifest(pack: Pack) -> bytes:
    fields = {key: value for key, value in asdict(pack).items() if key not in ("entries", "cases")}
    return json.dumps(fields, indent=2).encode() + b"\n"


def _files_of_folder(source: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        if (source / MANIFEST).is_file():
            files[MANIFEST] = (source / MANIFEST).read_bytes()
        for path in sorted(source.glob("*/*.yaml")):
            if path.is_file():
                _add(files, path.relative_to(source).as_posix(), path.read_bytes(), str(source))
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror}") from error
    return files


def _add(files: dict[str, bytes], name: str, content: bytes, source: str) -> None:
    """Adds a file to `files`. Raises BadInput for a path that does not belong in a pack, and if there are too many
    files."""
    found = _FILE.search(name)
    path = found[1] if found else MANIFEST if name.rpartition("/")[2] == MANIFEST else None
    if path is None or path in files:
        what = (
            "appears twice"
            if path
            else f"does not belong in a pack, which can contain {MANIFEST}, AREA/NAME.yaml and AREA/NAME+CASE.yaml"
        )
        raise BadInput(f"{source}: {name[-100:]} {what}")
    files[path] = content
    if len(files) > _MAX_FILES or sum(map(len, files.values())) > MAX_UNPACKED:
        raise BadInput(f"{source}: a pack has at most {_MAX_FILES} files and {limit_text(MAX_UNPACKED)}")


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Locks the folder of the packs, so that only one change happens at a time. Raises BadInput."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = open(home / ".lock", "w")  # noqa: SIM115  open, and so locked, to the end
    except OSError as error:
        raise BadInput(f"{home}: {error.strerror}") from error
    with lock:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
