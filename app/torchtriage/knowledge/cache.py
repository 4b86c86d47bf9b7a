"""The user's cache folder. It keeps the parsed knowledge base, the search index and the compiled page templates, so
that the next start is faster."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from torchtriage import __version__
from torchtriage.domain import entry, vocabulary
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.errors import KnowledgeError
from torchtriage.facts import line_forms
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.folders import files
from torchtriage.reading.disk_cache import keep, read

if TYPE_CHECKING:
    from torchtriage.knowledge.symptom_search import SearchIndex

T = TypeVar("T")
_SEAL = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Returns the folder `torchtriage` under XDG_CACHE_HOME or ~/.cache. It may not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "torchtriage"


def load(folders: Iterable[Path], cache: Path, without: frozenset[Path] = frozenset()) -> KnowledgeBase:
    """Returns the knowledge base of `folders`, except the files in `without`. It is parsed again only if a file or the
    code that defines entries has changed.

    Raises KnowledgeError with all problems of all files, including patterns that cannot be compiled.
    """
    folders = list(folders)
    forms = b"".join(Path(str(module.__file__)).read_bytes() for module in (entry, vocabulary, line_forms))
    digest = hashlib.sha256(__version__.encode() + forms)
    problems: list[str] = []
    for _, path in files(folders, problems, without):
        try:
            digest.update(str(path).encode() + path.read_bytes())
        except OSError as error:
            problems.append(f"{path}: can't be read: {error.strerror}")
    if problems:
        raise KnowledgeError(problems)

    def parsed() -> KnowledgeBase:
        from torchtriage.knowledge import checks, loader

        made = loader.load(folders, without=without)
        # The built-in entries were checked before the release.
        problems = checks.refused(made, folders, cache) if folders != [BUILT_IN] else []
        if problems:
            raise KnowledgeError(problems)
        return made

    return kept(cache / f"knowledge-{digest.hexdigest()[:32]}.pickle", KnowledgeBase, parsed)


def load_index(knowledge: KnowledgeBase, cache: Path) -> SearchIndex:
    """Returns the search index of `knowledge`. It is built again only if an entry, the synonyms or the search code has
    changed.

    Raises KnowledgeError if the synonyms are not well-formed.
    """
    from torchtriage.knowledge.symptom_search import SOURCES, SearchIndex

    digest = hashlib.sha256(knowledge.digest.encode())
    for path in SOURCES:
        digest.update(path.read_bytes())
    return kept(cache / f"search-{digest.hexdigest()[:32]}.pickle", SearchIndex, lambda: SearchIndex(knowledge))


def kept(path: Path, kind: type[T], make: Callable[[], T]) -> T:
    """Returns the object pickled at `path` if it is a `kind`. Otherwise calls `make`, stores the result at `path` and
    returns it."""
    found = _unsealed(path)
    if isinstance(found, kind):
        return found
    made = make()
    body = pickle.dumps(made, protocol=5)
    keep(path, hashlib.sha256(body).digest() + body)
    return made


def _unsealed(path: Path) -> object:
    """Returns the object pickled at `path`, or None if there is no file or its digest is wrong.

    The digest is checked first because loading a damaged pickle can raise any exception.
    """
    try:
        kept = read(path)  # a file in our own cache folder, trusted like compiled bytecode
        seal, body = kept[:_SEAL], kept[_SEAL:]
        return pickle.loads(body) if hashlib.sha256(body).digest() == seal else None
    except (OSError, AttributeError, ImportError, TypeError):  # no such file, or its classes have changed since
        return None
