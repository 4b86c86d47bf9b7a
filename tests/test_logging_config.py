from __future__ import annotations

import json
import logging

import pytest
import structlog

from torchtriage.cli.logging_setup import start_logging
from torchtriage.logging_config import configure
from torchtriage.settings import Settings

log = logging.getLogger("app.somewhere")


def test_a_json_line_has_bound_and_given_values(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "json")
    structlog.contextvars.bind_contextvars(request_id="r-1")
    log.info("%d incidents", 3, extra={"path": "/a\nb", "status": 200})
    log.debug("not told")
    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "3 incidents", "level": "info", "logger": "app.somewhere", "request_id": "r-1", "path": "/a\nb", "status": 200,
    }  # fmt: skip


def test_a_text_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "text")
    structlog.contextvars.bind_contextvars(request_id="r-1")
    log.warning("a path", extra={"path": "/a\r\nERROR forged \x1b[31m\u2028"})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("WARNING app.somewhere: a path request_id=r-1 path=/a\\x0d\\x0aERROR forged \\x1b[31m\\x2028")


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_line_contains_a_secret(form: str, tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    start_logging(Settings.from_environment({"TRIAGE_LOG_FORMAT": form, "TRIAGE_DATA_DIR": str(tmp_path)}))
    try:
        raise RuntimeError(f"postgresql://ann:{secret}@db/triage refused")
    except RuntimeError:
        log.exception("password=%s", secret, extra={"path": f"/x/{secret}"})
    told = capsys.readouterr().err
    assert "RuntimeError" in told
    assert told.count("[redacted:hugging-face-token]") >= 3
    assert secret not in told
    if form == "json":
        assert "Traceback" in json.loads(told)["exception"]


def test_a_library_that_repeats_our_messages_is_silenced(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info")
    logging.getLogger("alembic.runtime").info("a migration")
    assert capsys.readouterr().err == ""
