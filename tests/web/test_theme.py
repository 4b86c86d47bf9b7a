"""The theme: chosen in the footer, kept in the browser, without script."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

HERE = {"accept": "text/html", "sec-fetch-site": "same-origin"}


def chosen(client: TestClient, **form: str) -> str:
    """Returns where the choice leads."""
    answer = client.post("/theme", data=form, headers=HERE, follow_redirects=False)
    assert answer.status_code == 303
    return answer.headers["location"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_theme_is_kept_and_leads_back_to_the_page(client: TestClient, theme: str) -> None:
    page = client.get("/incidents?q=nccl", headers=HERE).text
    assert "data-theme" not in page
    assert 'name="back" value="/incidents?q=nccl"' in page
    assert chosen(client, theme=theme, back="/incidents?q=nccl") == "/incidents?q=nccl"
    page = client.get("/incidents", headers=HERE).text
    assert f'data-theme="{theme}"' in page
    assert f'<meta name="color-scheme" content="{theme}">' in page
    assert f'value="{theme}" aria-pressed="true"' in page


def test_the_systems_theme_comes_back(client: TestClient) -> None:
    chosen(client, theme="dark")
    chosen(client, theme="system")
    assert "data-theme" not in client.get("/", headers=HERE).text


@pytest.mark.parametrize("back", ["https://example.com/", "//example.com", "/\\example.com"])
def test_it_leads_to_no_other_site(client: TestClient, back: str) -> None:
    assert chosen(client, theme="dark", back=back) == "/"


def test_an_unknown_theme_changes_nothing(client: TestClient) -> None:
    client.cookies.set("theme", 'x" onload="')
    chosen(client, theme="pink")
    page = client.get("/", headers=HERE).text
    assert "data-theme" not in page
    assert "onload" not in page
