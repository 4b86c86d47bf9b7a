"""Compiles all templates once and keeps the result in a cache, so that the service starts faster."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jinja2
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket, bc_magic

from torchtriage.knowledge.cache import kept


class _Code(BytecodeCache):
    """Compiled templates by key. Jinja checks that each one belongs to this source, Python and Jinja."""

    def __init__(self, known: dict[str, bytes]) -> None:
        self.known = known

    def load_bytecode(self, bucket: Bucket) -> None:
        code = self.known.get(bucket.key)
        if code is not None:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


def with_compiled_templates(environment: Environment, folder: Path, cache: Path) -> Environment:
    """Returns the environment with all templates of `folder` loaded. Compiling them takes half a second if they are not
    in `cache`."""
    files = sorted(folder.glob("*.html"))
    maker = bc_magic + jinja2.__version__.encode()  # what another Python or Jinja compiled would not be taken
    digest = hashlib.sha256(maker + b"".join(file.name.encode() + file.read_bytes() for file in files))

    def compiled() -> dict[str, bytes]:
        code = _Code({})
        _take(environment, code, files)
        return code.known

    _take(environment, _Code(kept(cache / f"templates-{digest.hexdigest()[:32]}.pickle", dict, compiled)), files)
    return environment


def _take(environment: Environment, code: _Code, files: list[Path]) -> None:
    environment.bytecode_cache = code
    for file in files:
        environment.get_template(file.name)
