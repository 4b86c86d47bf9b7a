"""Reads the messages of released packages into knowledge_base/_inventory.

`python -m scripts.inventory PACKAGE==VERSION…` downloads each with pip into a temporary folder, reads it there, and
adds it to the index of its libraries. The path of a wheel or source archive that is there already is read as it is.
Nothing of a package is installed or imported; for a source archive pip asks its setup script what it needs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from scripts.inventory import native_messages, python_messages
from scripts.inventory.index import Index, public_names
from torchtriage.domain.message_template import LibraryMessage
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.folders import INVENTORY
from torchtriage.matching.inventory import NATIVE

FOLDER = BUILT_IN / INVENTORY
_RELEASE = re.compile(r"([\w.]+?)-(\d[\w.!+]*?)(?:-.*)?\.(?:whl|tar\.gz)$")
# Parts of a path that contain no code of the library itself.
_ASIDE = frozenset(
    {
        "test", "tests", "testing", "_testing", "conftest", "example", "examples", "tutorials", "doc", "docs",
        "benchmark", "benchmarks", "third_party", "thirdparty", "_vendor", "vendor", "vendored", "setup", "scripts",
        "tools", "torchgen",
    }
)  # fmt: skip
# Shared libraries whose errors are recognized by their calls: the name in the inventory, and the functions that print.
_NATIVE = (
    (re.compile(r"/libnccl\.so[\d.]*$"), "nccl", native_messages.NCCL),
    (re.compile(r"^torch/lib/lib(?:c10|c10_cuda|torch_cpu|torch_cuda|torch_python)\.so$"), f"torch{NATIVE}",
     native_messages.TORCH_CHECK),
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.inventory", description=__doc__)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE==VERSION", help="or the path of a downloaded release")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the index is kept")
    chosen = parser.parse_args()
    for package in chosen.packages:
        with tempfile.TemporaryDirectory() as empty:
            release = Path(package) if Path(package).is_file() else _downloaded(package, Path(empty))
            for name, count in sorted(add(release, chosen.folder).items()):
                print(f"{release.name}: {name} {count} messages", flush=True)
    return 0


def add(release: Path, folder: Path) -> dict[str, int]:
    """Adds the messages of one release to the indexes in `folder`. Returns the number of messages of each of its
    libraries. Raises ValueError if the file's name is not that of a release."""
    named = _RELEASE.match(release.name)
    if named is None:
        raise ValueError(f"{release.name} is no wheel and no source archive")
    messages: dict[str, set[LibraryMessage]] = {}
    imported: dict[str, str] = {}
    for path, content in _files(release):
        if path.suffix == ".py":
            _read_python(path, content, messages, imported)
        for pattern, name, printer in _NATIVE:
            if pattern.search(str(path)):
                messages.setdefault(name, set()).update(native_messages.messages(content, printer))
    offered = public_names(imported)
    for name, found in messages.items():
        index = Index.read(folder, name)
        index.add(named[2], found, offered)
        index.write(folder, name)
    return {name: len(found) for name, found in messages.items()}


def _downloaded(package: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
    subprocess.run(command, check=True)
    return next(folder.iterdir())


def _files(release: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yields the files of a release to read, with their paths below the folder of installed packages."""
    if release.suffix == ".whl":
        with zipfile.ZipFile(release) as archive:
            for name in archive.namelist():
                if (path := _installed(PurePosixPath(name))) is not None:
                    yield path, archive.read(name)
        return
    with tarfile.open(release) as archive:
        for member in archive:
            path = _installed(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
            source = archive.extractfile(member) if path is not None and member.isfile() else None
            if path is not None and source is not None:
                yield path, source.read()


def _installed(path: PurePosixPath) -> PurePosixPath | None:
    """Returns where a file of a release is installed, or None if it is not read."""
    parts = path.parts
    if len(parts) > 2 and parts[0].endswith(".data"):
        parts = parts[2:]
    elif parts[:1] in (("src",), ("python",)):
        parts = parts[1:]
    read = path.suffix == ".py" or any(pattern.search("/".join(parts)) for pattern, _, _ in _NATIVE)
    aside = _ASIDE & {part.removesuffix(".py") for part in parts}
    return PurePosixPath(*parts) if read and len(parts) > 1 and not aside else None


def _read_python(
    path: PurePosixPath, content: bytes, messages: dict[str, set[LibraryMessage]], imported: dict[str, str]
) -> None:
    is_package = path.name == "__init__.py"
    module = ".".join(path.parts[:-1] if is_package else path.with_suffix("").parts)
    try:
        tree = python_messages.parsed(content)
    except (SyntaxError, ValueError, RecursionError):
        return  # for example a template of a module, or a module for an older Python
    messages.setdefault(path.parts[0], set()).update(python_messages.messages(tree, module))
    if is_package:
        imported |= python_messages.imported_names(tree, module, is_package)


if __name__ == "__main__":
    sys.exit(main())
