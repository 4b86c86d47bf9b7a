"""What is slow to make and the same for every test, made once per process: migrated databases, knowledge, engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from tests.built_in import built_in_engine, built_in_index, built_in_knowledge
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN, cache
from torchtriage.knowledge.symptom_search import SearchIndex
from torchtriage.services import engine_runner, knowledge_reload, service
from torchtriage.storage.schema_upgrade import upgrade
from torchtriage.web import dependencies

DATABASE = "torchtriage.db"  # the file that a service on SQLite creates in its data folder


def migrated_sqlite(folder: Path) -> Path:
    """Creates a migrated database in `folder` and returns its file."""
    file = folder / DATABASE
    upgrade(f"sqlite:///{file}")
    return file


def put_database(template: Path, file: Path) -> Path:
    """Copies a migrated database that is not open to `file`, and returns `file`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, file)
    file.chmod(0o600)
    return file


@contextmanager
def one_engine(template: Path) -> Iterator[None]:
    """Lets all services with only the built-in knowledge share one knowledge base, engine and search index. A service
    without a SQLite file gets a copy of `template`, which is migrated."""

    def load(folders: Iterable[Path], folder: Path, without: frozenset[Path] = frozenset()) -> KnowledgeBase:
        folders = list(folders)
        return built_in_knowledge() if folders == [BUILT_IN] else cache.load(folders, folder, without)

    def engine(knowledge: KnowledgeBase, folder: Path) -> Engine:
        return built_in_engine() if knowledge is built_in_knowledge() else Engine(knowledge, folder)

    def index(knowledge: KnowledgeBase, folder: Path) -> SearchIndex:
        return built_in_index() if knowledge is built_in_knowledge() else cache.load_index(knowledge, folder)

    def upgraded(url: str) -> None:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database and not Path(parsed.database).exists():
            put_database(template, Path(parsed.database))
        else:
            upgrade(url)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "load", load)
        patch.setattr(knowledge_reload, "load", load)
        patch.setattr(engine_runner, "Engine", engine)
        patch.setattr(dependencies, "load_index", index)
        patch.setattr(service, "upgrade", upgraded)
        yield
