"""The wheel in environments that hold only what its metadata names: a log, a search, and what is missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bare_environment import Environment, build_wheel
from tests.logs import BANNER, text, traceback

pytestmark = pytest.mark.slow
LOG = text(BANNER, traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."))
FOREIGN = ("app", "migrations", "tests", "knowledge_base", "cli", "engine", "domain")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    made = Environment(tmp_path_factory.mktemp("bare"))
    assert made.install_wheel(wheel) == {"torchtriage", next(made.packages.glob("*.dist-info")).name}
    made.install_dependencies()
    (made.bin.parent / "run.log").write_bytes(LOG)
    yield made
    shutil.rmtree(made.bin.parent)


@pytest.fixture(scope="module")
def serving(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    made = Environment(tmp_path_factory.mktemp("serving"))
    made.install_wheel(wheel)
    made.install_dependencies("server")
    yield made
    shutil.rmtree(made.bin.parent)


def test_the_bare_install_brings_neither_server_nor_database(bare: Environment) -> None:
    there = {each.name.partition("-")[0].lower() for each in bare.packages.glob("*.dist-info")}
    assert {"torchtriage", "hyperscan", "google_re2", "pyyaml"} <= there
    assert not there & {"fastapi", "sqlalchemy", "alembic", "uvicorn", "obstore", "psycopg", "authlib", "slack_sdk"}


def test_the_wheel_triages_a_log(bare: Environment) -> None:
    done = bare.run("torchtriage", "triage", "--json", "run.log")
    assert done.stderr == ""
    assert json.loads(done.stdout)["root_cause"]["entry"] == "cuda.oom"


def test_the_wheel_prints_a_brief(bare: Environment) -> None:
    done = bare.run("torchtriage", "brief", "run.log")
    assert done.stderr == ""
    assert "`cuda.oom`" in done.stdout


def test_the_wheel_searches_and_checks_its_knowledge(bare: Environment) -> None:
    found = bare.run("torchtriage", "kb", "search", "--json", "CUDA out of memory")
    assert json.loads(found.stdout)[0]["entry"] == "cuda.oom", found.stderr
    new = bare.run("torchtriage", "kb", "schema")
    assert json.loads(new.stdout)["title"]
    assert bare.run("torchtriage", "kb", "show", "cuda.oom").returncode == 0


def test_the_wheel_triages_an_archive(bare: Environment, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log").write_bytes(LOG)
    source, target = str(tmp_path / "logs"), str(tmp_path / "verdicts")
    done = bare.run("torchtriage", "triage-archive", source, "--out", target, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "1 × cuda.oom" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_wheel_prints_completions(bare: Environment, shell: str) -> None:
    done = bare.run("torchtriage", "completion", shell)
    assert done.returncode == 0, done.stderr
    assert "triage-archive" in done.stdout


def test_help_needs_no_extra(bare: Environment) -> None:
    done = bare.run("torchtriage", "--help")
    assert done.returncode == 0, done.stderr
    assert "watch-kubernetes" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["serve"], "server"),
        (["worker"], "server"),
        (["db", "check"], "server"),
        (["token", "list"], "server"),
        (["changes"], "server"),
        (["retriage"], "server"),
        (["demo"], "server"),
        (["explain", "run.log"], "server"),
        (["mcp"], "mcp"),
        (["watch-kubernetes"], "kubernetes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_command_names_the_extra_that_it_lacks(bare: Environment, command: list[str], extra: str) -> None:
    done = bare.run("torchtriage", *command)
    line = f"torchtriage: `{command[0]}` needs the extra `{extra}`: pip install 'torchtriage[{extra}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


@pytest.mark.parametrize(
    ("options", "extra"), [(["--dask", "tcp://127.0.0.1:1"], "dask"), (["--out", "s3://bucket/verdicts"], "s3")]
)
def test_an_option_names_the_extra_that_it_lacks(bare: Environment, options: list[str], extra: str) -> None:
    source = bare.bin.parent / "archive"
    source.mkdir(exist_ok=True)
    (source / "run.log").write_bytes(LOG)
    done = bare.run("torchtriage", "triage-archive", str(source), "--out", "verdicts", *options)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"needs the extra `{extra}`: pip install 'torchtriage[{extra}]'")


def test_other_packages_on_the_path_change_nothing(bare: Environment, tmp_path: Path) -> None:
    for name in FOREIGN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong package')\n")
    plain = bare.run("torchtriage", "triage", "run.log")
    beside = bare.run("torchtriage", "triage", "run.log", PYTHONPATH=str(tmp_path))
    assert plain.returncode == 0
    assert (beside.returncode, beside.stdout, beside.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_the_extra_server_upgrades_a_database_on_sqlite(serving: Environment, tmp_path: Path) -> None:
    done = serving.run("torchtriage", "db", "upgrade", TRIAGE_DATA_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    done = serving.run("torchtriage", "demo", "--count", "3", TRIAGE_DATA_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    code = "import sys; from torchtriage.settings import Settings; from torchtriage.web.app import create_app; "
    code += "print(len(create_app(Settings.from_environment({'TRIAGE_DATA_DIR': sys.argv[1]})).routes))"
    assert int(serving.run("python", "-c", code, str(tmp_path)).stdout) > 10


@pytest.mark.parametrize(
    ("extra", "variables"),
    [
        ("postgres", {"TRIAGE_DATABASE_URL": "postgresql+psycopg://127.0.0.1:1/none"}),
        ("s3", {"TRIAGE_BLOB_URL": "s3://bucket/logs"}),
        ("slack", {"TRIAGE_SLACK_SIGNING_SECRET": "secret"}),
        ("slack", {"TRIAGE_SLACK_WEBHOOK_URL": "https://hooks.example.org/x"}),
        ("apprise", {"TRIAGE_APPRISE_URLS": "json://example.org"}),
        (
            "oidc",
            {
                "TRIAGE_AUTH": "tokens",
                "TRIAGE_OIDC_ISSUER": "https://login.example.org",
                "TRIAGE_OIDC_CLIENT_ID": "torchtriage",
                "TRIAGE_PUBLIC_URL": "https://triage.example.org",
            },
        ),
    ],
)
def test_a_setting_names_the_extra_that_it_lacks(
    serving: Environment, tmp_path: Path, extra: str, variables: dict[str, str]
) -> None:
    done = serving.run("torchtriage", "serve", "--port", "0", TRIAGE_DATA_DIR=str(tmp_path), **variables)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"needs the extra `{extra}`: pip install 'torchtriage[{extra}]'\n")
