"""`torchtriage kb pack`: builds, installs, lists and removes packs of entries."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.cli.arguments import add_commands
from torchtriage.domain.byte_sizes import limit_text
from torchtriage.errors import BadInput

if TYPE_CHECKING:
    from torchtriage.knowledge.packs import Pack

_SECONDS = 60.0  # limit on the time of a download
_REDIRECTS = 5  # limit on the redirects of a download
_MAX_SIGNATURE = 4096  # limit on the size of a signature or key file, in bytes


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    pack = subparsers.add_parser(
        "pack",
        help="build, install, list and remove packs of entries",
        description="Share entries between teams: build a pack from a folder of entries, install a pack from a file, "
        "a folder or a URL, list the installed packs, and remove one.",
    )
    commands = add_commands(pack, "pack_command")
    build = commands.add_parser("build", help="check the entries of a folder and pack them into one file")
    build.add_argument("folder", metavar="FOLDER", help="the folder, with AREA/NAME.yaml, or AREA/NAME+CASE.yaml")
    build.add_argument("--name", required=True, help="the pack's name, such as our-cluster")
    build.add_argument("--version", required=True, help="the pack's version, such as 1.2.0")
    build.add_argument("--output", "-o", metavar="FILE", help="the file to write (NAME-VERSION.tar.gz)")
    install = commands.add_parser("install", help="check a pack and put its entries into use")
    install.add_argument("source", metavar="FILE|FOLDER|URL", help="the pack; a URL begins with https://")
    install.add_argument(
        "--key",
        metavar="KEY|FILE",
        help="minisign public key; the signature is SOURCE.minisig, else nothing is installed",
    )
    listed = commands.add_parser("list", help="list the packs that are installed")
    remove = commands.add_parser("remove", help="remove a pack")
    remove.add_argument("name", metavar="NAME")
    for command, function in ((build, _build), (install, _install), (listed, _list), (remove, _remove)):
        command.set_defaults(run=function)
    for command in (build, install, listed):
        command.add_argument("--json", action="store_true", help="print JSON")


def _build(options: argparse.Namespace) -> int:
    """Raises BadInput or KnowledgeError."""
    from torchtriage.cli.start_engine import folders_of_files
    from torchtriage.knowledge import packs

    source = Path(options.folder)
    if not source.is_dir():
        raise BadInput(f"{source}: no such folder")
    other_folders = [folder for folder in folders_of_files() if folder.resolve() != source.resolve()]
    pack, packed = packs.build(source, options.name, options.version, other_folders)
    output = Path(options.output or f"{pack.name}-{pack.version}.tar.gz")
    try:
        output.write_bytes(packed)
    except OSError as error:
        raise BadInput(f"{output}: {error.strerror}") from error
    print(json.dumps(asdict(pack) | {"file": str(output)}) if options.json else f"{output}: {_pack_line(pack)}")
    return 0


def _install(options: argparse.Namespace) -> int:
    """Raises BadInput, KnowledgeError, MissingExtra, UnreadableLog or LogTooLarge."""
    from torchtriage.cli.start_engine import folders_of_files, packs_home
    from torchtriage.knowledge import packs
    from torchtriage.knowledge.minisign import verify

    source = options.source
    if Path(source).is_dir():
        if options.key:
            raise BadInput("a folder has no signature: --key needs a pack that is one file")
        files = packs.read_folder(Path(source))
    else:
        packed = _read(source, packs.MAX_PACKED)
        if options.key:
            verify(packed, _read(f"{source}.minisig", _MAX_SIGNATURE).decode("utf-8", "replace"), _key(options.key))
        files = packs.read_archive(packed, source)
    pack = packs.install(files, source, packs_home(), folders_of_files())
    print(json.dumps(asdict(pack)) if options.json else f"installed {_pack_line(pack)}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from torchtriage.cli.start_engine import packs_home
    from torchtriage.knowledge import packs

    found = packs.installed(packs_home())
    if options.json:
        print(json.dumps([asdict(pack) for pack in found]))
        return 0
    for pack in found:
        print(f"{_pack_line(pack)}\n  {', '.join((*pack.entries, *pack.cases))}")
    if not found:
        print("no packs are installed")
    return 0


def _remove(options: argparse.Namespace) -> int:
    """Raises NotFound."""
    from torchtriage.cli.start_engine import packs_home
    from torchtriage.knowledge import packs

    packs.remove(options.name, packs_home())
    print(f"removed {options.name}")
    return 0


def _pack_line(pack: Pack) -> str:
    entries, cases = len(pack.entries), len(pack.cases)
    contents = [f"{entries} {'entry' if entries == 1 else 'entries'}"] if entries or not cases else []
    contents += [f"{cases} {'case' if cases == 1 else 'cases'}"] if cases else []
    return f"{pack.name} {pack.version}, {', '.join(contents)}, {pack.digest[:19]}"


def _key(text: str) -> str:
    return _read(text, _MAX_SIGNATURE).decode("utf-8", "replace") if Path(text).is_file() else text


def _read(source: str, most: int) -> bytes:
    """Returns the bytes of a file or URL. Raises BadInput if there are more than `most`, and MissingExtra."""
    if "://" in source:
        return _download(source, most)
    try:
        with open(source, "rb") as file:
            found = file.read(most + 1)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror}") from error
    if len(found) > most:
        raise BadInput(f"{source}: larger than the limit of {limit_text(most)}")
    return found


def _download(url: str, most: int) -> bytes:
    """Returns the content of a URL. Only https is allowed, and no address of a private network unless the settings
    allow it."""
    from torchtriage.extras import require

    require("server", "a pack from a URL")
    from torchtriage.chat.delivery_errors import Undelivered
    from torchtriage.chat.outbound_http import Outgoing
    from torchtriage.settings import Settings

    outgoing = Outgoing(Settings.from_environment(os.environ).allow_private_calls)
    try:
        with outgoing.download(url, {}, most, _SECONDS, _REDIRECTS) as chunks:
            return b"".join(chunks)
    except Undelivered as error:
        raise BadInput(f"cannot download {url.rpartition('/')[2]}: {error}") from error
