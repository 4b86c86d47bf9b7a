from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from app.cli import db, serve
from app.errors import SettingError, TriageError


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    serve.add_parser(subparsers)
    db.add_parser(subparsers)
    return parser.parse_args(arguments)


def test_the_database_is_upgraded_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    with pytest.raises(TriageError, match="upgrade it"):
        db.run(options("db", "check"))
    assert db.run(options("db", "upgrade")) == db.run(options("db", "check")) == 0
    assert "is at version" in capsys.readouterr().out


def test_all_verdicts_are_counted_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    recount = options("db", "recount")
    with pytest.raises(TriageError, match="upgrade it"):
        recount.run(recount)
    db.run(options("db", "upgrade"))
    assert recount.run(recount) == 0
    assert "0 verdicts are counted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--host", "0.0.0.0"], {}, "TRIAGE_HOST: 0.0.0.0 is no loopback address"),
        (["--port", "99999"], {}, "TRIAGE_PORT: "),
        ([], {"TRIAGE_RETENTION_DAYS": "x"}, "TRIAGE_RETENTION_DAYS: "),
        ([], {"TRIAGE_BLOB_URL": "ftp://logs"}, "TRIAGE_BLOB_URL: neither a folder nor s3://BUCKET/PREFIX"),
        ([], {"TRIAGE_DATA_DIR": "ftp://logs"}, "TRIAGE_DATA_DIR: an address, not a folder or file"),
        (["--port", "0"], {"TRIAGE_KNOWLEDGE_DIRS": "/nowhere"}, "TRIAGE_KNOWLEDGE_DIRS: /nowhere is no folder"),
    ],
)
def test_a_bad_setting_stops_the_start(
    arguments: list[str],
    environment: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ({"TRIAGE_DATA_DIR": str(tmp_path)} | environment).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match=message) as raised:
        serve.run(options("serve", *arguments))
    assert "\n" not in raised.value.message


def test_a_port_that_is_taken_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(TriageError, match=r"can't listen on 127.0.0.1:\d+: Address already in use$"),
    ):
        serve.run(options("serve", "--port", str(taken.getsockname()[1])))


def test_a_name_to_listen_on_that_leads_nowhere_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIAGE_AUTH", "tokens")
    with pytest.raises(TriageError, match=r"can't listen on no.such.invalid:8000: \w") as raised:
        serve.run(options("serve", "--host", "no.such.invalid"))
    assert "Unknown error" not in raised.value.message


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP])
def test_it_serves_until_it_is_asked_to_stop(asked: signal.Signals, tmp_path: Path) -> None:
    program = (
        "import argparse; from app.cli import serve; parser = argparse.ArgumentParser()\n"
        "serve.add_parser(parser.add_subparsers()); options = parser.parse_args(['serve', '--port', '0'])\n"
        "raise SystemExit(serve.run(options))\n"
    )
    environment = {"TRIAGE_DATA_DIR": str(tmp_path), "HOME": str(Path.home()), "PYTHONPATH": ":".join(sys.path)}
    running = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    told = running.stdout.readline()
    address = told.split()[3].rstrip(",")
    log = b"RuntimeError: CUDA error: out of memory\n"
    with urllib.request.urlopen(f"{address}/api/v1/incidents", data=log) as answer:
        assert answer.status in (201, 202)
    running.send_signal(asked)
    _, errors = running.communicate(timeout=60)
    assert "Application shutdown complete" in errors
    assert list((tmp_path / "logs" / "incoming").iterdir()) == []
