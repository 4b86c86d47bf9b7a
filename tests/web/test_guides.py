"""The pages of docs/ that the service shows of itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from torchtriage.web.pages.guides import blocks, inline

DOCS = Path(__file__).parents[2] / "docs"


def test_what_the_connect_page_names_can_be_read_there(client: TestClient) -> None:
    for sender in ("slurm", "kubernetes", "curl"):
        page = client.get("/connect", params={"from": sender}).text
        found = re.findall(r'href="(/guides/[a-z-]+)"', page)
        assert found
        for address in found:
            assert "<h1>" in client.get(address).text


def test_a_guide_is_shown_with_its_parts(client: TestClient) -> None:
    page = client.get("/guides/slurm").text
    assert "<h1>Slurm</h1>" in page
    assert '<td></td><th scope="col">who sets it up</th>' in page
    assert 'href="/guides/client"' in page
    assert "```" not in page
    assert "**" not in re.sub(r"<code.*?</code>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("name", ["nope", "..%2fREADME", "coverage.yaml", "decisions"])
def test_what_is_no_guide_is_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"/guides/{name}").status_code == 404


@pytest.mark.parametrize("file", sorted(DOCS.glob("*.md")), ids=lambda file: file.stem)
def test_every_guide_can_be_shown(file: Path) -> None:
    made = list(blocks(file.read_text()))
    assert made[0].kind == "h1"
    assert all(len(row) == len(block.rows[0]) for block in made for row in block.rows)


def test_nothing_of_a_text_becomes_html() -> None:
    assert inline('<b> `<i>` **<u>** [<s>](javascript:x) [y](https://example.org/?a="b)') == (
        '&lt;b&gt; <code translate="no">&lt;i&gt;</code> <strong>&lt;u&gt;</strong> &lt;s&gt; '
        '<a href="https://example.org/?a=&#34;b" rel="noreferrer">y</a>'
    )
