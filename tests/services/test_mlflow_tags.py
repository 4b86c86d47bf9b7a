"""Tags on a run in MLflow, from a log that names the run on; on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.chat.test_mlflow import RUN, FakeTrackingServer, fake
from tests.services.logs import OUT_OF_MEMORY, triaged
from torchtriage.domain.notice import SendState
from torchtriage.services import outbox
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings

PAGE = f"🏃 View run gaudy-rook-875 at: http://{{host}}/#/experiments/0/runs/{RUN}.\n"


def opened(running: FakeTrackingServer, folder: Path, database_url: str, rules: Path | None = None) -> Service:
    settings = Settings(
        data_dir=folder,
        database_url=database_url,
        workers=0,
        mlflow_url=running.url,
        mlflow_user="ops",
        mlflow_token="pw",
        routes_file=rules,
        allow_private_calls=True,
    )
    return open_service(settings, lambda *_: None, working=False)


def deliver(service: Service) -> None:
    for count in range(1, 20):
        if not outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=60 * count)):
            return


@pytest.mark.parametrize(("host", "entry"), [("127.0.0.1:5000", "cuda.oom"), ("mlflow.elsewhere.example", None)])
def test_the_run_that_a_log_names_is_tagged(tmp_path: Path, database_url: str, host: str, entry: str | None) -> None:
    with fake() as running:
        service = opened(running, tmp_path, database_url)
        incident = triaged(service, PAGE.format(host=host).encode() + OUT_OF_MEMORY, "1")
        deliver(service)
        assert [item.state for item in outbox.list_outbox(service).items] == [SendState.SENT]
        close_service(service)
    assert running.runs[RUN].get("torchtriage.entry") == entry
    assert running.runs[RUN].get("torchtriage.incident", incident).endswith(incident)


def test_rules_leave_runs_out(tmp_path: Path, database_url: str) -> None:
    rules = tmp_path / "routes.toml"
    rules.write_text('[[rules]]\nwhen = {entry = "nccl.*"}\nto = ["mlflow"]\n')
    with fake() as running:
        service = opened(running, tmp_path, database_url, rules)
        triaged(service, PAGE.format(host="127.0.0.1").encode() + OUT_OF_MEMORY, "1")
        deliver(service)
        close_service(service)
    assert running.calls == 0
