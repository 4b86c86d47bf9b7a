from __future__ import annotations

import pytest
from fastapi.testclient import TestClient


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/", "/incidents", "/api/v1/incidents", "/static/page.js"])
def test_head_is_get_without_the_body(client: TestClient, address: str) -> None:
    known, asked = client.get(address), client.head(address)
    assert (asked.status_code, asked.content) == (200, b"")
    named = ("content-type", "content-length", "x-content-type-options", "content-security-policy")
    assert [asked.headers.get(name) for name in named] == [known.headers.get(name) for name in named]


def test_head_of_what_is_not_there(client: TestClient) -> None:
    assert (client.head("/nothing").status_code, client.head("/api/v1/incidents/7").status_code) == (404, 404)
    assert client.head("/api/v1/triage").status_code == 405
