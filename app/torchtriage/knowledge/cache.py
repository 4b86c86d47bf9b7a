"""The user's cache folder, and what is kept there from one start to the next: parsed knowledge, the search index, and
the compiled templates of the pages."""

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
    """-> `torchtriage` under XDG_CACHE_HOME or ~/.cache; it need not exist."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "torchtriage"


def load(folders: Iterable[Path], cache: Path, without: frozenset[Path] = frozenset()) -> KnowledgeBase:
    """-> the knowledge base of `folders` but for the files that are `without`, parsed once per content of their files
    and form of an entry.

    Raises KnowledgeError with all problems of all files, patterns that can't be compiled among them.
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
        # Those that are shipped were checked when they were made.
        problems = checks.refused(made, folders, cache) if folders != [BUILT_IN] else []
        if problems:
            raise KnowledgeError(problems)
        return made

    return kept(cache / f"knowledge-{digest.hexdigest()[:32]}.pickle", KnowledgeBase, parsed)


def load_index(knowledge: KnowledgeBase, cache: Path) -> SearchIndex:
    """-> the search index of `knowledge`, made once per content of its entries, the synonyms and the code that cuts.

    Raises KnowledgeError where the synonyms are not well-formed.
    """
    from torchtriage.knowledge.symptom_search import SOURCES, SearchIndex

    digest = hashlib.sha256(knowledge.digest.encode())
    for path in SOURCES:
        digest.update(path.read_bytes())
    return kept(cache / f"search-{digest.hexdigest()[:32]}.pickle", SearchIndex, lambda: SearchIndex(knowledge))


def kept(path: Path, kind: type[T], make: Callable[[], T]) -> T:
    """-> what lies pickled at `path`; else what `make` makes, kept there for the next start."""
    found = _unsealed(path)
    if isinstance(found, kind):
        return found
    made = make()
    body = pickle.dumps(made, protocol=5)
    keep(path, hashlib.sha256(body).digest() + body)
    return made


def _unsealed(path: Path) -> object:
    """-> what lies pickled behind its digest at `path`; None where nothing does, or the digest is another's.

    A damaged pickle can raise anything, so only a whole one is opened.
    """
    try:
        kept = read(path)  # of our own folder only, as with compiled bytecode
        seal, body = kept[:_SEAL], kept[_SEAL:]
        return pickle.loads(body) if hashlib.sha256(body).digest() == seal else None
    except (OSError, AttributeError, ImportError, TypeError):  # No file of ours, or classes that have changed since.
        return None
