from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient


@pytest.mark.parametrize(("accepts", "gets"), [("gzip, br", "gzip"), ("gzip;q=0", None), ("identity", None)])
def test_pages_and_files_are_compressed_for_who_takes_it(client: TestClient, accepts: str, gets: str | None) -> None:
    page = client.get("/", headers={"Accept-Encoding": accepts})
    address = re.findall(r'href="(/static/style[^"]+)"', page.text)[0]
    sheet = client.get(address, headers={"Accept-Encoding": accepts})
    for answer in (page, sheet):
        assert answer.headers.get("content-encoding") == gets
    assert "Accept-Encoding" in page.headers["vary"]
    assert "immutable" in sheet.headers["cache-control"]
    assert ":root" in sheet.text


def test_a_small_response_is_not_compressed(client: TestClient) -> None:
    address = re.findall(r'href="(/static/icon[^"]+)"', client.get("/").text)[0]
    assert "content-encoding" not in client.get(address, headers={"Accept-Encoding": "gzip"}).headers
