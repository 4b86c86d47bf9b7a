"""Checks the test machinery: databases and browser."""

from __future__ import annotations

import fcntl
import os
import sys
from typing import TYPE_CHECKING

import pytest
import sqlalchemy
from sqlalchemy import text

from tests import browser as browsers
from tests import conftest
from tests import postgres as servers
from tests.built_in import alone
from torchtriage.knowledge.cache import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.mark.parametrize("turn", [1, 2])
def test_database_is_fresh_and_of_the_kind_that_its_url_says(database_url: str, turn: int) -> None:
    engine = sqlalchemy.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE once (word TEXT)"))
        connection.execute(text("INSERT INTO once VALUES ('显存不足')"))
        assert connection.execute(text("SELECT word FROM once")).scalar_one() == "显存不足"
    assert engine.dialect.name == database_url.split(":")[0].split("+")[0]
    engine.dispose()


def test_postgres_named_by_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "initdb").touch()
    (tmp_path / "postgres").touch()
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    assert servers.find_programs() == tmp_path


@pytest.mark.postgres
def test_postgres_that_cannot_start_says_why(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("initdb", "postgres"):
        (programs / name).write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "no room" >&2\nexit 1\n')
        (programs / name).chmod(0o755)
    with pytest.raises(RuntimeError, match="initdb failed: no room"), servers.PostgresServer(programs):
        pass


def test_chromium_named_by_the_environment_is_the_only_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    assert browsers.problem() == "no Chromium found ($CHROMIUM, PATH)"


def test_browser_runs_scripts_and_reaches_no_network(page: Page) -> None:
    page.set_content("<p id=word>before</p><script>document.getElementById('word').textContent = '显存不足'</script>")
    assert page.text_content("#word") == "显存不足"
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        page.goto("http://example.org/")


def test_bytecode_is_kept_even_if_the_environment_turns_that_off(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw7")  # a worker makes no cache folder of its own
    conftest.pytest_configure(pytestconfig)
    assert not sys.dont_write_bytecode
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_one_process_at_a_time_writes_to_the_cache() -> None:
    with alone(), (cache_folder() / "being-made").open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
