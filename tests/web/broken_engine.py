"""An engine behind a server that reads no log any more, for what is told of an incident without a verdict."""

from __future__ import annotations

from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from torchtriage.errors import UnreadableLog
from torchtriage.services.service import Service


def refuse_logs(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on each log that the server accepts fails its incident."""

    def refuse(*_: Any, **__: Any) -> None:
        raise UnreadableLog("it can't be read")

    service = cast(Service, client.app.state.service)  # type: ignore[attr-defined]
    monkeypatch.setattr(service.triager, "run", refuse)
