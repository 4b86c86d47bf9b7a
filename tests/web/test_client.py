from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

import torchtriage.client


def test_the_client_is_served_whole_and_cached(client: TestClient) -> None:
    answer = client.get("/client.py")
    assert answer.headers["content-type"].startswith("text/x-python")
    assert answer.content == (Path(torchtriage.client.__path__[0]) / "torchtriage_client.py").read_bytes()
    again = client.get("/client.py", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
